"""The arguments of `noxu explain-write`."""

from __future__ import annotations

import argparse

from noxu.apiserver.arguments import checks, shared


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
    shared.set_features(options)
    checks.complete(options)
    checks.require_files(options)
    if options.old and (options.server or options.kubeconfig):
        raise ValueError("--old is for writes in memory: a server has the former objects")
    if options.write and not (options.server or options.kubeconfig):
        raise ValueError("--write needs a server: give --server or --kubeconfig")
