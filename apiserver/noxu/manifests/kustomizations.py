"""Kustomizations: directories from which kustomize makes manifests.

Noxu does not do kustomize's work: it runs `kustomize`, or the one in `kubectl`, and reads what that prints.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from noxu.manifests import documents as manifests
from noxu.manifests.documents import Document
from noxu.manifests.kustomization_files import NAMES

PROGRAMS: Final = (("kustomize", "build"), ("kubectl", "kustomize"))
"""In this order; the directory is their last argument."""


def build(directory: Path) -> Iterator[Document]:
    """The documents that a kustomization makes, or one with an error."""
    found, error = _run(directory)
    if error:
        yield Document({}, str(directory), 0, error=error)
    else:
        yield from manifests.read(found, f"{directory}, built")


def _run(directory: Path) -> tuple[bytes, str]:
    """What kustomize prints, or an error."""
    if not directory.is_dir():
        return (
            b"",
            "it is no directory: -k takes the one of a kustomization" if directory.exists() else "no such directory",
        )
    if not any((directory / name).is_file() for name in NAMES):
        return b"", "it has no kustomization.yaml"
    for program, argument in PROGRAMS:
        if path := shutil.which(program):
            ran = subprocess.run([path, argument, str(directory)], capture_output=True, check=False)  # noqa: S603 - from the user's PATH
            message = ran.stderr.decode(errors="replace").strip()
            return ran.stdout, f"{program} {argument}: {message}" if ran.returncode else ""
    return (
        b"",
        f"-k needs kustomize or kubectl; elsewhere: kubectl kustomize {directory} > all.yaml; noxu serve all.yaml",
    )
