"""How much processor time `noxu test` takes: files of cases of one definition, read, run and reported.

    python -m benchmarks.cases --cases 1000 --files 10
    python -m benchmarks.cases --watch        # what `noxu test --watch` takes for one changed file of them, and how soon it is run

Three quarters of the cases are updates that a rule or a bound refuses, a quarter creates objects with defaults. The figure is
the processor time of the whole command, with the start of Python: of its own process, and of those that it starts.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from itertools import count as endless
from pathlib import Path
from typing import Any, Final

import yaml

from noxu import cli
from noxu.commands import test as command

RERUNS: Final = 9

SCHEMA: Final = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "minimum": 0, "default": 1},
                "color": {"type": "string", "enum": ["red", "blue"]},
            },
            "x-kubernetes-validations": [{"rule": "self.size >= oldSelf.size", "message": "size cannot shrink"}],
        }
    },
}
DEFINITION: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}],
    },
}


def widget(**spec: object) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec}


def case(number: int) -> dict[str, Any]:
    """One of four kinds of cases."""
    name, old = f"case {number}", widget(size=number + 2)
    kinds: list[dict[str, Any]] = [
        {"object": widget(color="red"), "expect": {"stored": {"spec": {"size": 1}}}},
        {"old": old, "patch": {"spec": {"size": number + 1}}, "expect": {"message": "size cannot shrink"}},
        {"old": old, "object": widget(size=-1), "expect": {"denied": True}},
        {"old": old, "apply": widget(color="green"), "expect": {"message": {"causes": [{"field": "spec.color"}]}}},
    ]
    return {"name": name, **kinds[number % len(kinds)]}


def rerun(directory: Path) -> float:
    """The seconds of processor time from the change of one file until its cases are reported."""
    rounds = command.watched(cli.options_of("test", ["--watch", str(directory)]), endless(), every=0)
    seconds = []
    with contextlib.redirect_stdout(io.StringIO()):
        next(rounds)
        changed = directory / "widgets0_test.yaml"
        for _ in range(RERUNS):
            changed.write_text(changed.read_text() + "# changed\n")
            before = time.process_time()
            next(rounds)
            seconds.append(time.process_time() - before)
    return statistics.median(seconds)


def delays(directory: Path) -> list[float]:
    """The seconds from changes of one file until its cases are reported, of a command that watches as it does for users."""
    rounds = command.watched(cli.options_of("test", ["--watch", str(directory)]), endless())
    seconds = []
    with contextlib.redirect_stdout(io.StringIO()):
        next(rounds)
        for n in range(RERUNS):
            changed = directory / "widgets0_test.yaml"
            times: list[float] = []

            def change(path: Path = changed, times: list[float] = times) -> None:
                path.write_text(path.read_text() + "# changed\n")
                times.append(time.perf_counter())

            timer = threading.Timer(0.2 + 0.007 * n, change)  # at another moment between two looks each time
            timer.start()
            next(rounds)
            seconds.append(time.perf_counter() - times[0])
            timer.join()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--watch", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made)
        (directory / "crd.yaml").write_text(json.dumps(DEFINITION, indent=1))
        for n in range(options.files):
            cases = [case(number) for number in range(n, options.cases, options.files)]
            value = {"apiVersion": "noxu.dev/v1", "kind": "Test", "given": {"crds": ["crd.yaml"]}, "cases": cases}
            (directory / f"widgets{n}_test.yaml").write_text(yaml.safe_dump(value, sort_keys=False))
        if options.watch:
            print(f"{rerun(directory) * 1000:.0f} ms of processor time, the median of {RERUNS} changes of one file")
            waits = delays(directory)
            print(f"{min(waits) * 1000:.0f} to {max(waits) * 1000:.0f} ms until its cases are reported")
            return
        before = os.times()
        subprocess.run([sys.executable, "-m", "noxu", "test", made], check=True)
        after = os.times()
    taken = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"{taken:.2f} s of processor time")


if __name__ == "__main__":
    main()
