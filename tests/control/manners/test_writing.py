"""Bad habits in writes: what is one, and what is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from noxu.control.manners import writing
from noxu.control.manners.habits import SeenHabit
from noxu.control.manners.observed import Observed, WriteAuthor
from noxu.control.manners.report import report
from tests.control.manners.recordings import OPERATOR, WIDGETS, asked, in_order, of_operator, request, wrote
from tests.rows import rows

OTHER = "rival/v2"
PODS = "pods"


def fights(observed: Observed, _requests: Any) -> list[SeenHabit]:
    """Those of the operator."""
    return [seen for client, seen in writing.fights(observed) if client.agent == OPERATOR]


def loop(number: int, every: float = 0.5, verb: str = "update", paths: str = "status.ready") -> Observed:
    texts = [f"{n * every:g} {verb} a" for n in range(number)]
    return Observed(asked(*texts), wrote(*(f"{text}: {paths}" for text in texts)))


def with_change_of_spec(path: str = "spec.size") -> Observed:
    """Twelve writes in six seconds, and in their middle somebody changes the spec, or another field."""
    mine = [f"{n / 2:g} patch a" for n in range(12)]
    requests = [*asked(*mine), *asked("2.9 patch a", agent=OTHER)]
    return Observed(
        sorted(requests, key=lambda request: request.at),
        in_order(wrote(*(f"{text}: status.n" for text in mine)), wrote(f"2.9 patch a: {path}", agent=OTHER)),
    )


def with_change_in_the_same_millisecond() -> Observed:
    """Ten writes, and in the millisecond of the last one the spec is changed; then ten more."""
    mine = [f"{n / 10:g} patch a" for n in range(20)]
    requests = [*asked(*mine), *asked("0.9 patch a", agent=OTHER)]
    writes = wrote(*(f"{text}: status.n" for text in mine[:10]))
    writes += wrote("0.9 patch a: spec.size", agent=OTHER, first=11)
    writes += wrote(*(f"{text}: status.n" for text in mine[10:]), first=12)
    return Observed(sorted(requests, key=lambda request: request.at), writes)


def reports(number: int, resource: str = PODS, name: str = "pod", *, watching: bool = True) -> Observed:
    """Twelve writes of a status in six seconds; before each of the first `number` of them, somebody changes something else."""
    mine = [f"{n / 2:g} patch a" for n in range(12)]
    theirs = [f"{n / 2 - 0.1:g} patch {name}" for n in range(1, number + 1)]
    writes = in_order(
        wrote(*(f"{text}: status.n" for text in mine)),
        wrote(*(f"{text}: status.phase" for text in theirs), agent=OTHER, resource=resource),
    )
    revisions = {write.request_id: write.revision for write in writes}
    watches = asked("-1 watch", resource=PODS) + asked("-1 watch") if watching else []
    requests = [request(text, revision=revisions[text]) for text in mine]
    requests += [request(text, OTHER, revision=revisions[f"{text} {OTHER}"]) for text in theirs]
    return Observed([*watches, *sorted(requests, key=lambda each: each.at)], writes)


def turns(
    number: int, path: str = "spec.size", *, by_handle: bool = False, controller: str = "", **more: Any
) -> Observed:
    """Two writers that set a field in turn."""
    mine = [f"{n} patch a" for n in range(0, number, 2)]
    theirs = [f"{n} patch a" for n in range(1, number, 2)]
    requests = asked(*mine, **more)
    if not controller:
        requests += asked(*theirs, agent=OTHER, by_handle=by_handle)
    writes = in_order(
        wrote(*(f"{text}: {path}" for text in mine)),
        wrote(*(f"{text}: {path}" for text in theirs), agent=OTHER, controller=controller),
    )
    return Observed(sorted(requests, key=lambda request: request.at), writes)


def update(*texts: str, seen: str = "0 get a", blind: bool = True, watching: bool = False) -> Observed:
    """The operator reads, another client writes at 1, and the operator puts the object at 2."""
    requests = [
        *asked(*filter(None, [seen])),
        *(asked("0 watch", query="watch=true") if watching else []),
        *asked("1 patch a", agent=OTHER),
        *asked("2 update a", is_unconditional=blind),
    ]
    mine, theirs = texts
    return Observed(
        sorted(requests, key=lambda request: request.at),
        in_order(wrote(f"2 update a: {mine}"), wrote(f"1 patch a: {theirs}", agent=OTHER)),
    )


FIELD = "widgets.example.com default/a: operator and rival set spec.size in turn"
ROWS: list[tuple[str, Callable[[Observed, Any], Any], Observed, list[str]]] = [
    ("a write without a revision", writing.no_op_writes, Observed(asked("0 update a", "1 patch b")), [
        "widgets.example.com default/a was so already", "widgets.example.com default/b was so already",
    ]),
    ("a write with a revision", writing.no_op_writes, loop(1), []),
    ("a write that is refused", writing.no_op_writes, Observed(asked("0 update a 409 Conflict")), []),
    ("a dry run", writing.no_op_writes, Observed(asked("0 update a", dry_run=True)), []),
    ("a proxy", writing.no_op_writes, Observed(asked("0 update a", subresource="proxy")), []),
    ("a GET", writing.no_op_writes, Observed(asked("0 get a")), []),
    ("a client that is gone", writing.no_op_writes, Observed(asked("0 update a 0")), []),
    ("eleven writes in five seconds", writing.hot_loops, loop(11), [
        "widgets.example.com default/a: 11 writes in 5 s, and no change of what it asks for"
    ]),
    ("writes that change nothing count", writing.hot_loops, Observed(asked(*(f"{n / 10} patch a" for n in range(12)))), [
        "widgets.example.com default/a: 12 writes in 1.1 s, and no change of what it asks for"
    ]),
    ("the busiest ten seconds", writing.hot_loops, loop(40, every=0.8), [
        "widgets.example.com default/a: 13 writes in 9.6 s, and no change of what it asks for"
    ]),
    ("ten writes", writing.hot_loops, loop(10), []),
    ("one write a second", writing.hot_loops, loop(30, every=1.1), []),
    ("each write changes the spec", writing.hot_loops, loop(30, paths="spec.size"), []),
    ("each write changes the data of a ConfigMap", writing.hot_loops, loop(30, paths="data.key"), []),
    ("a change of the spec in between", writing.hot_loops, with_change_of_spec(), []),
    ("its end begins in between", writing.hot_loops, with_change_of_spec("metadata.deletionTimestamp"), []),
    ("a label changes in between", writing.hot_loops, with_change_of_spec("metadata.labels.a"), [
        "widgets.example.com default/a: 12 writes in 5.5 s, and no change of what it asks for"
    ]),
    ("a change in the same millisecond", writing.hot_loops, with_change_in_the_same_millisecond(), []),
    ("labels and status", writing.hot_loops, loop(11, paths="metadata.labels.a, status"), [
        "widgets.example.com default/a: 11 writes in 5 s, and no change of what it asks for"
    ]),
    ("each write follows from a change by others", writing.hot_loops, reports(11), []),
    ("two writes follow from a change by others", writing.hot_loops, reports(2), []),
    ("all writes but one", writing.hot_loops, reports(1), [
        "widgets.example.com default/a: 12 writes in 5.5 s, and no change of what it asks for"
    ]),
    ("changes by others of what it does not read", writing.hot_loops, reports(11, watching=False), [
        "widgets.example.com default/a: 12 writes in 5.5 s, and no change of what it asks for"
    ]),
    ("changes by others of the object itself", writing.hot_loops, reports(11, WIDGETS, "a"), [
        "widgets.example.com default/a: 12 writes in 5.5 s, and no change of what it asks for"
    ]),
    ("leases of others", writing.hot_loops, reports(11, "leases.coordination.k8s.io"), [
        "widgets.example.com default/a: 12 writes in 5.5 s, and no change of what it asks for"
    ]),
    ("a Lease", writing.hot_loops, Observed(
        asked(*(f"{n / 10} update a" for n in range(30)), resource="leases.coordination.k8s.io")
    ), []),
    ("two writers in turn", fights, turns(4), [f"{FIELD}, 4 times"]),
    ("many turns", fights, turns(9), [f"{FIELD}, 9 times"]),
    ("two turns", fights, turns(3), []),
    ("a controller of the server", fights, turns(4, controller="garbage-collector"), [
        "widgets.example.com default/a: garbage-collector and operator set spec.size in turn, 4 times"
    ]),
    ("the test itself", fights, turns(8, by_handle=True), []),
    ("one writer", fights, loop(9, paths="spec.size"), []),
    ("several fields", fights, turns(4, "spec.size, spec.colour"), [
        "widgets.example.com default/a: operator and rival set spec.size, spec.colour in turn, 4 times"
    ]),
    ("an update of what another client has set", writing.lost_updates, update("spec.size", "spec.size"), [
        "widgets.example.com default/a: spec.size of rival was overwritten"
    ]),
    ("with a resourceVersion", writing.lost_updates, update("spec.size", "spec.size", blind=False), []),
    ("other fields", writing.lost_updates, update("spec.size", "spec.colour"), []),
    ("read after that", writing.lost_updates, update("spec.size", "spec.size", seen="1.5 get a"), []),
    ("never read", writing.lost_updates, update("spec.size", "spec.size", seen=""), []),
    ("a watch may have shown it", writing.lost_updates, update("spec.size", "spec.size", watching=True), []),
]  # fmt: skip


@rows("name, habit, observed, notes", ROWS, ids=[row[0] for row in ROWS])
def test_what_is_seen(name: str, habit: Callable[[Observed, Any], Any], observed: Observed, notes: list[str]) -> None:
    seen = list(habit(observed, of_operator(observed)))
    assert [each.note for each in seen] == notes
    assert all(each.requests for each in seen), name


def test_every_habit_of_writes_is_in_a_table() -> None:
    assert {row[1] for row in ROWS} == {*writing.HABITS_OF_WRITES, fights}


def test_both_sides_of_a_fight_see_it() -> None:
    habits = {
        client["userAgent"]: [habit["habit"] for habit in client["habits"]] for client in report(turns(6))["clients"]
    }
    assert habits["operator/v1 (linux)"] == ["fights"]
    assert habits[OTHER] == ["fights"]


def test_a_third_writer_ends_a_fight() -> None:
    observed = turns(6)
    third = observed.writes[2]._replace(writer=WriteAuthor("third/v1", "system:anonymous", "third"), request_id="x")
    observed = Observed(observed.requests, [*observed.writes[:2], third, *observed.writes[3:]])
    assert [each.note for each in fights(observed, of_operator(observed))] == []


def test_without_the_history_nothing_is_said_about_writes() -> None:
    observed = Observed(asked(*(f"{n / 10} update a" for n in range(30))), knows_writes=False)
    assert report(observed)["clients"][0]["habits"] == []
