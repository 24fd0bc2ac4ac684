"""Jobs that are deleted some time after their end (upstream's ttlafterfinished_controller_test.go)."""

from __future__ import annotations

from datetime import timedelta

from noxu.go.time import format_time
from noxu.values import Object
from noxu.workloads.objects import JOBS
from noxu.workloads.ttl_after_finished import ttl_steps
from tests.rows import rows
from tests.workloads.plays import NOW, Play


def job(ttl: int | None, end: str = "", ago: float = 0, deleted: bool = False) -> Object:
    metadata = {"name": "x", "namespace": "default"} | ({"deletionTimestamp": format_time(NOW)} if deleted else {})
    time = format_time(NOW - timedelta(seconds=ago))
    conditions = [{"type": end.strip("!"), "status": "False" if "!" in end else "True", "lastTransitionTime": time}]
    spec = {} if ttl is None else {"ttlSecondsAfterFinished": ttl}
    return {"metadata": metadata, "spec": spec, "status": {"conditions": conditions} if end else {}}


@rows(
    "situation, of, again, is_deleted",
    [
        ("it has not ended", job(10), None, False),
        ("it has ended and has no limit", job(None, "Complete", 20), None, False),
        ("it may be deleted at once", job(0, "Complete"), None, True),
        ("it has just completed", job(10, "Complete"), 10, False),
        ("it completed a while ago", job(10, "Complete", 4), 6, False),
        ("it completed long ago", job(10, "Complete", 15), None, True),
        ("it has just failed", job(10, "Failed"), 10, False),
        ("it failed long ago", job(10, "Failed", 10), None, True),
        ("the condition is false", job(10, "!Complete", 20), None, False),
        ("it is being deleted", job(10, "Complete", 20, deleted=True), None, False),
    ],
)
def test_when_a_job_is_deleted(situation: str, of: Object, again: float | None, is_deleted: bool) -> None:
    play = Play((JOBS, of))
    assert play.run(ttl_steps, "default/x") == again, situation
    assert play.done() == (["delete jobs x"] if is_deleted else []), situation


def test_it_waits_for_the_time_of_objects() -> None:
    play = Play((JOBS, job(3600, "Complete")))
    again = play.run(ttl_steps, "default/x")
    assert again is not None
    play.pass_time(again)
    play.run(ttl_steps, "default/x")
    assert play.run(ttl_steps, "default/x") is None
    assert play.done() == ["delete jobs x"]
