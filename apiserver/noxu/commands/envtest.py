"""`noxu envtest`: write the programs that envtest starts, and print where they are."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from noxu.envtest import assets


def run(options: argparse.Namespace) -> int:
    """Exit status 0: written; 1: they cannot be written."""
    if sys.platform == "win32":
        print("noxu: envtest needs an operating system that runs scripts of the shell", file=sys.stderr)
        return 1
    folder = assets.default_folder() if options.directory in (None, "env") else Path(options.directory)
    if options.tree:
        folder = assets.store_folder(folder, options.kubernetes_version)
    folder = folder.absolute()
    try:
        assets.write(folder)
    except assets.AssetsError as error:
        print(f"noxu: {error}", file=sys.stderr)
        return 1
    print(folder if options.print == "path" else f"export KUBEBUILDER_ASSETS={shlex.quote(str(folder))}")
    return 0
