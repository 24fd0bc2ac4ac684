"""Measures what many definitions cost: until a server is ready, in memory, and for OpenAPI.

    python -m benchmarks.definitions [--other CHECKOUT] DIRECTORY

DIRECTORY has the manifests, such as those of 196 real CRDs. The first start finds an empty cache of manifests, the second
one what the first has kept. `--other` measures a second checkout in turn with this one. Seconds are those of the processor
(on Linux), which other load changes less.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple

from benchmarks.processes import processor_seconds, python_path, resident_bytes
from benchmarks.start import ROOT


class Start(NamedTuple):
    """Seconds until it is ready, MB then, seconds of /openapi/v2 for the first and the second request, MB after them."""

    ready: float
    memory: float
    first: float
    again: float
    memory_with_openapi: float


def start(root: Path, manifests: Path, directory: Path) -> Start:
    """One server of the checkout `root`, whose cache is in `directory`."""
    kubeconfig = directory / "kubeconfig"
    options = ["--memory", "--port", "0", "--kubeconfig", str(kubeconfig), "--keep-going", str(manifests)]
    environment = {**os.environ, "PYTHONPATH": python_path(root), "XDG_CACHE_HOME": str(directory)}
    command = [sys.executable, "-m", "noxu", "serve", *options]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet, cwd=root, env=environment)
    try:
        while not kubeconfig.exists():
            if process.poll() is not None:
                raise SystemExit("the server did not start")
            time.sleep(0.01)
        ready, memory = processor_seconds([process.pid]), resident_bytes([process.pid]) / 1e6
        [url] = re.findall(r"http://[^\s\"]+", kubeconfig.read_text())
        first, again = (openapi_seconds(url, process.pid) for _ in range(2))
        return Start(ready, memory, first, again, resident_bytes([process.pid]) / 1e6)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def openapi_seconds(url: str, pid: int) -> float:
    """The processor time of a server for /openapi/v2."""
    before = processor_seconds([pid])
    with urllib.request.urlopen(f"{url}/openapi/v2") as answer:
        answer.read()
    return processor_seconds([pid]) - before


def main() -> None:
    parser = argparse.ArgumentParser(description="What many definitions cost.")
    parser.add_argument("manifests", type=Path)
    parser.add_argument("--other", type=Path, help="a second checkout")
    options = parser.parse_args()
    roots = [ROOT, *([options.other.resolve()] if options.other else [])]
    print(f"{'':<32} {'ready s':>8} {'MB':>7} {'openapi s':>10} {'again s':>8} {'MB':>7}")
    for root in roots:
        with tempfile.TemporaryDirectory() as name:
            for which in ("first", "second"):
                found = start(root, options.manifests.resolve(), Path(name))
                title = f"{which} start{'' if root == ROOT else f' of {root.name}'}"
                print(
                    f"{title:<32} {found.ready:>8.2f} {found.memory:>7.0f} {found.first:>10.2f} {found.again:>8.2f} "
                    f"{found.memory_with_openapi:>7.0f}"
                )


if __name__ == "__main__":
    main()
