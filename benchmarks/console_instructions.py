"""Counts what a viewer of the console costs a server: instructions of a write, with Valgrind's callgrind.

    python -m benchmarks.console_instructions [--writes N]

Times of two servers differ by more on most machines than the viewer costs, counts hardly do. A server is fifty times as slow
under callgrind: so writes come at a twentieth of 1,000 a second, and lines of the stream at a twentieth of ten, a hundred writes in
each, as they would be. Of such a flood a tenth is kept, and nothing is traced. It takes about three minutes; on a busy machine lines have
fewer writes, and the ratio is worse than it is.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.console import OBJECTS, PATH, RATE, STREAM, Writing, reading, writing
from benchmarks.watchers import started
from noxu import cli
from noxu.console import stream
from noxu.http import request_details
from noxu.http.request_details import Allowance

SLOWER: Final = 20
WARMS: Final = 300
WATCH: Final = f"GET {PATH}?watch=1&resourceVersion=1 HTTP/1.1\r\nHost: localhost\r\nUser-Agent: operator/v1\r\n\r\n"
SERVE: Final = "from benchmarks import console_instructions; console_instructions.serve()"
DUMP: Final = "callgrind.out"


def serve() -> None:
    """Be the server whose instructions are counted."""
    stream.BEAT *= SLOWER  # type: ignore[misc]  # a constant everywhere else
    request_details.KEPT = Allowance(1.0, request_details.KEPT.rate / SLOWER)  # type: ignore[misc]
    request_details.TRACES = Allowance(0.0, 0.0)  # type: ignore[misc]
    sys.argv = ["noxu", "serve", "--memory", "--port", "0"]
    cli.command()


def command(folder: Path) -> list[str]:
    """That of a server under callgrind."""
    files = [f"--callgrind-out-file={folder / DUMP}", f"--log-file={folder / 'valgrind.log'}"]
    return ["valgrind", "--tool=callgrind", *files, sys.executable, "-c", SERVE]


def instructions(pid: int, folder: Path) -> int:
    """Those since the last call."""
    subprocess.run(["callgrind_control", "--dump", str(pid)], check=True, capture_output=True)
    newest = max(folder.glob(f"{DUMP}.*"), key=lambda path: int(path.suffix[1:]))
    total = re.search(r"^(?:summary|totals): (\d+)", newest.read_text(), re.MULTILINE)
    assert total
    return int(total[1])


async def of_a_write(load: Writing, pid: int, folder: Path, writes: int) -> float:
    async with load.connected():
        await load.write(WARMS, RATE / SLOWER)
        await asyncio.sleep(2 * stream.BEAT * SLOWER)
        instructions(pid, folder)
        await load.write(writes, RATE / SLOWER)
        await asyncio.sleep(2 * stream.BEAT * SLOWER)
        return instructions(pid, folder) / writes


async def measure(writes: int) -> None:
    with tempfile.TemporaryDirectory() as made, started(*command(Path(made))) as (port, pid):
        load = await writing(port)
        async with reading(port, WATCH.encode()):
            async with load.connected():
                await load.write(
                    OBJECTS, RATE
                )  # as fast as they are answered: from here on each write finds what it writes
            never = await of_a_write(load, pid, Path(made), writes)
            async with reading(port, STREAM):
                watched = await of_a_write(load, pid, Path(made), writes)
            await asyncio.sleep(2 * stream.LINGER)
            left = await of_a_write(load, pid, Path(made), writes)
    print(f"{never:,.0f} instructions of a write without a viewer")
    print(f"{watched:,.0f} with one: {watched / never:.3f}")
    print(f"{left:,.0f} after it has left: {left / never:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writes", type=int, default=1_000)
    asyncio.run(measure(parser.parse_args().writes))


if __name__ == "__main__":
    main()
