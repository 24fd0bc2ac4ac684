"""`noxu check`: verify a data file, or what etcd has."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from noxu.commands import progress
from noxu.config import Etcd, StartError
from noxu.process import stores
from noxu.registry import storage_form
from noxu_storage.check import Problem, check
from noxu_storage.types import OpenError, Unavailable


def run(options: argparse.Namespace) -> int:
    """Exit status 0: no problems; 1: problems, or nothing can be verified."""
    try:
        if options.etcd is not None:
            problems = _check_etcd(options.etcd, options.quiet)
        else:
            problems = _check_file(options.file, options.quiet)
    except (OpenError, StartError, Unavailable) as error:
        print(f"noxu: {error}", file=sys.stderr)
        return 1
    for problem in problems:
        print(f"  {problem}")
    count = len(problems)
    print(f"{count} problem{'s' if count > 1 else ''} found" if count else "no problems found")
    return 1 if count else 0


def _check_file(path: Path, quiet: bool) -> Sequence[Problem]:
    with progress.shown("check", "rows", quiet=quiet) as show:
        report = check(path / stores.FILE if path.is_dir() else path, show, storage_form.problem)
    print(
        f"{report.path}: format {report.version}, revision {report.revision}, compacted to {report.compacted}, "
        f"{report.keys} keys, {report.rows} rows"
    )
    return report.problems


def _check_etcd(options: Etcd, quiet: bool) -> Sequence[Problem]:
    """Raises StartError, OpenError, Unavailable."""
    access = stores.etcd_access(options)
    from noxu_storage.etcd import check as etcd_check

    with progress.shown("check", "keys", quiet=quiet) as show:
        report = asyncio.run(etcd_check.check(*access, verify=storage_form.problem, progress=show))
    for remark in report.remarks:
        print(f"noxu: {remark}", file=sys.stderr)
    print(
        f"{', '.join(options.servers)}, {options.prefix}: etcd {', '.join(report.versions)}, revision {report.revision}, "
        f"compacted to {report.compacted}, {report.keys} keys, {report.others} keys of other forms"
    )
    return report.problems
