"""`noxu check`: verify a data file."""

from __future__ import annotations

import argparse
import sys

from noxu.apiserver.commands import progress
from noxu.storage.check import check
from noxu.storage.types import OpenError


def run(options: argparse.Namespace) -> int:
    """Exit status 0: no problems; 1: problems, or the file cannot be opened."""
    path = options.file
    try:
        with progress.shown("check", "rows", quiet=options.quiet) as show:
            report = check(path / "noxu.db" if path.is_dir() else path, show)
    except OpenError as error:
        print(f"noxu: {error}", file=sys.stderr)
        return 1
    print(
        f"{report.path}: format {report.version}, revision {report.revision}, compacted to {report.compacted}, "
        f"{report.keys} keys, {report.rows} rows"
    )
    for problem in report.problems:
        print(f"  {problem}")
    count = len(report.problems)
    print(f"{count} problem{'s' if count > 1 else ''} found" if count else "no problems found")
    return 1 if count else 0
