"""Whether each preset of faults catches an operator with a bug, and not its twin without it, whenever it is run.

    python -m benchmarks.presets                        # a hundred times each
    python -m benchmarks.presets --repeat 20 crashes

The operators and seeds are those of `tests/faults/test_presets.py`; each run has a server of its own. The exit status is 0 if all
operators with a bug were caught and no twin was.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from noxu import Noxu
from tests.faults.test_presets import CASES


@contextmanager
def server() -> Iterator[Noxu]:
    with tempfile.TemporaryDirectory() as folder, Noxu(Path(folder)) as noxu:
        yield noxu


def caught(name: str, *, is_fixed: bool) -> bool:
    """Whether the result of an operator is wrong under a preset, which has to hit something."""
    seed, run = CASES[name]
    with server() as noxu:
        is_right = run(noxu, seed, is_fixed)
        assert noxu.fired(), f"{name} has hit nothing"
    return not is_right


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("presets", nargs="*", metavar="PRESET", help=f"default: all: {', '.join(CASES)}")
    parser.add_argument(
        "--repeat", type=int, default=100, metavar="NUMBER", help="runs of each operator (default: 100)"
    )
    options = parser.parse_args(arguments)
    if unknown := ", ".join(name for name in options.presets if name not in CASES):
        parser.error(f"there is no preset {unknown}: choose from {', '.join(CASES)}")
    are_right = True
    for name in options.presets or CASES:
        bugs = sum(caught(name, is_fixed=False) for _ in range(options.repeat))
        twins = sum(caught(name, is_fixed=True) for _ in range(options.repeat))
        are_right = are_right and (bugs, twins) == (options.repeat, 0)
        print(f"{name:<18} caught {bugs} of {options.repeat}, the twin {twins} of {options.repeat}", flush=True)
    return 0 if are_right else 1


if __name__ == "__main__":
    sys.exit(main())
