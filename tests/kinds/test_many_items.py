"""What very many empty items of a built-in kind cost: each is decoded, defaulted, owned and validated.

A list of 5,000 of them is 15 KB, and would take 100 ms of the event loop. Objects as people write them spend nearly nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from noxu.cpu_budget import limited_by
from noxu.go import protobuf
from noxu.go.structs import decode
from noxu.kinds.defaults import defaulter
from noxu.kinds.scheme import struct_of
from noxu.registry.turns import MAX_LOOP_COST, LoopBudget, LoopBudgetExceeded
from noxu.values import Json, Object, copy


class Counter(LoopBudget):
    """Counts the units of work."""

    spent = 0

    def spend(self, units: int) -> None:
        self.spent += units


def pod(*containers: Json, **spec: Json) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [*containers], **spec}}


def decode_pod(value: Object) -> Object:
    struct = struct_of("v1", "Pod")
    assert struct is not None
    found: Object = decode(struct, value).value
    return found


def default_pod(value: Object) -> None:
    fill_in = defaulter("core/v1.Pod")
    assert fill_in is not None
    fill_in(value)


def read_pod(value: Object) -> None:
    """Read a Pod from protobuf, whose containers are two bytes each: all are empty."""
    struct = struct_of("v1", "Pod")
    assert struct is not None
    size = 2 * len(value["spec"]["containers"])
    containers = b"\x12\x00" * (size // 2)
    assert 128 <= size < 128 * 128
    read = protobuf.read(struct, b"\x12" + bytes([size % 128 + 128, size // 128]) + containers)
    assert len(read["spec"]["containers"]) == size // 2


STEPS: dict[str, tuple[Callable[[Object], object], Object]] = {
    "decoding": (decode_pod, pod(*[{}] * 5_000)),
    "decoding nulls": (decode_pod, pod(*[None] * 3_000)),
    "decoding items of other lists": (decode_pod, pod({}, volumes=[{}] * 5_000)),
    "defaults": (default_pod, pod(*[{}] * 5_000)),
    "protobuf": (read_pod, pod(*[{}] * 8_000)),
}


@pytest.mark.parametrize("step", STEPS)
def test_very_many_items_are_left_to_a_thread(step: str) -> None:
    run, value = STEPS[step]
    counter = Counter()
    with limited_by(counter):
        run(copy(value))
    assert counter.spent > MAX_LOOP_COST


@pytest.mark.parametrize("step", ["decoding", "decoding nulls", "decoding items of other lists", "defaults"])
def test_a_list_that_is_too_long_is_not_begun_in_the_loop(step: str) -> None:
    run, value = STEPS[step]
    with limited_by(LoopBudget()), pytest.raises(LoopBudgetExceeded):
        run(copy(value))


def test_a_pod_as_people_write_them_is_not() -> None:
    container: Object = {
        "name": "a",
        "image": "registry.example.com/team/program:1.2.3",
        "env": [{"name": f"VARIABLE_{n}", "value": "x" * 20} for n in range(20)],
        "ports": [{"containerPort": 8080 + n} for n in range(3)],
    }
    counter = Counter()
    with limited_by(counter):
        value = decode_pod(pod(container, container))
        default_pod(value)
    assert counter.spent < MAX_LOOP_COST / 10
