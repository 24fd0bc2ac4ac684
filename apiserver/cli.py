"""The `noxu` command: its arguments. The commands are in `noxu.apiserver.commands`, each imported when it is run."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Final, NoReturn

from noxu.apiserver import admission_plugins, authorization_modes
from noxu.apiserver.config import (
    DEFAULT_DATA,
    DEFAULT_EVENT_TTL,
    DEFAULT_HOST,
    DEFAULT_ISSUER,
    DEFAULT_PORT,
    HTTPS_PORT,
    KUBERNETES_VERSION,
    Etcd,
    ServiceName,
    Tls,
)
from noxu.apiserver.controllers import manager
from noxu.apiserver.features import GATES
from noxu.apiserver.features import parse as parse_gates

_OUTPUTS: Final = ("text", "json")


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="noxu", description="The Kubernetes API for your CustomResourceDefinitions.")
    top.add_argument("--version", action=_Version, help="print the version and exit")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, add_arguments, summary in _COMMANDS:
        command = commands.add_parser(name, help=summary)
        command.set_defaults(parser=command)
        add_arguments(command)
    return top


def _serve(command: argparse.ArgumentParser) -> None:
    command.description = "Run the server until SIGINT or SIGTERM."
    command.add_argument(
        "--bind-address",
        "--host",
        dest="host",
        metavar="HOST",
        default=DEFAULT_HOST,
        help="the address to listen on; other addresses than loopback imply TLS and RBAC (default: %(default)s)",
    )
    command.add_argument(
        "--port",
        type=_port,
        default=DEFAULT_PORT,
        help="the port to listen on; 0 selects a free one (default: %(default)s)",
    )
    command.add_argument(
        "--secure-port", type=_port, metavar="PORT", help="--port and --tls, as kube-apiserver spells them"
    )
    command.add_argument(
        "--listen",
        action="append",
        default=[],
        type=_place,
        metavar="PLACE",
        help="a further socket: unix:PATH, a Unix socket to make, or fd:N, one that the process has inherited; can be repeated",
    )
    command.add_argument(
        "--exit-with-parent", action="store_true", help="stop when the process that has started this one ends"
    )
    command.add_argument(
        "--external-hostname",
        default="",
        metavar="NAME",
        help="the name by which clients reach the server: in its certificate and in the kubeconfig",
    )
    storage = command.add_mutually_exclusive_group()
    storage.add_argument("--data", type=Path, metavar="DIR", help=f"the data directory (default: {DEFAULT_DATA})")
    storage.add_argument("--memory", action="store_true", help="keep data in memory only")
    command.add_argument(
        "--durability",
        choices=("full", "normal", "off"),
        default="full",
        help="full: an acknowledged write survives a power failure; normal: it survives a crash of the server; off: so does "
        "it, but a power failure may destroy the file (default: full)",
    )
    command.add_argument(
        "--profile",
        choices=tuple(manager.PROFILES),
        default="local",
        help="what the server does by itself, see docs/profiles.md: local: runs controllers, every user may do everything; "
        "cluster: runs controllers, with TLS and RBAC; envtest: runs none, as kube-apiserver (default: %(default)s)",
    )
    command.add_argument(
        "--controllers",
        action="append",
        default=None,
        metavar="LIST",
        help="controllers of kube-controller-manager to run, instead of the profile's: * for all, NAME, -NAME; "
        f"available: {', '.join(manager.AVAILABLE)}",
    )
    command.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="the kubeconfig to write when the server is ready"
    )
    command.add_argument(
        "--annotate-invalid",
        action="store_true",
        help="annotate stored objects that are invalid since their CRD was changed",
    )
    command.add_argument(
        "--event-ttl",
        type=_ttl,
        default=DEFAULT_EVENT_TTL,
        metavar="DURATION",
        help="the time for which Events are retained after their last write; 0 retains them (default: 1h0m0s)",
    )
    command.add_argument(
        "--webhook-service",
        action="append",
        default=[],
        type=_service,
        metavar="NAMESPACE/NAME[:PORT]=HOST:PORT",
        help="the address of webhooks that refer to this service of a cluster; can be repeated",
    )
    command.add_argument(
        "--disable-admission-plugins",
        action="append",
        default=[],
        metavar="PLUGIN,...",
        help=f"do not run these admission plug-ins: {', '.join(admission_plugins.PLUGINS)}; can be repeated",
    )
    command.add_argument(
        "--enable-admission-plugins",
        action="append",
        default=[],
        metavar="PLUGIN,...",
        help="run these admission plug-ins, too; enabled by default are all that can be disabled except "
        f"{', '.join(admission_plugins.OFF)}, and in the profile envtest {', '.join(admission_plugins.WITH_CONTROLLERS)}; can be "
        "repeated",
    )
    command.add_argument(
        "--kinds",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="OpenAPI documents, or directories of them, whose kinds to serve, such as those of metrics.k8s.io; can be repeated",
    )
    _feature_gates(command)
    _etcd_options(command)
    _tls_options(command)
    _authentication_options(command)
    _authorization(command)
    _signing(command)
    _audit(command)
    _log(command)
    command.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="CRDs and objects to load at the start: YAML or JSON files, directories, - for stdin",
    )


def _authorization(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("authorization", "What users may do: see docs/authorization.md.")
    group.add_argument(
        "--authorization-mode",
        action="append",
        default=None,
        metavar="MODE,...",
        help=f"who decides what users may do, asked in the given order: {', '.join(authorization_modes.MODES)} (default: AlwaysAllow; "
        "RBAC in the profile cluster, and on other addresses than loopback)",
    )


def _authentication_options(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group(
        "authentication", "Who sends a request: see docs/authentication.md. The options are kube-apiserver's."
    )
    group.add_argument(
        "--anonymous-auth",
        type=_bool,
        metavar="BOOL",
        help="allow requests without credentials (default: true)",
    )
    group.add_argument(
        "--token-auth-file", type=Path, metavar="FILE", help='static tokens: lines of token,user,uid,"group1,group2"'
    )
    group.add_argument(
        "--service-account-signing-key-file",
        type=Path,
        metavar="FILE",
        help="the private key that signs tokens of service accounts (default: pki/sa.key in the data directory, which the "
        "server makes)",
    )
    group.add_argument(
        "--service-account-key-file",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="further keys that verify tokens of service accounts: public or private keys, or certificates; can be repeated",
    )
    group.add_argument(
        "--service-account-issuer",
        action="append",
        default=[],
        metavar="URL",
        help=f"the issuer of tokens of service accounts (default: {DEFAULT_ISSUER}); further ones are accepted; can be "
        "repeated",
    )
    group.add_argument(
        "--service-account-lookup",
        type=_bool,
        default=True,
        metavar="BOOL",
        help="refuse the token of a Secret that was deleted (default: true)",
    )
    group.add_argument(
        "--service-account-max-token-expiration",
        type=_ttl,
        default=0.0,
        metavar="DURATION",
        help="the longest time for which tokens of service accounts are issued; 0: no limit (default: 0s)",
    )
    group.add_argument(
        "--service-account-jwks-uri",
        default="",
        metavar="URL",
        help="the URL of the keys in the document of OpenID Connect (default: this server's)",
    )
    group.add_argument(
        "--requestheader-client-ca-file",
        type=Path,
        metavar="FILE",
        help="the CAs of front proxies, which name their users in headers; needs TLS",
    )
    for name, what in (
        ("allowed-names", "the common names of front proxies (default: all that the CAs have certified)"),
        ("username-headers", "the headers for the user (default: X-Remote-User)"),
        ("uid-headers", "the headers for its uid (default: X-Remote-Uid)"),
        ("group-headers", "the headers for its groups (default: X-Remote-Group)"),
        ("extra-headers-prefix", "the prefixes of headers for extra (default: X-Remote-Extra-)"),
    ):
        group.add_argument(
            f"--requestheader-{name}", action="append", default=[], metavar="NAME,...", help=f"{what}; can be repeated"
        )
    group.add_argument(
        "--api-audiences",
        action="append",
        default=[],
        metavar="AUDIENCE,...",
        help="the audiences of this server, for which a token must be (default: the issuers); can be repeated",
    )


def _log(command: argparse.ArgumentParser) -> None:
    options = command.add_argument_group("log", "The server's own log, on stderr: see docs/logs.md.")
    options.add_argument("--log", choices=("text", "json"), default="text", help="its format (default: %(default)s)")
    options.add_argument("--log-requests", action="store_true", help="write a line for each request")
    levels = options.add_mutually_exclusive_group()
    levels.add_argument("--verbose", action="store_true", help="log more, such as why credentials are refused")
    levels.add_argument("--quiet", action="store_true", help="log warnings and errors only")


def _audit(command: argparse.ArgumentParser) -> None:
    options = command.add_argument_group("audit log", "Who asked for what, and how it was answered: see docs/audit.md.")
    options.add_argument(
        "--audit-policy-file", type=Path, metavar="FILE", help="what to record (default: the metadata of every request)"
    )
    options.add_argument("--audit-log-path", default="", metavar="FILE", help="the file to write to; - for stdout")
    options.add_argument(
        "--audit-log-format",
        choices=("json", "legacy"),
        default="json",
        help="the format of a line (default: %(default)s)",
    )
    options.add_argument(
        "--audit-log-mode",
        choices=("batch", "blocking", "blocking-strict"),
        default="blocking",
        help="if the log is written too slowly: batch: events are dropped; blocking: requests wait; blocking-strict: requests "
        "wait for the log, and fail if it cannot be written (default: %(default)s)",
    )
    for name, default, unit, what in (
        ("maxsize", 100, "MB", "the size at which the file is rotated; 0: never"),
        ("maxage", 366, "DAYS", "the days for which rotated files are retained; 0: for ever"),
        ("maxbackup", 100, "N", "the number of rotated files that are retained; 0: all"),
    ):
        options.add_argument(
            f"--audit-log-{name}", type=_count, default=default, metavar=unit, help=f"{what} (default: %(default)s)"
        )
    options.add_argument("--audit-log-compress", action="store_true", help="compress rotated files with gzip")
    options.add_argument(
        "--audit-webhook-config-file", metavar="FILE", help="not supported: the audit log is a file, or stdout"
    )


def _etcd_options(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group(
        "etcd", "Keep objects in etcd, which several servers may share: see docs/etcd.md."
    )
    group.add_argument(
        "--etcd-servers",
        action="append",
        default=[],
        metavar="URL[,URL...]",
        help="the servers of etcd, like http://127.0.0.1:2379; can be repeated",
    )
    group.add_argument(
        "--etcd-prefix",
        default=Etcd(()).prefix,
        metavar="PREFIX",
        help="the beginning of all keys (default: %(default)s)",
    )
    group.add_argument("--etcd-username", default="", metavar="NAME", help="the user of etcd")
    group.add_argument("--etcd-password-file", type=Path, metavar="FILE", help="the file with the user's password")
    for name, what in (
        ("cafile", "CAs that certify etcd"),
        ("certfile", "the certificate for etcd"),
        ("keyfile", "its key"),
    ):
        group.add_argument(f"--etcd-{name}", type=Path, metavar="FILE", help=f"{what}, in PEM")


def _etcd(options: argparse.Namespace) -> Etcd | None:
    """The options of etcd; None without --etcd-servers."""
    servers = tuple(url for text in options.etcd_servers for url in text.split(",") if url)
    if not servers:
        return None
    return Etcd(
        servers,
        options.etcd_prefix,
        options.etcd_cafile,
        options.etcd_certfile,
        options.etcd_keyfile,
        options.etcd_username,
        options.etcd_password_file,
    )


def _tls_options(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("TLS", "Each of these options, and --secure-port, makes the server serve HTTPS.")
    group.add_argument(
        "--tls", action="store_true", help="serve HTTPS, with a CA and a certificate that are made if needed"
    )
    group.add_argument(
        "--tls-cert-file", type=Path, metavar="FILE", help="the certificate, followed by those that certify it, in PEM"
    )
    group.add_argument("--tls-private-key-file", type=Path, metavar="FILE", help="its key")
    group.add_argument(
        "--cert-dir",
        type=Path,
        metavar="DIR",
        help="the directory of apiserver.crt and apiserver.key, which are made if they do not exist",
    )
    group.add_argument(
        "--tls-sni-cert-key",
        action="append",
        default=[],
        type=_named_certificate,
        metavar="CERT,KEY[:PATTERN,...]",
        help="a certificate for the names in it, or for these patterns; can be repeated",
    )
    group.add_argument(
        "--tls-min-version",
        choices=("VersionTLS12", "VersionTLS13"),
        help="the oldest version of TLS (default: VersionTLS12)",
    )
    group.add_argument(
        "--client-ca-file", type=Path, metavar="FILE", help="CAs that certify clients, besides the server's own"
    )


def _tls(options: argparse.Namespace) -> Tls | None:
    """The options of TLS; None if there are none of them."""
    given = Tls(
        options.tls_cert_file,
        options.tls_private_key_file,
        options.cert_dir,
        tuple(options.tls_sni_cert_key),
        options.client_ca_file,
        options.tls_min_version or Tls().minimum,
    )
    is_given = options.tls or options.tls_min_version is not None or options.secure_port is not None
    return given if is_given or given != Tls() else None


def _signing(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group(
        "certificates of users", "The CA that signs approved CertificateSigningRequests: see docs/profiles.md."
    )
    for what, name in (("certificate", "cert"), ("key", "key")):
        group.add_argument(
            f"--cluster-signing-{name}-file",
            type=Path,
            metavar="FILE",
            help=f"the {what} of that CA, in PEM (default: a CA of the server)",
        )


def _feature_gates(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--feature-gates",
        action="append",
        default=[],
        metavar="GATE=BOOL,...",
        help=f"enable or disable features: {', '.join(GATES)}",
    )


def _validate(command: argparse.ArgumentParser) -> None:
    command.description = "Validate objects without a server, as a server would. Exit status 1 if an object is refused."
    command.add_argument(
        "-f",
        dest="files",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="CRDs and objects: YAML or JSON files, directories, - for stdin; can be repeated",
    )
    command.add_argument("--strict", action="store_true", help="refuse unknown and duplicate fields")
    command.add_argument(
        "--ignore-unknown-kinds", action="store_true", help="skip objects of kinds that no CRD in the files defines"
    )
    _feature_gates(command)
    command.add_argument("--output", choices=_OUTPUTS, default="text", help="the output format (default: %(default)s)")
    stored = command.add_argument_group(
        "stored objects",
        "Find stored objects that their CRDs refuse. CRDs given with -f replace the stored ones.",
    )
    stored.add_argument("--stored", action="store_true", help="validate stored objects")
    _server(stored).add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help=f"the data directory, which no server may be using (default: {DEFAULT_DATA})",
    )


def _server(options: argparse._ArgumentGroup) -> argparse._MutuallyExclusiveGroup:
    """Add the options that select a running server. Returns the group for alternatives to them."""
    alternatives = options.add_mutually_exclusive_group()
    alternatives.add_argument("--server", metavar="URL", help="the URL of a running server")
    alternatives.add_argument("--kubeconfig", type=Path, metavar="FILE", help="the kubeconfig of a running server")
    options.add_argument(
        "--context", metavar="NAME", help="the context of the kubeconfig (default: its current context)"
    )
    options.add_argument(
        "--insecure-skip-tls-verify", action="store_true", help="do not verify the server's certificate"
    )
    return alternatives


def _explain_write(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Show what each stage of a write does to objects, and why: what is pruned, defaulted, changed by admission, "
        "refused, or ignored by ratcheting. Exit status 1 if an object is refused."
    )
    command.add_argument(
        "-f",
        dest="files",
        action="append",
        required=True,
        type=Path,
        metavar="PATH",
        help="objects, and without a server their CRDs: YAML or JSON files, directories, - for stdin; can be repeated",
    )
    _feature_gates(command)
    command.add_argument("--output", choices=_OUTPUTS, default="text", help="the output format (default: %(default)s)")
    server = command.add_argument_group("running server", "Without a server the objects are written in memory.")
    _server(server)
    server.add_argument("--write", action="store_true", help="write the objects; without it, the write is a dry run")


def _lint(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Find errors in CRDs of v1 or v1beta1 as a server would, and say how to fix them. "
        "Exit status 1 if a CRD is not structural."
    )
    command.add_argument("--fix", action="store_true", help="write the structural v1 form, if it is unambiguous")
    command.add_argument(
        "--in-place", action="store_true", help="with --fix: rewrite the files instead of writing to stdout"
    )
    command.add_argument("--output", choices=_OUTPUTS, default="text", help="the output format (default: %(default)s)")
    command.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="YAML or JSON files, directories, - for stdin"
    )


def _skeleton(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Print the skeleton of every schema in a file, which determines what pruning keeps. Exit status 1 if a value "
        "would be a struct and a map at the same time."
    )
    command.add_argument(
        "--output", choices=("yaml", "json"), default="yaml", help="the output format (default: %(default)s)"
    )
    command.add_argument("file", type=Path, metavar="FILE", help="CRDs or an OpenAPI v3 schema; - for stdin")


def _migrate(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Rewrite stored objects in the storage version of their CRD, and remove other versions from its "
        "storedVersions. Exit status 1 if an object cannot be rewritten."
    )
    _server(command.add_argument_group("location of the objects")).add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help=f"the data directory, which no server may be using (default: {DEFAULT_DATA})",
    )
    command.add_argument("--output", choices=_OUTPUTS, default="text", help="the output format (default: %(default)s)")
    command.add_argument(
        "names",
        nargs="*",
        metavar="CRD",
        help="the CRDs whose objects to rewrite (default: all CRDs with several storedVersions)",
    )


def _check(command: argparse.ArgumentParser) -> None:
    command.description = "Verify every row of a data file. Exit status 1 if there are problems."
    command.add_argument("file", type=Path, metavar="FILE", help="the .db file, or the data directory")


def _envtest(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Write the programs etcd, kube-apiserver and kubectl for test suites that use envtest, and print the variable that "
        "names their folder: eval $(noxu envtest env)"
    )
    command.add_argument(
        "--tree",
        action="store_true",
        help="write them to DIR/k8s/VERSION-SYSTEM-MACHINE, where setup-envtest and kube-api-test look for them",
    )
    command.add_argument(
        "--kubernetes-version",
        type=_kubernetes_version,
        default=KUBERNETES_VERSION,
        metavar="VERSION",
        help="the version in the name of that folder; the API is the same (default: %(default)s)",
    )
    command.add_argument(
        "-p",
        dest="print",
        choices=("env", "path"),
        default="env",
        help="print a command of the shell that sets KUBEBUILDER_ASSETS, or the path of the folder (default: env)",
    )
    command.add_argument(
        "directory",
        nargs="?",
        metavar="DIR",
        help="the folder, which is created (default, and for the word env: one in the user's cache)",
    )


_COMMANDS: Final = (
    ("serve", _serve, "run the server"),
    ("envtest", _envtest, "write the programs that envtest starts"),
    ("validate", _validate, "validate objects without a server"),
    ("explain-write", _explain_write, "show what each stage of a write does to objects"),
    ("lint", _lint, "check that CRDs are structural, and fix them"),
    ("skeleton", _skeleton, "print the skeletons of schemas, which determine pruning"),
    ("migrate", _migrate, "rewrite stored objects in their storage version"),
    ("check", _check, "verify a data file"),
)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError("must be a number from 0 to 65535")
    return int(text)


def _bool(text: str) -> bool:
    """A boolean as Go parses it."""
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise argparse.ArgumentTypeError("must be true or false")


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError("must be a number that is not negative")
    return int(text)


def _place(text: str) -> str:
    from noxu.apiserver.listeners import parse  # rarely given

    try:
        return str(parse(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _named_certificate(text: str) -> str:
    from noxu.apiserver.security.tls import parse_named  # rarely given

    try:
        parse_named(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _kubernetes_version(text: str) -> str:
    if not re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", text):
        raise argparse.ArgumentTypeError("must be MAJOR.MINOR.PATCH, such as 1.37.0")
    return text


def _ttl(text: str) -> float:
    """A duration in Go's syntax, in seconds."""
    from noxu.apiserver.go.duration import SECOND, parse_duration  # not needed for the default

    try:
        seconds = parse_duration(text) / SECOND
    except ValueError:
        seconds = -1.0
    if seconds < 0:
        raise argparse.ArgumentTypeError("must be a duration that is not negative, such as 1h30m, 90s or 0")
    return seconds


_SERVICE: Final = re.compile(r"(?P<namespace>[^/=:]+)/(?P<name>[^/=:]+)(:(?P<port>[0-9]+))?=(?P<address>[^=]+:[0-9]+)")


def _service(text: str) -> tuple[ServiceName, str]:
    found = _SERVICE.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(
            "must be NAMESPACE/NAME[:PORT]=HOST:PORT, such as default/my-webhook:443=127.0.0.1:9443"
        )
    port = _port(found["port"]) if found["port"] else HTTPS_PORT
    return ServiceName(found["namespace"], found["name"], port), found["address"]


class _Version(argparse.Action):
    """Looks up the version only when the option is given."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:  # noqa: A002 - argparse's name
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"noxu {version('noxu')}")
        parser.exit()


def command() -> NoReturn:
    """The `noxu` command: run it, and exit."""
    sys.exit(main(own_process=True))


def main(arguments: Sequence[str] | None = None, *, own_process: bool = False) -> int:
    """Run a command. Returns its exit status: 0 success, 1 refused or failed, 2 invalid arguments.

    `own_process`: the process does nothing else, so the command may end it.
    """
    options = parser().parse_args(arguments)
    options.own_process = own_process
    if error := _error_in(options):
        options.parser.error(error)
    module = import_module(f"noxu.apiserver.commands.{options.command.replace('-', '_')}")
    try:
        status: int = module.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # `noxu validate … | head`: the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the remaining output is discarded
        return 1
    except KeyboardInterrupt:
        return 130
    return status


def _error_in(options: argparse.Namespace) -> str:
    """What is wrong with the combination of options; empty if it is valid.

    Sets `options.features`, `options.admission_plugins`, `options.tls` and `options.port`.
    """
    if "feature_gates" in options:
        try:
            options.features = parse_gates(options.feature_gates)
        except ValueError as error:
            return f"argument --feature-gates: {error}"
    if options.command == "serve" and (refused := _controllers_error(options)):
        return refused
    if options.command == "serve" and options.authorization_mode is not None:
        try:
            options.authorization_mode = authorization_modes.modes(options.authorization_mode)
        except ValueError as error:
            return f"argument --authorization-mode: {error}"
    if options.command == "serve":
        options.tls = _tls(options)
        options.etcd = _etcd(options)
        options.port = options.port if options.secure_port is None else options.secure_port
    if "disable_admission_plugins" in options:
        enable, disable = options.enable_admission_plugins, options.disable_admission_plugins
        try:
            options.admission_plugins = admission_plugins.select(
                admission_plugins.names(enable),
                admission_plugins.names(disable),
                controllers=manager.has_accounts(options.profile, options.controllers),
            )
        except ValueError as error:
            return str(error)
    match options.command:
        case "validate" if not options.stored and any(
            (options.data, options.server, options.kubeconfig, options.context, options.insecure_skip_tls_verify)
        ):
            return "--data, --server, --kubeconfig, --context and --insecure-skip-tls-verify need --stored"
        case "validate" if not options.stored and not options.files:
            return "nothing to validate: give -f or --stored"
        case "explain-write" if options.write and not (options.server or options.kubeconfig):
            return "--write needs a server: give --server or --kubeconfig"
        case "serve" if options.audit_webhook_config_file is not None:
            return "--audit-webhook-config-file: audit events are not sent to webhooks; use --audit-log-path"
        case "serve" if options.memory and options.etcd is not None:
            return "--memory and --etcd-servers exclude each other"
        case "serve" if options.etcd is None and any(
            (options.etcd_cafile, options.etcd_certfile, options.etcd_keyfile, options.etcd_username)
        ):
            return "--etcd-cafile, --etcd-certfile, --etcd-keyfile and --etcd-username need --etcd-servers"
        case "serve" if (options.etcd_password_file is None) != (not options.etcd_username):
            return "--etcd-username and --etcd-password-file need each other"
        case "serve" if (options.etcd_certfile is None) != (options.etcd_keyfile is None):
            return "--etcd-certfile and --etcd-keyfile need each other"
        case "serve" if (options.tls_cert_file is None) != (options.tls_private_key_file is None):
            return "--tls-cert-file and --tls-private-key-file need each other"
        case "lint" if options.in_place and not options.fix:
            return "--in-place needs --fix"
        case "lint" if options.in_place and (options.output == "json" or Path("-") in options.files):
            return "--in-place cannot be combined with --output json or stdin"
    return ""


def _controllers_error(options: argparse.Namespace) -> str:
    """What is wrong with --profile and --controllers; empty if they are valid. Makes a tuple of `options.controllers`."""
    option = "--profile"
    try:
        manager.check_profile(options.profile)
        if options.controllers is not None:
            option = "--controllers"
            options.controllers = tuple(item for text in options.controllers if text for item in text.split(","))
            manager.check_controllers(options.controllers)
    except ValueError as error:
        return f"argument {option}: {error}"
    return ""


if __name__ == "__main__":
    command()
