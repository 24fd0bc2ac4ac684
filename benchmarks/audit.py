"""Measures what the audit log costs: `python -m benchmarks.audit [--log FILE]`.

Prints the processor time of recording a request in the event loop, at each level and with each number of lines, the time of
the thread that writes them, and the ratio to parsing the target of the same request, which every request needs.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks.calls import seconds
from noxu.clock import SYSTEM_CLOCK
from noxu.garbage import OF_A_SERVER
from noxu.http import auditing
from noxu.http.answer import Answer
from noxu.http.exchange import Exchange
from noxu.http.filters import RecordAudit
from noxu.http.request import parse_target
from noxu.observability.line_writer import LineWriter
from noxu.observability.log_files import RotatingFile, Rotation
from noxu.registry.access import ALLOWED
from noxu.security.audit import AuditLog
from noxu.security.audit_policy import EVERYTHING, AuditPolicy, AuditRule, Level, Recording
from tests.http.wire import received

TARGET = "/apis/example.com/v1/namespaces/default/widgets/a?fieldManager=kubectl"
BODY = b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"text":"%s"}}' % (b"x" * 3300)
CALLS = 2_000
ROUNDS = 3
POLICIES = {
    "Metadata, one line": EVERYTHING,
    "Metadata, two lines": AuditPolicy((AuditRule(Recording(Level.METADATA)),)),
    "RequestResponse, 3.4 KB": AuditPolicy(
        (AuditRule(Recording(Level.REQUEST_RESPONSE, frozenset({"RequestReceived"}))),)
    ),
}


class _Backend:
    clock = SYSTEM_CLOCK


def exchange_of() -> Exchange:
    headers = {"User-Agent": "kubectl/v1.37.0 (linux/amd64) kubernetes/0000000", "Content-Type": "application/json"}
    request = received("PUT", TARGET, headers)
    backend: Any = _Backend()
    exchange = Exchange(request, backend, "7d9c2f6e-2f5c-4b6e-9f43-1a4b5c6d7e8f", 0.0)
    parsed, exchange.query = parse_target("PUT", TARGET)
    exchange.path, exchange.info = parsed.path, parsed.info
    exchange.decision = ALLOWED
    exchange.code = 200
    return exchange


async def record_requests(log: AuditLog, between: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """The processor time of a request in the loop, and in all threads."""
    filter_, sink, answer = RecordAudit(log), auditing.sink(log), Answer(BODY)
    in_loop, in_all = float("inf"), float("inf")
    exchange = exchange_of()
    for _ in range(ROUNDS):
        start, all_start = time.thread_time(), time.process_time()
        for _ in range(CALLS):
            exchange.record, exchange.is_judged = None, False
            filter_.enter(exchange)
            record: Any = exchange.record
            exchange.body = BODY
            auditing.observed(exchange, record, answer)
            sink(exchange)
        in_loop = min(in_loop, (time.thread_time() - start) / CALLS)
        await between()
        in_all = min(in_all, (time.process_time() - all_start) / CALLS)
    return in_loop, in_all


async def measure(file: Path) -> None:
    gc.set_threshold(*OF_A_SERVER)  # as `noxu serve` does
    parsing = seconds(lambda: parse_target("PUT", TARGET), calls=CALLS, rounds=ROUNDS)
    print(f"parsing the target: {parsing * 1e6:.2f} µs")
    for name, policy in POLICIES.items():
        output = RotatingFile(file, Rotation())
        output.open()
        writer = LineWriter(output, "the audit log")
        in_loop, in_all = await record_requests(AuditLog(policy, writer), writer.flushed)
        await writer.close()
        await asyncio.to_thread(file.unlink)
        print(
            f"{name}: {in_loop * 1e6:.1f} µs in the loop, {in_loop / parsing:.1f} of parsing; {in_all * 1e6:.1f} µs in all"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="What the audit log costs")
    parser.add_argument("--log", type=Path, help="the file to write (default: in the temporary directory)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(measure(arguments.log or Path(directory) / "audit.log"))


if __name__ == "__main__":
    main()
