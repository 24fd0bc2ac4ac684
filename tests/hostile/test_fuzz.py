"""Random requests: whatever a client sends, the server does not fail because of a bug (`python -m benchmarks.fuzz` sends more)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.hostile.fuzzing import Fuzzed, fuzzed_server
from tests.hostile.requests import Request, requests


@pytest.fixture(scope="module", params=[False, True], ids=["without CBOR", "with CBOR"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    with fuzzed_server(tmp_path_factory.mktemp("fuzz"), cbor=request.param) as found:
        yield found


HOST = (("Host", "127.0.0.1"),)
JSON_HOST = (*HOST, ("Content-Type", "application/json"))
DROPS = "/apis/hostile.example.com/v1/namespaces/default/drops"


@given(sent=st.lists(requests(), min_size=1, max_size=4))
@example(sent=[Request("OPTIONS", "*", HOST, None)])
@example(sent=[Request("CONNECT", "127.0.0.1:1", HOST, None)])
@example(sent=[Request("GET", f"/api/v1/namespaces?limit={'9' * 5000}", HOST, None)])
@example(sent=[Request("POST", DROPS, JSON_HOST, b'{"kind":"Drop","metadata":1.5}')])
def test_no_request_finds_a_bug(server: Fuzzed, sent: list[Request]) -> None:
    for request in sent:
        server.send(request)
