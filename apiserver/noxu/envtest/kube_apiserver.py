"""The `kube-apiserver` of a test suite: a server that is configured by the flags of kube-apiserver.

The port is bound first. So another server on it is an error within milliseconds, and clients that connect while the
server starts are answered as soon as it is ready, instead of trying again later. Only the places that the flags name
are written: the objects into the data directory of etcd, a certificate into --cert-dir if it has none, audit logs.

Command lines are fixed by test tools, so settings for which kube-apiserver has no flags are in the environment:
NOXU_PROFILE and NOXU_CONTROLLERS, as `--profile` and `--controllers` of `noxu serve`, NOXU_FAULTS and NOXU_LATENCY, as
`--faults` and `--latency`, NOXU_KUBERNETES, as `--kubernetes`, and NOXU_LOG, a file for the log.
The server stops with the process that has started it, unless NOXU_EXIT_WITH_PARENT is false: a test that is killed
leaves nothing behind.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NoReturn

from noxu import garbage, releases
from noxu.config import StartError
from noxu.envtest import configuration, data_directory, flags
from noxu.envtest.etcd import parent
from noxu.envtest.flags import Arguments, FlagError, parse
from noxu.go.text import quote

if TYPE_CHECKING:
    from noxu import garbage
from noxu.config import Config

BACKLOG: Final = 1024  # connections that the kernel accepts while the server starts
_IN_USE: Final = "is in use by another process"  # storage's text


def main() -> NoReturn:
    """The program. Its process does nothing else, so it ends without freeing its memory."""
    garbage.postpone()  # until the server has started
    garbage.end_process(run(sys.argv[1:]))


def _print_version() -> int:
    try:
        release = configuration.release_of(os.environ)
    except configuration.RefusedFlags as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    sys.stdout.write(f"Kubernetes v{releases.named(release)}.0\n")
    return 0


def run(words: Sequence[str]) -> int:
    """Exit status 0: stopped; 1: the flags are invalid, or the server cannot start."""
    try:
        arguments = parse(list(words))
    except FlagError as error:
        sys.stderr.write(f"Error: {error}\nSee 'kube-apiserver --help' for the flags.\n")
        return 1
    if arguments.is_set("help"):
        sys.stdout.write(flags.help_text())
        return 0
    if arguments.has("version"):
        return _print_version()
    try:
        if log := os.environ.get("NOXU_LOG"):
            _redirect(log)
        _serve(arguments)
    except (configuration.RefusedFlags, OSError) as error:
        report("E", f'"command failed" err={quote(str(error))}')
        return 1
    return 0


def report(severity: str, text: str) -> None:
    """Write a line to stderr in the format of kube-apiserver's log (klog): severity I, W or E."""
    now = time.time()
    moment = f"{time.strftime('%m%d %H:%M:%S', time.localtime(now))}.{int(now % 1 * 1e6):06}"
    sys.stderr.write(f"{severity}{moment} {os.getpid():>7} noxu] {text}\n")


def _redirect(log: str) -> None:
    """Append all output to a file. Raises OSError."""
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for standard in (1, 2):
        os.dup2(handle, standard)
    os.close(handle)


def _serve(arguments: Arguments) -> None:
    """Serve until SIGTERM. Raises configuration.RefusedFlags."""
    configuration.check(arguments)
    host, port = configuration.address(arguments)
    try:
        listener = _listen(host, port)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        raise configuration.RefusedFlags(f"failed to create listener: failed to listen on {where}: {why}") from None
    etcd = data_directory.find(arguments.all("etcd-servers"))
    config, notes = configuration.configure(arguments, os.environ, etcd)
    if etcd is None:
        notes = [*notes, "--etcd-servers: none of them listens; objects are in memory"]
    for note in (*arguments.notes, *notes):
        report("W", note)
    from noxu.process import running, signals

    try:
        running.run_quietly(
            replace(config, listen=(f"fd:{listener.detach()}",)),
            lambda url: report("I", f"Serving securely on {url}"),
            parent(),
        )
    except signals.Interrupted:
        return  # before it was ready: there is nothing to stop
    except StartError as error:
        raise configuration.RefusedFlags(_start_error(str(error), config, arguments)) from None


def _listen(host: str, port: int) -> socket.socket:
    """Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)


def _start_error(text: str, config: Config, arguments: Arguments) -> str:
    """What `noxu serve` says, in terms of these flags."""
    if config.data is not None and str(config.data) in text and _IN_USE in text:
        prefix = arguments.last("etcd-prefix", data_directory.DEFAULT_PREFIX)
        return f"another kube-apiserver uses this etcd with --etcd-prefix={prefix}: only one can, so give each a prefix of its own"
    for option, variable in (("--faults ", "NOXU_FAULTS="), ("--latency ", "NOXU_LATENCY=")):
        if text.startswith(option):
            return variable + text.removeprefix(option)
    return text
