"""`noxu run -- COMMAND`: a server for the life of a command.

The command finds the server by its kubeconfig ($KUBECONFIG) and URL ($NOXU_URL). Its standard input and outputs are its own,
and its exit status is that of `noxu run`. When it ends, nothing is left: neither process nor port nor file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from noxu.commands import calls, serve
from noxu.process.signals import Interrupted
from noxu.process.supervision import BY_SIGNAL, NotRunnable, Supervisor, check_command
from noxu.values import Object


def run(options: argparse.Namespace) -> int:
    """The exit status of the command; 126, 127: it cannot be run; 1: the server could not start."""
    try:
        check_command(options.passed_on[0])  # before a server starts in vain
        with Supervisor(calls.complain) as supervisor:
            return supervisor.run(options.passed_on, lambda say: _serve(options, say))
    except NotRunnable as error:
        calls.complain(str(error))
        return error.status
    except Interrupted as interrupted:
        return BY_SIGNAL + interrupted.number


def _serve(options: argparse.Namespace, say: Callable[[Object], object]) -> int:
    """Run the server, in the keeper. It says which variables the command has."""
    out = sys.stderr.write if options.verbose else lambda _text: None
    return serve.serve(options, out, lambda url, kubeconfig: say({"KUBECONFIG": str(kubeconfig), "NOXU_URL": url}))
