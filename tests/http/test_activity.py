"""What counts as under way when the activity of clients is asked for the first time, while requests are being handled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from noxu.http.activity import ClientActivity
from noxu.http.connection import Connection


class AnyConnection(Connection):
    """A connection whose request is being handled."""

    def __init__(self) -> None:
        self.is_over = False
        self.peername = ("127.0.0.1", 1)

    @property
    def target(self) -> str:
        return "/apis"

    @property
    def is_idle(self) -> bool:
        return self.is_over


def an_app(connection: Connection) -> Any:
    watches = SimpleNamespace(open=[], streams={})
    return SimpleNamespace(connections={connection}, watches=watches)


@pytest.fixture
def connection() -> AnyConnection:
    return AnyConnection()


def test_a_request_from_before_is_under_way_until_its_connection_is_idle(connection: AnyConnection) -> None:
    activity = ClientActivity(an_app(connection), 0.0)
    assert activity.under_way(()) == ["/apis for ('127.0.0.1', 1)"]
    connection.is_over = True
    assert activity.under_way(()) == []


def test_a_request_from_before_is_over_when_its_connection_is_closed(connection: AnyConnection) -> None:
    app = an_app(connection)
    activity = ClientActivity(app, 0.0)
    app.connections.clear()
    assert activity.under_way(()) == []


def test_a_request_from_before_that_has_become_a_watch_is_not_under_way(connection: AnyConnection) -> None:
    app = an_app(connection)
    activity = ClientActivity(app, 0.0)
    app.watches.open.append(SimpleNamespace(request=SimpleNamespace(connection=connection)))
    assert activity.under_way(()) == []
