"""Each preset finds the class of bugs that it is for: it catches an operator with such a bug, and not the same one without it.

The seeds are those with which a run is short. With the same seed the same requests are hit, so every run is the same.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from noxu import Noxu
from noxu.control.faults.plans import PRESETS
from tests.faults import operators
from tests.faults.operators import AGENT, LEASE, Api, Replica, Watching, config_map, lives
from tests.optional import needs_platform
from tests.timing import HANGS_AFTER

ROOT: Final = Path(__file__).parents[2]


def preset(noxu: Noxu, name: str, seed: int) -> Any:
    """The faults of a preset, of which the test itself meets none."""
    rules = [{**rule, "match": {**rule.get("match", {}), "userAgent": AGENT}} for rule in PRESETS[name]]
    return noxu.faults({"rules": rules}, seed=seed)


def order(noxu: Noxu, name: str) -> int:
    """A new order. Returns its revision."""
    made = noxu.create(config_map(name, "order"), namespace="default")
    return int(made["metadata"]["resourceVersion"])


def shipments(noxu: Noxu) -> list[str]:
    """What was shipped."""
    listed = noxu.list("configmaps", namespace="default", labels="shipment")
    return sorted(value["metadata"]["name"] for value in listed)


def of(count: int) -> list[str]:
    """The shipments of so many orders, each shipped once."""
    return sorted(f"for-{n}" for n in range(count))


# -- what the operators do, and whether it is right --------------------------------------------------------------------

Run = Callable[[Noxu, int, bool], bool]
"""Runs an operator with a seed, fixed or not, and says whether the result is right."""


def counts_all(noxu: Noxu, seed: int, is_fixed: bool) -> bool:
    noxu.create(config_map("total", "total", n="0"), namespace="default")
    for n in range(8):
        order(noxu, str(n))
    with preset(noxu, "conflicts", seed):
        operators.count_orders(Api(noxu.url), is_fixed=is_fixed)
    return bool(noxu.get("configmap", "total", namespace="default")["data"]["n"] == "8")


def ships_each_once(noxu: Noxu, seed: int, is_fixed: bool) -> bool:
    for n in range(8):
        order(noxu, str(n))
    with preset(noxu, "ambiguous-writes", seed):
        operators.ship_each(Api(noxu.url), is_fixed=is_fixed)
    return len(shipments(noxu)) == 8


def keeps_what_has_an_order(noxu: Noxu, seed: int, is_fixed: bool) -> bool:
    with preset(noxu, "stale-reads", seed):
        for n in range(6):
            order(noxu, str(n))
            noxu.create(config_map(f"for-{n}", "shipment"), namespace="default")
            operators.delete_orphans(Api(noxu.url), is_fixed=is_fixed)
    return shipments(noxu) == of(6)


def sees_all_orders(noxu: Noxu, seed: int, is_fixed: bool) -> bool:
    with preset(noxu, "flaky-watch", seed):
        operator = Watching(Api(noxu.url), relists=is_fixed)
        for n in range(8):
            operator.follow(order(noxu, str(n)))
    return shipments(noxu) == of(8)


def ships_after_a_restart(noxu: Noxu, seed: int, is_fixed: bool) -> bool:
    noxu.clock.freeze()
    with preset(noxu, "restart", seed):
        operator = Watching(Api(noxu.url), reconnects=is_fixed)
        operator.follow(order(noxu, "0"))
        noxu.clock.advance("1s")  # the server goes down
        operator.follow(newest := order(noxu, "1"), attempts=1)
        noxu.clock.advance("2s")  # and comes back
        operator.follow(newest)
    return shipments(noxu) == of(2)


def has_one_leader(noxu: Noxu, seed: int, is_fixed: bool) -> bool:
    noxu.clock.freeze()
    api = Api(noxu.url)
    lease = {"metadata": {"name": "operator", "annotations": {"renewed": "0"}}, "spec": {"holderIdentity": "a"}}
    assert api("POST", LEASE.rpartition("/")[0], lease).has_succeeded
    replicas = [Replica(api, name, is_fixed=is_fixed) for name in "ab"]
    most = 0
    with preset(noxu, "leader-loss", seed):
        for now in range(1, 60, 3):
            for replica in replicas if now < 30 else reversed(replicas):
                replica.step(now)
            most = max(most, sum(replica.is_leader for replica in replicas))
            noxu.clock.advance("3s")
    return most == 1


def ships_all(name: str) -> Run:
    def run(noxu: Noxu, seed: int, is_fixed: bool) -> bool:
        for n in range(8):
            order(noxu, str(n))
        with preset(noxu, name, seed):
            lives(lambda: operators.ship_once(Api(noxu.url), is_fixed=is_fixed))
        return shipments(noxu) == of(8)

    return run


def finishes_what_it_has_begun(noxu: Noxu, seed: int, is_fixed: bool) -> bool:
    for n in range(4):
        order(noxu, str(n))
    words = [sys.executable, "-m", "tests.faults.operators", "fixed" if is_fixed else "buggy"]
    program = noxu.program(words, restart=2, environment={"PYTHONPATH": str(ROOT)})
    with preset(noxu, "crashes", seed), program:
        program.wait(HANGS_AFTER)
    return shipments(noxu) == of(4)


CASES: Final[dict[str, tuple[int, Run]]] = {
    "conflicts": (8, counts_all),
    "ambiguous-writes": (0, ships_each_once),
    "stale-reads": (0, keeps_what_has_an_order),
    "flaky-watch": (0, sees_all_orders),
    "restart": (0, ships_after_a_restart),
    "leader-loss": (0, has_one_leader),
    "partition": (1, ships_all("partition")),
    "slow-api": (60, ships_all("slow-api")),
    "crashes": (851, finishes_what_it_has_begun),
}
"""The seed, and the run, by preset."""
NAMES: Final = [
    pytest.param(name, marks=needs_platform("fork", present=hasattr(os, "fork"))) if name == "crashes" else name
    for name in CASES
]


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_catches_its_bugs(noxu: Noxu, name: str) -> None:
    seed, run = CASES[name]
    assert not run(noxu, seed, False)
    assert noxu.fired()


@pytest.mark.parametrize("name", NAMES)
def test_an_operator_without_the_bug_is_not_caught(noxu: Noxu, name: str) -> None:
    seed, run = CASES[name]
    assert run(noxu, seed, True)
    assert noxu.fired()


@pytest.mark.parametrize("name", NAMES)
def test_without_faults_the_bug_is_not_seen(noxu: Noxu, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is the preset that finds it."""
    seed, run = CASES[name]
    monkeypatch.setitem(PRESETS, name, [])  # type: ignore[arg-type]
    assert run(noxu, seed, False)


def test_every_preset_has_a_case() -> None:
    assert set(CASES) == set(PRESETS)
