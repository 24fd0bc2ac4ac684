"""What a run of benchmarks has measured, its medians and ratios, and the file that keeps it.

Servers are measured in turn within each round, so a ratio of one round compares what was measured under the same load of
the machine. Reported are medians over the rounds: of the figures, and of the ratios.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, Final, NamedTuple

from benchmarks.processes import Machine


class Measured(NamedTuple):
    """One phase of one server. Times of processors are µs per operation, latencies ms, memory MB (1e6 bytes).

    `client_share` is the part of one core that the client used: near 1, it and not the server limits the rate.
    """

    operation: str
    server: str
    round: int
    operations: int
    cpu: float
    per_second: float
    p50: float
    p99: float
    client_cpu: float
    client_share: float
    memory: float


class Point(NamedTuple):
    """A phase at one size of a growth curve."""

    curve: str
    size: int
    measured: Measured


class Results(NamedTuple):
    date: str
    command: str
    machine: Machine
    other_load: float  # cores that were used by neither servers nor client, on average
    seconds: float
    servers: tuple[str, ...]
    versions: dict[str, str]
    measured: tuple[Measured, ...]
    growth: tuple[Point, ...] = ()
    etcd: Mapping[str, str] = {}  # versions, by server; of servers that have one


def percentile(ordered: Sequence[float], part: float) -> float:
    """The value below which this part of the values is; 0 if there are none."""
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)] if ordered else 0.0


def operations(measured: Iterable[Measured]) -> list[str]:
    return list(dict.fromkeys(each.operation for each in measured))


def summary(measured: Iterable[Measured], operation: str, server: str) -> Measured | None:
    """The median of each figure over the rounds; None if it was not measured."""
    found = [each for each in measured if (each.operation, each.server) == (operation, server)]
    if not found:
        return None
    figures = [median(values) for values in zip(*(each[3:] for each in found), strict=True)]
    return Measured(operation, server, len(found), int(figures[0]), *figures[1:])


def ratios(measured: Iterable[Measured], operation: str, server: str, base: str) -> list[float]:
    """The processor time of `server` divided by that of `base`, in each round in which both were measured."""
    by_round: dict[str, dict[int, float]] = {server: {}, base: {}}
    for each in measured:
        if each.operation == operation and each.server in by_round:
            by_round[each.server][each.round] = each.cpu
    return [
        cpu / by_round[base][round_]
        for round_, cpu in sorted(by_round[server].items())
        if by_round[base].get(round_, 0.0) > 0 and cpu > 0
    ]


def ratio(measured: Iterable[Measured], operation: str, server: str, base: str) -> float | None:
    found = ratios(measured, operation, server, base)
    return median(found) if found else None


_ROUNDED: Final = 4  # significant digits


def dump(results: Results) -> str:
    """The file: JSON with one measurement a line."""
    head = results._asdict() | {"machine": results.machine._asdict()}
    measured = [json.dumps(_rounded(each)) for each in head.pop("measured")]
    growth = [json.dumps([point.curve, point.size, *_rounded(point.measured)]) for point in head.pop("growth")]
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
    for name, rows in (("measured", measured), ("growth", growth)):
        lines.append(f"{json.dumps(name)}: [\n" + ",\n".join(rows) + "\n]")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _rounded(measured: Measured) -> list[Any]:
    return [float(f"{value:.{_ROUNDED}g}") if isinstance(value, float) else value for value in measured]


def load(text: str) -> Results:
    """The contents of a file. Raises ValueError."""
    try:
        value = json.loads(text)
        value["machine"] = Machine(**value["machine"])
        value["servers"] = tuple(value["servers"])
        value["measured"] = tuple(Measured(*row) for row in value["measured"])
        value["growth"] = tuple(Point(row[0], row[1], Measured(*row[2:])) for row in value["growth"])
        return Results(**value)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"no results of benchmarks: {error!r}") from None
