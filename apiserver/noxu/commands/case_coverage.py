"""`noxu test --coverage`: what of their schemas the cases have shown, as a table or in files.

    noxu test --coverage tests/
    noxu test --coverage --coverage-report html:covered --coverage-fail-under 80 tests/

The table comes after the cases; with an `--output` for programs it goes to stderr.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

from noxu.cases.running import Observe
from noxu.commands import calls, findings
from noxu.coverage import reports, trees
from noxu.coverage.collecting import Collector
from noxu.values import Object

T = TypeVar("T")


def counted(run: Callable[[Observe], T]) -> tuple[T, Object]:
    """What `run` returns, and what was collected meanwhile of the control planes that it has observed."""
    collector = Collector()
    return run(collector.follow), collector.collected()


def report(options: argparse.Namespace, collections: Sequence[Object]) -> int:
    """Write the reports. Exit status 1: less is covered than is wanted; 2: one cannot be written."""
    made = trees.trees(trees.merged_collections(collections))
    for each in options.coverage_reports:
        if each.path is None:
            print(f"\n{reports.as_text(made)}", file=sys.stdout if options.output == "text" else sys.stderr)
            continue
        try:
            print(f"coverage: {reports.write(each, made)}", file=sys.stderr)
        except OSError as error:
            calls.complain(f"{each.path}: the report cannot be written: {error.strerror or error}")
            return findings.UNREADABLE
    if lack := reports.lack(made, options.coverage_fail_under):
        calls.complain(lack)
        return 1
    return 0
