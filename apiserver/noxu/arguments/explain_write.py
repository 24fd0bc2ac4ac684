"""The arguments of `noxu explain-write`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from noxu.arguments import checks, shared

if TYPE_CHECKING:
    import argparse

_IN_MEMORY: Final = {"--old": "old", "--independent": "independent", "--feature-gates": "feature_gates", "-j": "jobs"}


def add(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Show what each stage of a write does to objects, and why: what is pruned, defaulted, changed by admission, "
        "refused, or ignored by ratcheting. Exit status 1 if an object is refused, 2 if an input cannot be read."
    )
    checks.add(command, "objects, and without a server their CRDs")
    shared.feature_gates(command)
    server = command.add_argument_group("running server", "Without a server the objects are written in memory.")
    shared.server(server)
    server.add_argument("--write", action="store_true", help="write the objects; without it, the write is a dry run")


def complete(options: argparse.Namespace) -> None:
    """Raises ValueError for a combination of options that is invalid."""
    if options.server or options.kubeconfig:
        checks.refuse(options, _IN_MEMORY, "the option is for writes in memory; these go to a server")
    shared.set_features(options)
    shared.check_server(options)
    checks.complete(options)
    checks.require_files(options)
    if options.write and not (options.server or options.kubeconfig):
        raise ValueError("--write needs a server: give --server or --kubeconfig")
