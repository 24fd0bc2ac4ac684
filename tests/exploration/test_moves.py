"""Which change makes each move of a plan."""

from __future__ import annotations

from noxu.exploration.recording import CONTROLLER
from noxu.exploration.server import ExploredServer
from noxu.values import Object
from tests.exploration.test_server import config
from tests.rows import rows

CREATED = {"created": "configmaps", "name": "a", "namespace": "default"}
SECOND = {**CREATED, "nth": 2}
MARK = {"when": CREATED, "mark": "old"}
BEFORE = {**MARK, "before": True}
RESTART = {"restart": True}


@rows(
    "moves, made",
    [
        ([MARK, {"when": SECOND, **RESTART}], [1, 3]),
        ([BEFORE, {"when": CREATED, **RESTART}], [1, 1]),
        ([MARK, {"when": CREATED, **RESTART}], [1, 3]),
        ([BEFORE, {"when": SECOND, **RESTART}], [1, 3]),
    ],
    ids=[
        "two triggers",
        "the state before a change is marked, and something happens at that change",
        "the state after a change is marked: the same trigger is about a later one",
        "the state before a change is marked, and something happens later",
    ],
)
def test_each_move_is_made_at_the_change_that_its_trigger_names(moves: list[Object], made: list[int]) -> None:
    """Of three changes: `a` is created, deleted, and created again."""
    with ExploredServer(history="all") as server:
        begins, restarts = server.revision, list[int]()
        there = server.moves(moves, f"{CONTROLLER}*", lambda: restarts.append(1))
        server.create(config("a"))
        server.delete("configmaps", "a")
        server.create(config("a"))
        revisions = [change.revision for change in server.changes(begins, [])]
        assert [revisions.index(each["revision"]) + 1 for each in there.made] == made
        assert len(restarts) == 1
