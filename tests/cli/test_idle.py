"""`noxu idle`: it returns when nothing happens any more, and says who is busy if that is not in time."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from noxu import Noxu
from tests.timing import eventually

Run = Callable[..., Any]


def test_it_waits(noxu: Noxu, run: Run) -> None:
    assert run(f"idle --quiet 10ms --server {noxu.url}").out.splitlines()[0].split() == ["SECONDS", "REQUESTS", "QUIET"]
    with noxu.fault(hang=True) as fault:
        connection = http.client.HTTPConnection(urlsplit(noxu.url).netloc, timeout=60)
        connection.request("GET", "/api/v1/configmaps")
        eventually(lambda: fault.hits)
        late = run(f"idle --timeout 200ms --server {noxu.url}")
    assert (late.status, late.out) == (1, "")
    assert "the server is not idle after 0.2 s" in late.err
    connection.close()
