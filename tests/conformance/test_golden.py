"""Real-life CRDs and their objects get the answers that the reference gave. Skipped where they are not beside us."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from apiserver.testing.handle import Noxu
from conformance import corpus
from conformance.client import Client
from conformance.corpus import Definition
from conformance.golden import Check

DEFINITIONS = list(corpus.definitions()) if corpus.FOLDER.exists() else []


@pytest.fixture(scope="module")
def client(noxu_session: Noxu) -> Iterator[Client]:
    with Client(noxu_session.url) as client:
        yield client


@pytest.mark.skipif(not DEFINITIONS, reason="the CRDs are not beside the repository")
@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.name)
def test_a_real_definition_and_its_objects(client: Client, definition: Definition) -> None:
    found = Check(client, definition).run()
    assert {name: differences for name, differences in found.items() if differences} == {}
