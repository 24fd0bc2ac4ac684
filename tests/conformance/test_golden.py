"""CRDs of other projects and their objects get the answers of the reference."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance import corpus
from conformance.client import Client
from conformance.corpus import Definition
from conformance.golden import Check
from noxu.testing.handle import Noxu
from tests.optional import needs_data

DEFINITIONS = list(corpus.definitions()) if corpus.FOLDER.exists() else []


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Of a server without garbage collector, like the recorded one."""
    server = Noxu(tmp_path_factory.mktemp("noxu"), profile="envtest")
    with server as noxu, Client(noxu.url) as client:
        yield client


@pytest.mark.slow(every=100)
@needs_data("crds")
@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.name)
def test_the_definition_and_its_objects_get_the_recorded_answers(client: Client, definition: Definition) -> None:
    found = Check(client, definition).run()
    assert {name: differences for name, differences in found.items() if differences} == {}
