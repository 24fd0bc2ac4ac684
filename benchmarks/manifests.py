"""Measures `noxu validate` without kept results: `python -m benchmarks.manifests [--other CHECKOUT] PATH...`.

Prints the least processor time of several runs, and how many objects were read. `--other` measures a second checkout in turn
with this one. The first run of each is not counted: it compiles modules.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from pathlib import Path

from benchmarks.processes import python_path
from benchmarks.start import ROOT

ROUNDS = 5


def validate(root: Path, paths: list[Path]) -> tuple[float, str]:
    """(the seconds that the checkout `root` takes, the last line of its report)."""
    command = [sys.executable, "-m", "noxu", "validate", "--no-cache", "--quiet", *map(str, paths)]
    environment = {**os.environ, "PYTHONPATH": python_path(root)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode > 1:
        raise SystemExit(done.stderr)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, done.stdout.rstrip().rpartition("\n")[2]


def main() -> None:
    parser = argparse.ArgumentParser(description="What reading and validating manifests costs.")
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--other", type=Path, help="a second checkout")
    options = parser.parse_args()
    roots = [ROOT, *([options.other.resolve()] if options.other else [])]
    paths = [path.resolve() for path in options.paths]
    rounds = [[validate(root, paths) for root in roots] for _ in range(ROUNDS + 1)][1:]
    for n, root in enumerate(roots):
        seconds = min(results[n][0] for results in rounds)
        print(f"{seconds:.2f} s{'' if root == ROOT else f' of {root.name}'}: {rounds[0][n][1]}")


if __name__ == "__main__":
    main()
