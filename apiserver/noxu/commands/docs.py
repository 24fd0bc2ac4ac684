"""`noxu docs`: write reference pages of the kinds that CRDs define.

A directory gets a page in Markdown for each CRD, `README.md` with links to them, and `index.html` with all of them. Without one
the Markdown is printed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from noxu.commands import calls
from noxu.commands.findings import UNREADABLE
from noxu.generation.kinds import versions_of
from noxu.generation.pages import DocumentedKind, as_index, as_markdown, as_page, documented
from noxu.generation.valid import CannotGenerate
from noxu.manifests.documents import LoadError, checked, is_crd, read_paths


def run(options: argparse.Namespace) -> int:
    """Exit status 0: written; 2: an input cannot be read, has no CRD, or a file cannot be written."""
    try:
        documents = checked(read_paths(options.files, command=options.command))
        kinds = [documented(versions_of(document)) for document in documents if is_crd(document.value)]
    except (LoadError, CannotGenerate) as error:
        calls.complain(str(error))
        return UNREADABLE
    if not kinds:
        calls.complain(f"{', '.join(map(str, options.files))}: there is no CRD")
        return UNREADABLE
    if options.out is None:
        print("\n".join(map(as_markdown, kinds)), end="")
        return 0
    try:
        _write(options.out, sorted(kinds))
    except OSError as error:
        calls.complain(f"{error.filename or options.out} cannot be written: {error.strerror or error}")
        return UNREADABLE
    for kind in kinds:
        for version in kind.versions:
            if version.why_none:
                print(f"{kind.definition}/{version.name}: no example: {version.why_none}", file=sys.stderr)
    return 0


def _write(directory: Path, kinds: Sequence[DocumentedKind]) -> None:
    """Raises OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    for kind in kinds:
        (directory / f"{kind.definition}.md").write_text(as_markdown(kind), "utf-8")
    (directory / "README.md").write_text(as_index(kinds), "utf-8")
    (directory / "index.html").write_text(as_page(kinds), "utf-8")
