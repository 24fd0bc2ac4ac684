"""`noxu check`: is a data file as it was written?"""

from __future__ import annotations

import argparse
import sys

from storage.check import check
from storage.types import Unusable


def run(given: argparse.Namespace) -> int:
    """0: sound; 1: damaged, or it cannot be read."""
    path = given.file
    try:
        report = check(path / "noxu.db" if path.is_dir() else path)
    except Unusable as error:
        print(f"noxu: {error}", file=sys.stderr)
        return 1
    print(
        f"{report.path}: format {report.version}, revision {report.revision}, compacted to {report.compacted}, "
        f"{report.keys} keys, {report.rows} rows"
    )
    for damage in report.damage:
        print(f"  damaged: {damage}")
    print(f"{len(report.damage)} damaged" if report.damage else "sound")
    return 1 if report.damage else 0
