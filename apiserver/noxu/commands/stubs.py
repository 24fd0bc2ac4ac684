"""`noxu stubs`: write types of Python for the objects of CRDs.

All served versions of all CRDs are in one stub.
"""

from __future__ import annotations

import argparse
import sys

from noxu.commands.findings import UNREADABLE
from noxu.generation.kinds import versions_of
from noxu.generation.stubs import stub
from noxu.generation.valid import CannotGenerate
from noxu.manifests.documents import LoadError, checked, is_crd, read_paths


def run(options: argparse.Namespace) -> int:
    """Exit status 0: written; 2: an input cannot be read, has no CRD, or the file cannot be written."""
    try:
        documents = checked(read_paths(options.files, command=options.command))
        resources = [
            resource
            for document in documents
            if is_crd(document.value)
            for resource in versions_of(document).served.values()
        ]
    except (LoadError, CannotGenerate) as error:
        print(f"noxu: {error}", file=sys.stderr)
        return UNREADABLE
    if not resources:
        print(f"noxu: {', '.join(map(str, options.files))}: no CRD has a served version", file=sys.stderr)
        return UNREADABLE
    text = stub(resources)
    if options.out is None:
        print(text, end="")
        return 0
    try:
        options.out.write_text(text)
    except OSError as error:
        print(f"noxu: {options.out} cannot be written: {error.strerror}", file=sys.stderr)
        return UNREADABLE
    return 0
