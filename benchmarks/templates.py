"""Measures servers that begin with templates: `python -m benchmarks.templates [--tests N] [PATH...]`.

The paths are manifests, such as those of 196 real CRDs. Each is compared with its bar: processor time, which the load of the
machine changes less, and the memory that Python has allocated.

    server         a server in a loop that runs already, as tenants are: its start and its stop; without manifests, and with them
    fixture        the same as tests have it: in a thread of its own, with a loop
    process        the first server of a process, with an empty cache and with the one that it has left
    suite          a test of a suite that two workers of pytest-xdist run, beyond what an empty test takes
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import os
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.processes import python_path
from benchmarks.start import ROOT
from noxu import Noxu
from noxu.config import Config
from noxu.control import templates
from noxu.control.templates import Template
from noxu.http.webhooks import WebhookClient
from noxu.process.running import new_loop_factory
from noxu.process.server import Server
from noxu.testing import sources

RUNS: Final = 200
TOGETHER: Final = 20  # servers whose memory is measured
CONFIG: Final = Config(port=0)
FIRST: Final = """
import sys, time
from noxu import Noxu
from noxu.testing import handle, sources
began = time.process_time()
with Noxu(manifests=sys.argv[1:]):
    print(time.process_time() - began)
"""
TEST: Final = """
import pytest

@pytest.mark.parametrize("n", range({tests}))
def test_one(n{fixture}):
    {body}
"""
USES: Final = """noxu.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"of-{n}"}})
    found = [each["metadata"]["name"] for each in noxu.list("configmaps", namespace="default")]
    assert found == ["kube-root-ca.crt", f"of-{n}"]"""


def show(what: str, value: float, unit: str, bar: float) -> None:
    print(f"{what:<58} {value:8.2f} {unit:<3} (bar: {bar:g})", flush=True)


async def start_and_stop(template: Template) -> float:
    """The milliseconds of a server."""
    for _ in range(RUNS // 10):
        async with Server(CONFIG, template=template):
            pass
    gc.collect()
    gc.freeze()
    began = time.process_time()
    for _ in range(RUNS):
        async with Server(CONFIG, template=template):
            pass
    return (time.process_time() - began) / RUNS * 1e3


async def kilobytes(template: Template) -> float:
    """What a server takes that has had no request."""
    async with contextlib.AsyncExitStack() as running:
        gc.collect()
        tracemalloc.start()
        for _ in range(TOGETHER):
            await running.enter_async_context(Server(CONFIG, template=template))
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return size / TOGETHER / 1e3


async def servers(paths: Sequence[Path]) -> None:
    caller = WebhookClient({})
    for name, given, bar in (("without manifests", (), 1.0), ("with manifests", paths, 1.5)):
        if given or name == "without manifests":
            template = await templates.make(CONFIG, sources.documents(*given), caller)
            show(f"a server from a template {name}", await start_and_stop(template), "ms", bar)
            show(f"its memory, {name}", await kilobytes(template), "KB", 100)
    await caller.close()


def fixtures(paths: Sequence[Path]) -> None:
    for name, given in (("without manifests", ()), ("with manifests", paths)):
        for runs in (RUNS // 10, RUNS):
            began = time.process_time()
            for _ in range(runs):
                with Noxu(manifests=given):
                    pass
        show(f"the same as tests have it, {name}", (time.process_time() - began) / RUNS * 1e3, "ms", 5)


def processes(paths: Sequence[Path]) -> None:
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPATH": python_path(ROOT), "XDG_CACHE_HOME": cache}
        command = [sys.executable, "-c", FIRST, *(str(path.resolve()) for path in paths)]
        for name, bar in (("the first process", 3.5), ("a later process", 1.5)):
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
            show(f"the first server of {name}", float(done.stdout), "s", bar)


def suite(tests: int) -> None:
    """Tests that make and list ConfigMaps. What a process needs for its first test is not counted: two sizes are compared."""
    few = tests // 5
    own, empty = (run_suite(tests, *how) - run_suite(few, *how) for how in ((", noxu", USES), ("", "pass")))
    show(f"a test of {tests}, with two requests, by two workers", (own - empty) / (tests - few) * 1e3, "ms", 5)


def run_suite(tests: int, fixture: str, body: str) -> float:
    """The seconds of all processes."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "test_suite.py").write_text(TEST.format(tests=tests, fixture=fixture, body=body))
        environment = {**os.environ, "PYTHONPATH": python_path(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        plugins = ["-p", "xdist", "-p", "noxu.testing.plugin", "-p", "no:cacheprovider"]
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *plugins, directory]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=directory, env=environment, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description="What servers cost that begin with templates.")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH")
    parser.add_argument("--tests", type=int, default=1000, help="the number of tests of the suite; 0: no suite")
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=new_loop_factory()) as runner:
        runner.run(servers(options.paths))
    fixtures(options.paths)
    if options.paths:
        processes(options.paths)
    if options.tests:
        suite(options.tests)


if __name__ == "__main__":
    main()
