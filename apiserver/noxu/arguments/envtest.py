"""The arguments of `noxu envtest`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noxu.arguments import values
from noxu.config import KUBERNETES_VERSION

if TYPE_CHECKING:
    import argparse


def add(command: argparse.ArgumentParser) -> None:
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
        type=values.kubernetes_version,
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
