"""`noxu run -- COMMAND`: a server for the life of a command, or a tenant of a running one (`--server`).

The command finds the server by its kubeconfig ($KUBECONFIG) and URL ($NOXU_URL). Its standard input and outputs are its own,
and its exit status is that of `noxu run`. When it ends, nothing is left: neither process nor port nor file.

A program under test is killed and started again (`--kill-after`, `--restart`, `--log-file`: `process.program`); these options
give it a process group of its own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from noxu.commands import calls, serve
from noxu.process.program import LogError
from noxu.process.signals import Interrupted
from noxu.process.supervision import BY_SIGNAL, NotRunnable, Supervised, Supervisor, check_command
from noxu.values import Object

if TYPE_CHECKING:
    from noxu.control.running import Control


def run(options: argparse.Namespace) -> int:
    """The exit status of the command; 126, 127: it cannot be run; 1: there is no server for it."""
    # a tenant needs modules that read manifests, and no server of its own
    keep = import_module("noxu.commands.held_tenant").keep if options.server else _keep_server
    try:
        check_command(options.passed_on[0])  # before a server starts in vain
        with Supervisor(calls.complain) as supervisor:
            return supervisor.run(options.passed_on, lambda say, command: keep(options, say, command), options.program)
    except NotRunnable as error:
        calls.complain(str(error))
        return error.status
    except LogError as error:
        calls.complain(str(error))
        return 1
    except Interrupted as interrupted:
        return BY_SIGNAL + interrupted.number


def variables(url: str, kubeconfig: Path) -> Object:
    """What the command has in its environment."""
    return {"KUBECONFIG": str(kubeconfig), "NOXU_URL": url}


def _keep_server(options: argparse.Namespace, say: Callable[[Object], object], command: Supervised) -> int:
    """Run a server, in the keeper. Its faults may hit the command, if that is a program under test."""
    out = sys.stderr.write if options.verbose else lambda _text: None

    def made(control: Control) -> None:
        if command.leads_group:
            control.part(import_module("noxu.control.programs").Programs).add(command)  # few commands are

    return serve.serve(options, out, lambda url, kubeconfig: say(variables(url, kubeconfig)), made)
