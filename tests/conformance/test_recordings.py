"""Conversations recorded from the reference, replayed against this server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conformance import recordings
from conformance.client import Client
from conformance.stub import Stub
from noxu.testing.handle import Noxu
from tests.clocks import StoppedClock

CASES = [
    pytest.param(case, id=case["id"])
    for file in sorted(recordings.DATA.glob("*.jsonl"))
    for case in recordings.read(file)
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Of an API server without controllers, at which all writes of a case fall into one second, as in the recordings.

    Owners of fields are in the order of their times, and of their names if the times are equal.
    """
    directory = tmp_path_factory.mktemp("noxu")
    with Noxu(directory, clock=StoppedClock(), profile="envtest") as noxu, Client(noxu.url) as client:
        yield client


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with Stub() as stub:
        yield stub


@pytest.mark.slow(every=40)
@pytest.mark.parametrize("case", CASES)
def test_the_server_answers_as_recorded(client: Client, case: dict[str, Any], request: pytest.FixtureRequest) -> None:
    stub = request.getfixturevalue("stub") if recordings.needs_stub(case) else None
    assert recordings.Conversation(client, case, stub=stub).run() == []


def test_every_deviation_refers_to_a_recorded_case() -> None:
    assert set(recordings.deviations()) <= {case.id for case in CASES}
