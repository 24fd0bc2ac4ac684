"""What the recording of a run costs: a clean run of a workload with 30 objects, with and without it, in turns.

    python -m benchmarks.exploration [--runs 5]

Both runs have the same server, program, steps and waits for silence; the one without keeps no history, and does not ask for
what was written and shown. The bars of a run: 1.3 times the time, and 1 s of our own processor time, beside the program's. It is
that of this process, which has the server, looks at the program, and records.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from noxu.exploration import run_programs, run_steps, runs, steps
from noxu.exploration.plans import CLEAN
from noxu.exploration.run_programs import KnownTimes
from noxu.exploration.server import ExploredServer
from noxu.exploration.settings import ControllerCommand, Exploration
from noxu.values import Object

ROOT = Path(__file__).parents[1]
TAUGHT = ROOT / "tests" / "exploration" / "taught"
OBJECTS = 30
BAR = 1.3
PROCESSOR_BAR = 1.0  # seconds a run


def widget(number: int) -> Object:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": f"w-{number}", "namespace": "default"},
        "spec": {"size": 1 + number % 9},
    }


def exploration(directory: Path) -> Exploration:
    """A controller that makes a ConfigMap and a Secret of each of 30 objects, which are created, changed and deleted."""
    file = directory / "widgets.json"
    file.write_text("\n---\n".join(json.dumps(widget(number)) for number in range(OBJECTS)))
    workload: Sequence[Object] = [
        {"apply": str(file)},
        *({"patch": {"kind": "Widget", "name": f"w-{n}", "merge": {"spec": {"size": 10}}}} for n in range(3)),
        {"delete": {"kind": "Widget", "name": "w-0"}},
    ]
    command = ControllerCommand((sys.executable, "-m", "tests.exploration.taught.crash"), directory=ROOT)
    return Exploration((command,), tuple(steps.parse(list(workload), TAUGHT)), (TAUGHT / "widgets.yaml",))


def without_recording(wanted: Exploration, known: KnownTimes) -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        ExploredServer(manifests=wanted.manifests, history="off", tls=True) as server,
        contextlib.ExitStack() as open_,
    ):
        programs = run_programs.made(server, wanted, CLEAN, Path(directory), known, lambda _server, _user: None)
        for program in programs.started:
            open_.enter_context(program)
        done = [run_steps.start(server, programs, wanted)]
        moves = server.moves((), "controller*", lambda: None)
        for number, step in enumerate(wanted.workload, 1):
            done.append(run_steps.run_step(server, programs, step, wanted, number, moves))
        done.append(run_steps.end(server, programs, moves, wanted))
        assert not any(each.failure or each.never_idle for each in done), done


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds of wall time, and of processor time."""
    began, computed = time.monotonic(), time.process_time()
    run()
    return time.monotonic() - began, time.process_time() - computed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5, metavar="NUMBER", help="of each kind (default: 5)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        wanted = exploration(Path(directory))
        learnt = runs.run(wanted, CLEAN)
        assert not any(each.failure or each.never_idle for each in learnt.steps), learnt.steps
        known = KnownTimes(learnt.watches, max(step.seconds for step in learnt.steps), learnt.steps[0].seconds)
        with_, without = [], []
        for _ in range(options.runs):
            without.append(timed(lambda: without_recording(wanted, known)))
            with_.append(timed(lambda: runs.run(wanted, CLEAN, known)))
    for title, measured in (("without", without), ("with", with_)):
        wall, computed = (statistics.median(column) for column in zip(*measured, strict=True))
        print(f"{title:<8} recording  {wall:6.2f} s  {computed:6.3f} s of processor time")
    factor = statistics.median(wall for wall, _ in with_) / statistics.median(wall for wall, _ in without)
    own = max(computed for _, computed in with_)
    print(f"a run takes {factor:.2f} times as long; {len(learnt.changes)} writes are recorded")
    print(f"our own processor time: at most {own:.2f} s a run")
    return 0 if factor <= BAR and own <= PROCESSOR_BAR else 1


if __name__ == "__main__":
    sys.exit(main())
