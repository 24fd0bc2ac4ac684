"""`noxu fault shrink FIRED [-f OUT] -- COMMAND`: the few faults with which a command fails, of those of a run that failed.

    noxu fault fired -o json > fired.json
    noxu fault shrink fired.json -f least.yaml -- noxu run --faults {plan} config/crd -- pytest -x

The command is run with one plan after the other: `{plan}` in it is the file, and so is $NOXU_FAULTS. It fails if its exit status
is not 0. What it prints is shown with `--verbose` only.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from noxu.api import codec
from noxu.commands import calls
from noxu.control.faults import shrinking
from noxu.files import write_whole
from noxu.process.supervision import NotRunnable, check_command
from noxu.values import Object

PLACE: Final = "{plan}"
VARIABLE: Final = "NOXU_FAULTS"


def run(options: argparse.Namespace) -> int:
    """0: the plan is written; 1: the command does not fail with all faults, or a file cannot be read; 126, 127: no command."""
    try:
        check_command(options.passed_on[0])
        fired = _read(Path(options.words[0]))
        rules = shrinking.explicit(fired)
        with tempfile.TemporaryDirectory(prefix="noxu-") as folder:
            return _shrink(options, rules, int(fired.get("seed") or 0), Path(folder))
    except NotRunnable as error:
        calls.complain(str(error))
        return error.status
    except (OSError, ValueError) as error:
        calls.complain(f"{options.words[0]}: {getattr(error, 'strerror', None) or error}")
        return 1


def _read(file: Path) -> Object:
    """Raises OSError, ValueError."""
    value = codec.decode_json(file.read_bytes()).value
    if not isinstance(value, dict):
        raise ValueError("it is not what `noxu fault fired -o json` prints")
    return value


def _shrink(options: argparse.Namespace, rules: Sequence[Object], seed: int, folder: Path) -> int:
    plan, runs = folder / "plan.yaml", 0

    def fails(subset: Sequence[Object]) -> bool:
        nonlocal runs
        runs += 1
        plan.write_bytes(codec.to_yaml(dict(shrinking.plan_of(subset, seed))))
        words = [word.replace(PLACE, str(plan)) for word in options.passed_on]
        quiet = None if options.verbose else subprocess.DEVNULL
        status = subprocess.call(  # noqa: S603 - the command is the user's
            words, env={**os.environ, VARIABLE: str(plan)}, stdout=quiet, stderr=quiet
        )
        print(f"  {len(subset):>4} faults: {'fails' if status else 'passes'}", file=sys.stderr)
        return bool(status)

    if not fails(rules):
        calls.complain(f"the command passes with all {len(rules)} faults: there is nothing to shrink")
        return 1
    if fails(()):
        calls.complain("the command fails without any fault, too")
        return 1
    least = shrinking.smallest(rules, fails)
    text = codec.to_yaml(dict(shrinking.plan_of(least, seed)))
    if options.file is None:
        print(text.decode(), end="")
    else:
        write_whole(options.file, text)
    print(f"{len(least)} of {len(rules)} faults are enough ({runs} runs)", file=sys.stderr)
    return 0
