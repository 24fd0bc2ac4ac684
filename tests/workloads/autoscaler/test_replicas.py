"""The replicas that metrics ask for: the situations of upstream's replica_calculator_test.go."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from noxu.values import Object
from noxu.workloads.autoscaler.replicas import Proposal, Sample, Tolerances, by_utilization, by_value
from tests.rows import rows
from tests.workloads.autoscaler.measured_pods import JUST_NOW, LONG_AGO, measured_pod
from tests.workloads.plays import NOW


class Pods(NamedTuple):
    """`used`: thousandths of a CPU by pod, - for none. A letter a pod in the others: R ready, u unready; h hot, c cold; phases."""

    used: str
    requested: str = "1"
    ready: str = ""
    started: str = ""
    phases: str = ""
    ending: str = ""

    def made(self) -> list[Object]:
        names = {"R": "Running", "P": "Pending", "F": "Failed"}
        used = self.used.split()
        requests = self.requested.split() * (len(used) if " " not in self.requested else 1) or [""] * len(used)
        return [
            measured_pod(
                f"p{n}",
                None if text == "-" else int(text),
                requests[n],
                ready=(self.ready or "R" * len(used))[n] == "R",
                started=JUST_NOW if (self.started or "c" * len(used))[n] == "h" else LONG_AGO,
                phase=names[(self.phases or "R" * len(used))[n]],
                is_ending=(self.ending or "." * len(used))[n] == "x",
            )
            for n, text in enumerate(used)
        ]


BY_UTILIZATION: list[tuple[str, int, int, Pods, tuple[int, int]]] = [
    # name, current replicas, target, pods, (replicas, utilization)
    ("up", 3, 30, Pods("300 500 700"), (5, 50)),
    ("up, less because one is not ready", 3, 30, Pods("300 500 700", ready="uRR"), (4, 60)),
    ("up, less because one has just started", 3, 30, Pods("300 500 700", started="hcc"), (4, 60)),
    ("up, less because one is pending", 3, 30, Pods("300 500 700", phases="PRR"), (4, 60)),
    ("up, whatever failed", 2, 30, Pods("500 700 - -", ready="RRuu", phases="RRFF"), (4, 60)),
    ("up, whatever is being deleted", 2, 30, Pods("500 700 - -", ending="..xx"), (4, 60)),
    ("not up, because most have just started", 3, 30, Pods("400 500 700", ready="Ruu", started="chh"), (3, 40)),
    ("down", 5, 50, Pods("100 300 500 250 250"), (3, 28)),
    ("down, whatever is not ready", 5, 50, Pods("100 300 500 250 250", ready="RRRuu"), (2, 30)),
    ("down, whatever has just started", 5, 50, Pods("100 300 500 250 250", started="ccchh"), (2, 30)),
    ("down, whatever failed", 5, 50, Pods("100 300 500 250 250 - -", phases="RRRRRFF"), (3, 28)),
    ("within the tolerance", 3, 100, Pods("1010 1030 1020", "900m 1000m 1100m"), (3, 102)),
    ("nothing to do", 2, 60, Pods("600 600"), (2, 60)),
    ("down, though two may use all", 4, 100, Pods("400 95 - -"), (3, 24)),
    ("a pod without a metric changes nothing when equal", 2, 100, Pods("1000 -"), (2, 100)),
    ("nor when above", 2, 100, Pods("1900 -"), (2, 190)),
    ("nor when below", 2, 100, Pods("600 -"), (2, 60)),
    ("one not ready, one without a metric", 3, 50, Pods("100 450 -", ready="uRR"), (3, 45)),
    ("up, with one not ready and one without", 3, 50, Pods("100 2000 -", ready="uRR"), (4, 200)),
    ("down, with one not ready and one without", 4, 50, Pods("100 100 100 -", ready="uRRR"), (3, 10)),
    ("up no more than what is there, with many without", 5, 50, Pods("1000 - - - -"), (5, 100)),
]


@rows("current, target, pods, expected", [row[1:] for row in BY_UTILIZATION], ids=[row[0] for row in BY_UTILIZATION])
def test_by_utilization(current: int, target: int, pods: Pods, expected: tuple[int, int]) -> None:
    found = by_utilization(current, target, Sample("cpu", pods.made(), NOW), Tolerances())
    assert (found.replicas, found.utilization) == expected


BY_VALUE: list[tuple[str, int, int, Pods, tuple[int, int]]] = [
    ("up", 3, 15_000, Pods("20000 10000 30000"), (4, 20_000)),
    ("up, less because one is not ready", 3, 15_000, Pods("50000 10000 30000", ready="uRR"), (3, 20_000)),
    ("down", 5, 20_000, Pods("12000 12000 12000 12000 12000"), (3, 12_000)),
    ("within the tolerance", 3, 20_000, Pods("20000 21000 21000"), (3, 20_666)),
    ("up, with one without a metric", 2, 10_000, Pods("40000 -"), (4, 40_000)),
    ("not down, with one without a metric", 2, 10_000, Pods("8000 -"), (2, 8_000)),
    ("without requests", 1, 1000, Pods("4000", ""), (4, 4000)),
]


@rows("current, target, pods, expected", [row[1:] for row in BY_VALUE], ids=[row[0] for row in BY_VALUE])
def test_by_value(current: int, target: int, pods: Pods, expected: tuple[int, int]) -> None:
    found = by_value(current, target, Sample("cpu", pods.made(), NOW), Tolerances())
    assert (found.replicas, found.average, found.utilization) == (*expected, None)


FAILURES: list[tuple[str, Pods, str, str]] = [
    ("no pods", Pods(""), "", "unable to get metrics for resource cpu: no metrics returned from resource metrics API"),
    ("no metrics", Pods("- -"), "", "unable to get metrics for resource cpu: no metrics returned from resource metrics API"),
    ("none is ready", Pods("100", ready="u", started="h"), "",
     "did not receive metrics for targeted pods (pods might be unready)"),
    ("no request", Pods("100", ""), "", "missing request for cpu in container c of Pod p0"),
    ("no such container", Pods("100"), "x",
     "unable to get metrics for resource cpu: container x not present in metrics for pod default/p0"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("pods", "container", "message"), [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES]
)
def test_failures(pods: Pods, container: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        by_utilization(1, 50, Sample("cpu", pods.made(), NOW, container), Tolerances())


def test_bytes_are_counted_in_thousandths() -> None:
    pods = [measured_pod("a", 64 << 20, "128Mi", resource="memory", ready=False)]  # readiness is about CPU only
    sample = Sample("memory", pods, NOW)
    assert by_utilization(2, 50, sample, Tolerances()) == Proposal(2, (64 << 20) * 1000, 50)


def test_tolerances_are_of_a_direction() -> None:
    pods = [measured_pod("a", 560)]
    for tolerances, expected in ((Tolerances(), 2), (Tolerances(up=0.2), 1), (Tolerances(down=0.2), 2)):
        assert by_utilization(1, 50, Sample("cpu", pods, NOW), tolerances).replicas == expected
