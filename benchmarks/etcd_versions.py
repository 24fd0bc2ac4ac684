"""Which etcd a measured server stores its objects in, and whether it is a fair one to compare with.

The reference answers consistent lists from its watch cache if its etcd reports the progress of a watch on request, which
it believes of 3.4.31 and later, and of 3.5.13 and later (upstream: apiserver's storage/feature). With another etcd it reads
each list from etcd: a list of 1,000 objects then costs it five times the processor time. Figures of such a run say
nothing about the reference, so a comparison with it has to be asked for, and its page says so.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from benchmarks.processes import PROC

ANSWERS_WITHIN: Final = 10.0  # seconds, for `etcd --version`
REPORT_PROGRESS: Final = ((3, 4, 31), (3, 5, 13))  # of each minor version the first; of later ones all do


def of_processes(pids: Iterable[int], proc: Path = PROC) -> str:
    """The version of the etcd among these processes, such as `3.6.5`; "" if none of them is an etcd that says it."""
    for pid in pids:
        try:
            program = (proc / str(pid) / "exe").readlink()
            if program.name.removesuffix(" (deleted)") != "etcd":
                continue
            asked = subprocess.run(
                [os.fspath(proc / str(pid) / "exe"), "--version"],
                capture_output=True, text=True, timeout=ANSWERS_WITHIN, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            continue
        if found := re.search(r"^etcd Version: (\S+)$", asked.stdout, re.MULTILINE):
            return found[1]
    return ""


def reports_progress(version: str) -> bool:
    """Whether the reference trusts this etcd to report the progress of a watch. Versions it cannot read it refuses."""
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if found is None:
        return False
    number = tuple(int(part) for part in found.groups())
    first = next((each for each in REPORT_PROGRESS if each[:2] == number[:2]), REPORT_PROGRESS[0])
    return number >= first


def complaints(found: Mapping[str, str]) -> list[str]:
    """A sentence for each server whose etcd (`{server: version}`, "" for none) is too old for a fair comparison."""
    return [
        f"{server} stores in etcd {version}, which makes the reference read every list from etcd: "
        "use 3.5.13 or later, better a current one, or measure with --old-etcd, which marks the page"
        for server, version in found.items()
        if version and not reports_progress(version)
    ]
