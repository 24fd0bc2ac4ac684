"""Which plans are made of a recording, and why."""

from __future__ import annotations

from noxu.exploration.masks import Mask
from noxu.exploration.planning import Considered, consider, plans, transitions
from noxu.exploration.plans import parse
from noxu.exploration.recording import ObjectPlace
from tests.exploration.recordings import CONFIGS, SECRETS, WIDGETS, Script, clean


def considered(script: Script, **more: bool) -> Considered:
    return consider(script.recording(), Mask(), steps=2, **more)


def titles(script: Script, klass: str) -> list[str]:
    return [plan.title for plan in plans(considered(script), [klass])]


def test_a_crash_after_the_last_write_of_a_burst_changes_nothing() -> None:
    assert titles(clean(), "crash") == [
        "the controller is killed after the create of configmaps a (number 1) is committed",
        "the controller is killed after the create of secrets a (number 1) is committed",
    ]


def test_a_rule_about_a_creation_names_no_object_because_its_url_does_not() -> None:
    [crash, *_] = plans(considered(clean()), ["crash"])
    assert crash.faults[0]["match"] == {
        "user": "controller*", "verbs": ["create"], "resource": CONFIGS, "subresource": "", "namespace": "default",
    }  # fmt: skip


def test_answers_are_lost_of_each_kind_of_write() -> None:
    lost = plans(considered(clean()), ["ambiguous"])
    assert {(plan.about[1], plan.about[2]) for plan in lost} == {
        ("create", CONFIGS), ("create", SECRETS), ("patch", WIDGETS),
    }  # fmt: skip
    assert all(plan.faults[0]["reset"] == "after" for plan in lost)


def test_a_state_that_nothing_contradicts_is_not_worth_a_stale_view() -> None:
    assert titles(clean(), "stale") == []


def test_a_deletion_that_is_followed_by_a_creation_is_worth_a_stale_view() -> None:
    script = clean()
    script.step = 3
    script.write("workload", "patch", WIDGETS, "a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    script.write("controller", "delete", WIDGETS, "a")
    script.write("workload", "create", WIDGETS, "a", spec={"size": 1})
    found = [plan for plan in plans(considered(script), ["stale"]) if "its deletion began" in plan.title]
    assert found
    assert found[0].moves == (
        {
            "when": {
                "updated": WIDGETS, "name": "a", "namespace": "default", "changed": {"metadata.deletionTimestamp": {}},
            },
            "mark": "old",
        },
        {
            "when": {"created": WIDGETS, "name": "a", "namespace": "default", "nth": 2},
            "view": {"resource": WIDGETS, "from": "old"},
            "restart": True,
        },
    )  # fmt: skip


def test_a_state_that_the_controller_has_acted_on_may_be_missed() -> None:
    assert titles(clean(), "unobserved") == [
        "the controller does not see of widgets a that spec.size went from 2 to 1: only what came before, and that then "
        "status.size went from 2 to 1"
    ]


def test_transitions_say_what_has_changed() -> None:
    found = transitions(considered(clean()))[ObjectPlace(WIDGETS, "default", "a")]
    assert [each.what for each in found] == [
        "it was created", "status changed", "spec.size went from 2 to 1", "status.size went from 2 to 1",
    ]  # fmt: skip


def test_what_the_controller_makes_is_deleted_and_changed_behind_its_back() -> None:
    assert titles(clean(), "drift") == [
        "configmaps a is deleted behind the controller's back",
        "secrets a is deleted behind the controller's back",
        "data.size of configmaps a becomes '2-drifted' behind the controller's back",
        "data.token of secrets a becomes 'one-drifted' behind the controller's back",
    ]


def test_classes_take_turns() -> None:
    order = [plan.klass for plan in plans(considered(clean()))]
    assert order[: len(set(order))] == list(dict.fromkeys(order))


def test_every_plan_can_be_written_and_read() -> None:
    for plan in plans(considered(clean())):
        assert parse(plan.value).value == plan.value


def deleted_and_created_again() -> Script:
    script = clean()
    script.step = 3
    script.write("workload", "delete", WIDGETS, "a")
    script.step = 4
    script.write("workload", "create", WIDGETS, "a", spec={"size": 1})
    script.write("controller", "create", CONFIGS, "b", data={"size": "1"})
    script.write("controller", "create", SECRETS, "b", data={"token": "x"})
    return script


def test_an_old_view_comes_also_when_the_controller_has_acted_on_the_new_state() -> None:
    found = plans(considered(deleted_and_created_again()), ["stale"])
    seen = {plan.title: plan for plan in found}
    title = (
        "the controller starts again when widgets a: it was created, and it has written secrets b, and sees widgets as it was "
        "when it was deleted"
    )
    assert seen[title].moves[1]["when"] == {"created": SECRETS, "name": "b", "namespace": "default"}
    assert title.replace(", and it has written secrets b", "") in seen


def test_triggers_count_from_the_first_step_on() -> None:
    found = transitions(considered(deleted_and_created_again()))[ObjectPlace(WIDGETS, "default", "a")]
    assert found[-1].trigger == {"created": WIDGETS, "name": "a", "namespace": "default", "nth": 2}
    script = clean()
    for n, change in enumerate(script.changes):
        script.changes[n] = change._replace(step=0)
    assert transitions(considered(script)) == {}


def test_what_ends_an_unobserved_state_does_not_depend_on_it() -> None:
    """The deletion is followed by what the controller does about it, which does not come if it has not seen it."""
    script = clean()
    script.step = 3
    script.write("workload", "patch", WIDGETS, "a", spec={"size": 0})
    script.write(
        "controller", "patch", WIDGETS, "a", subresource="status", status={"size": 0},
        why=[("watch", 16, "MODIFIED", WIDGETS, "a")],
    )  # fmt: skip
    script.step = 4
    script.write("workload", "patch", WIDGETS, "a", spec={"size": 3})
    assert [title for title in titles(script, "unobserved") if "from 1 to 0:" in title] == [
        "the controller does not see of widgets a that spec.size went from 1 to 0: only what came before, and that then "
        "spec.size went from 0 to 3"
    ]


def test_reads_are_refused_at_the_start_and_when_there_is_something_to_do() -> None:
    recording = clean().recording(requests=[("list", CONFIGS, 200, 3), ("list", SECRETS, 200, 1)])
    found = plans(consider(recording, Mask(), steps=2), ["refused"])
    later = [plan for plan in found if plan.moves]
    assert [plan.title for plan in later] == [
        "list of configmaps is refused with InternalError once, from when widgets a: it was created",
        "list of configmaps is refused with InternalError 3 times, from when widgets a: it was created",
    ]
    assert later[0].moves[0]["when"] == {"created": WIDGETS, "name": "a", "namespace": "default"}
    assert {plan.about[2] for plan in found if not plan.moves} == {CONFIGS, SECRETS}
