"""The bytes of incomplete requests, and who is disconnected when there are too many."""

from __future__ import annotations

from noxu.http.incoming import Incoming


class Peer:
    def __init__(self) -> None:
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True


def test_the_request_that_began_first_makes_room() -> None:
    incoming, first, second, third = Incoming(limit=100), Peer(), Peer(), Peer()
    incoming.add(first, 40)
    incoming.add(second, 40)
    incoming.add(first, 20)
    assert (incoming.total, first.aborted) == (100, False)
    incoming.add(third, 1)
    assert (incoming.total, first.aborted, second.aborted, third.aborted) == (41, True, False, False)


def test_complete_requests_do_not_count() -> None:
    incoming, first, second = Incoming(limit=100), Peer(), Peer()
    incoming.add(first, 60)
    incoming.end(first)
    incoming.end(first)
    incoming.add(second, 60)
    assert (incoming.total, first.aborted, second.aborted) == (60, False, False)


def test_a_request_that_exceeds_the_limit_alone_ends() -> None:
    incoming, only = Incoming(limit=100), Peer()
    incoming.add(only, 101)
    assert (incoming.total, only.aborted) == (0, True)
