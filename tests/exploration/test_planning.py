"""Which plans are made of a recording, and why."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from noxu.exploration.planning import TURNS, plans
from noxu.exploration.plans import PlanError, parse
from noxu.exploration.recording import ObjectPlace, bursts
from noxu.exploration.transitions import Considered, burst_after, consider, transitions
from tests.exploration.recordings import CLAIMS, CONFIGS, SECRETS, WIDGETS, Script, clean
from tests.rows import rows


def considered(script: Script, **more: bool) -> Considered:
    return consider(script.recording(), **more)


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


def test_a_rule_about_what_is_called_otherwise_in_each_run_names_no_object() -> None:
    """A Job has the time of its creation in its name."""
    script = clean()
    made = {"creationTimestamp": "2026-11-28T22:17:07Z"}
    script.write("controller", "create", "jobs.batch", "a-1795904226", metadata=made)
    script.write("controller", "patch", "jobs.batch", "a-1795904226", spec={"suspend": True})
    found = {plan.title: plan for plan in plans(considered(script, has_nodes=True)) if "jobs" in plan.title}
    lost = found["the patch of jobs a-* (number 1) is committed, and the connection breaks before the answer"]
    assert "name" not in lost.faults[0]["match"]
    [failing] = [plan for title, plan in found.items() if title.endswith("crash-loop")]
    assert failing.title == "the pods of jobs a-* fail for a while: crash-loop"
    assert failing.steps[0]["steps"][0]["pod"]["name"] == "a-*-*"
    assert not [title for title in found if "behind the controller's back" in title]


def test_answers_are_lost_of_each_kind_of_write() -> None:
    lost = plans(considered(clean()), ["ambiguous"])
    assert {(plan.about[1], plan.about[2]) for plan in lost} == {
        ("create", CONFIGS), ("create", SECRETS), ("patch", WIDGETS),
    }  # fmt: skip
    assert all(plan.faults[0]["reset"] == "after" for plan in lost)


def test_a_state_that_nothing_contradicts_is_not_worth_a_stale_view() -> None:
    script = Script()
    script.write("workload", "create", WIDGETS, "a", spec={"size": 2})
    script.write("controller", "create", CONFIGS, "a", data={"size": "2"})
    assert titles(script, "stale") == []


def test_a_spec_that_has_changed_is_worth_a_view_of_before_when_the_controller_has_acted_on_it() -> None:
    [stale, whole, early, _] = plans(considered(clean()), ["stale"])
    assert stale.title == (
        "the controller starts again when widgets a: spec.size went from 2 to 1, and it has written widgets a, and sees "
        "widgets as it was before spec.size went from 2 to 1"
    )
    assert "sees everything" in whole.title
    assert "it has written" not in early.title
    wanted, acted = {"spec.size": {"from": 2, "to": 1}}, {"status.size": {"from": 2, "to": 1}}
    a = {"updated": WIDGETS, "name": "a", "namespace": "default"}
    assert stale.moves == (
        {"when": {**a, "changed": wanted}, "mark": "old", "before": True},
        {"when": {**a, "changed": acted}, "view": {"resource": WIDGETS, "from": "old"}, "restart": True},
    )


def deletion_and_creation() -> Script:
    script = clean()
    script.step = 3
    script.write("workload", "patch", WIDGETS, "a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    script.write("controller", "delete", WIDGETS, "a")
    script.step = 4
    script.write("workload", "create", WIDGETS, "a", spec={"size": 1})
    return script


def test_a_deletion_that_is_followed_by_a_creation_is_worth_a_stale_view() -> None:
    script = deletion_and_creation()
    [found] = [
        plan
        for plan in plans(considered(script), ["stale"])
        if "it was created, and sees widgets as it was when its deletion began" in plan.title
    ]
    assert found.moves == (
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


def test_a_deletion_that_the_controller_has_to_end_is_hidden_only_when_it_has_acted_on_it() -> None:
    """Until then the workload would change an object that ends."""
    script = clean()
    script.step = 3
    metadata = {"deletionTimestamp": "2026-11-28T22:17:07Z", "finalizers": ["x"]}
    script.write("workload", "patch", WIDGETS, "a", metadata=metadata)
    script.write("controller", "patch", CONFIGS, "a", data={"size": "0"})
    ends = [title for title in titles(script, "stale") if "its deletion began" in title]
    assert ends
    assert all("and it has written configmaps a" in title for title in ends)


def test_the_controller_starts_again_when_it_has_made_what_the_old_state_takes_away() -> None:
    script = deletion_and_creation()
    script.write("controller", "create", SECRETS, "b")
    script.write("controller", "create", CONFIGS, "b")
    script.write("controller", "patch", WIDGETS, "a", status={"size": 1})
    [found] = [
        plan
        for plan in plans(considered(script), ["stale"])
        if "written configmaps b, and sees widgets as it was when its del" in plan.title
    ]
    assert found.moves[1]["when"] == {"created": CONFIGS, "name": "b", "namespace": "default"}


def test_a_state_in_which_something_was_taken_away_comes_before_others() -> None:
    """What has replaced it would be taken away as well."""
    script = clean()
    script.step = 3
    script.write("workload", "patch", WIDGETS, "a", spec={"size": 0})
    script.write("controller", "delete", CONFIGS, "a")
    script.step = 4
    script.write("workload", "patch", WIDGETS, "a", spec={"size": 3})
    script.write("controller", "create", CONFIGS, "a", data={"size": "3"})
    worth = {plan.title: plan.worth for plan in plans(considered(script), ["stale"]) if "sees widgets" in plan.title}
    start = "the controller starts again when widgets a: spec.size went from"
    again = (
        f"{start} 0 to 3, and it has written configmaps a, and sees widgets as it was before spec.size went from 0 to 3"
    )
    first = (
        f"{start} 2 to 1, and it has written widgets a, and sees widgets as it was before spec.size went from 2 to 1"
    )
    gone = (
        f"{start} 1 to 0, and it has written configmaps a, and sees widgets as it was before spec.size went from 1 to 0"
    )
    assert worth[again] == max(worth.values()) > worth[gone] > worth[first]


def test_other_shapes_come_before_a_second_plan_of_a_shape() -> None:
    script = clean()
    script.step = 3
    script.write("controller", "create", CONFIGS, "b", data={"size": "2"})
    script.write("controller", "create", SECRETS, "b", data={"token": "two"})
    deleted = [title for title in titles(script, "drift") if "is deleted" in title]
    assert [title.split(" is ")[0] for title in deleted] == ["configmaps a", "secrets a", "configmaps b", "secrets b"]


def test_what_is_created_with_other_fields_has_another_shape() -> None:
    """And of several objects of a kind, the first may stand for all: a crash before the last one says more."""
    script = Script()
    script.write("workload", "create", WIDGETS, "a", spec={"size": 1})
    for name, key in (("user", "password"), ("authority", "key"), ("other-authority", "key"), ("store", "blob")):
        script.write("controller", "create", SECRETS, name, data={key: "x"})
    script.write("controller", "patch", WIDGETS, "a", subresource="status", status={"size": 1})
    assert [(plan.title.split()[9], plan.worth) for plan in plans(considered(script), ["crash"])] == [
        ("user", 2.5), ("authority", 2.5), ("other-authority", 2.1), ("store", 2.0),
    ]  # fmt: skip


def test_what_is_another_value_in_each_run_is_no_part_of_a_trigger() -> None:
    """A revision in a label."""
    script = clean()
    script.write("controller", "patch", CONFIGS, "a", metadata={"labels": {"owner": "216"}})
    script.write("controller", "patch", CONFIGS, "a", metadata={"labels": {"owner": "277"}})
    moments = [plan.moves[1]["when"] for plan in plans(considered(script), ["stale"]) if "configmaps a" in plan.title]
    assert moments[0]["changed"] == {"metadata.labels.owner": {}}


def test_a_wish_may_be_missed_if_another_one_follows() -> None:
    assert titles(clean(), "unobserved") == [
        "the controller does not see of widgets a that it was created: only what came before, and that then "
        "spec.size went from 2 to 1"
    ]
    [missed] = plans(considered(clean()), ["unobserved"])
    assert missed.moves == (
        {
            "when": {"step": 1},
            "view": {"resource": WIDGETS, "name": "a", "hold": True, "namespace": "default"},
            "through": 2,  # the workload does not wait until then for what the controller cannot do
        },
        {
            "when": {
                "updated": WIDGETS, "name": "a", "namespace": "default", "changed": {"spec.size": {"from": 2, "to": 1}},
            },
            "release": True,
        },
    )  # fmt: skip


def pod_that_ends() -> Script:
    """It ends in two steps, and the controller acts on the first."""
    script = Script()
    script.write("workload", "create", WIDGETS, "a", spec={"size": 1})
    script.write("controller", "create", "pods", "a-0", spec={"hostname": "a-0"}, status={"phase": "Running"})
    script.step = 2
    began = script.write("workload", "patch", "pods", "a-0", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    script.write("kubelet", "patch", "pods", "a-0", metadata={"deletionTimestamp": "2026-01-01T00:00:01Z"})
    script.write("controller", "delete", CLAIMS, "a-0", why=[("watch", began.revision, "MODIFIED", "pods", "a-0")])
    script.write("kubelet", "delete", "pods", "a-0")
    return script


def test_a_state_is_missed_until_it_is_another_one() -> None:
    assert [title for title in titles(pod_that_ends(), "unobserved") if "deletion began" in title] == [
        "the controller does not see of pods a-0 that its deletion began: only what came before, and that then it was deleted"
    ]


def test_a_state_that_lasts_until_the_object_goes_is_missed_until_the_next_one() -> None:
    assert [title for title in titles(deletion_and_creation(), "unobserved") if "from 2 to 1:" in title] == [
        "the controller does not see of widgets a that spec.size went from 2 to 1: only what came before, and that then its "
        "deletion began"
    ]


def test_of_states_that_are_alike_one_comes_first_that_makes_the_controller_delete_something() -> None:
    script = Script()
    script.write("workload", "create", WIDGETS, "a", spec={"size": 1})
    for name in ("a-0", "b-0", "c-0"):
        script.write("controller", "create", "pods", name, spec={"hostname": name})
        script.write("controller", "create", CLAIMS, name)
    for step, name in enumerate(("a-0", "b-0", "c-0"), 2):
        script.step = step
        script.write("workload", "patch", WIDGETS, "a", spec={"size": step})
        time = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
        ends = script.write("statefulset-controller", "patch", "pods", name, metadata=time)
        why = [("watch", ends.revision, "MODIFIED", "pods", name)]
        if name == "b-0":
            script.write("controller", "delete", CLAIMS, name, why=why)
        else:
            script.write("controller", "patch", WIDGETS, "a", status={"seen": name}, why=why)
        script.write("kubelet", "delete", "pods", name)
    ended = [plan for plan in plans(considered(script), ["unobserved"]) if "its deletion began" in plan.title]
    assert [plan.moves[0]["view"]["name"] for plan in ended] == ["b-0", "c-0"]


def test_a_deletion_that_the_controller_has_to_end_is_not_missed_before_a_creation() -> None:
    assert not [title for title in titles(deletion_and_creation(), "unobserved") if "that its deletion began" in title]


def test_a_burst_goes_on_while_the_workload_waits() -> None:
    script = clean()
    script.step = 3  # a step that waits
    script.write("controller", "create", SECRETS, "later")
    assert bursts(script.recording()) == [0, 1, 2, 2]
    crashes = titles(script, "crash")
    assert "the controller is killed after the patch of status of widgets a (number 2) is committed" in crashes
    assert not any("later" in title for title in crashes)


def test_a_deletion_that_waits_for_a_finalizer_is_worth_as_much_as_any() -> None:
    script = clean()
    script.step = 3
    script.write("workload", "patch", WIDGETS, "a", spec={"size": 3})
    script.write("controller", "delete", SECRETS, "a")
    change = script.changes[-1]
    value = {**(change.before or {}), "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
    script.changes[-1] = change._replace(after=value)
    script.write("controller", "patch", WIDGETS, "a", status={"size": 3})
    assert (
        titles(script, "crash")[0] == "the controller is killed after the delete of secrets a (number 1) is committed"
    )


def test_transitions_say_what_has_changed() -> None:
    found = transitions(considered(clean()))[ObjectPlace(WIDGETS, "default", "a")]
    assert [each.what for each in found] == [
        "it was created", "status changed", "spec.size went from 2 to 1", "status.size went from 2 to 1",
    ]  # fmt: skip


def test_a_wish_in_a_list_is_found_again() -> None:
    script = Script()
    script.write("workload", "create", WIDGETS, "a", spec={"racks": [{"name": "r", "size": 2}], "tags": ["x"]})
    script.write("workload", "patch", WIDGETS, "a", spec={"racks": [{"name": "r", "size": 1}], "tags": ["x"]})
    script.write("workload", "patch", WIDGETS, "a", spec={"racks": [{"name": "r", "size": 1}], "tags": ["x", "y"]})
    script.write("workload", "patch", WIDGETS, "a", spec={"racks": [], "tags": ["x", "y"]})
    script.write("controller", "patch", WIDGETS, "a", status={"conditions": [{"type": "Ready"}]})
    script.write("controller", "patch", WIDGETS, "a", status={"conditions": []})
    found = transitions(considered(script))[ObjectPlace(WIDGETS, "default", "a")]
    assert [(each.what, [*each.trigger.get("changed", ())]) for each in found] == [
        ("it was created", []),
        ("spec.racks[0].size went from 2 to 1", ["spec.racks"]),
        ("spec.tags[1] became y", ["spec.tags"]),
        ("spec.racks[0] went away", ["spec.racks"]),
        ("status changed", ["status"]),
    ]


def test_a_wish_outside_of_a_spec_is_one() -> None:
    """Some custom resources have no spec: all that is neither status nor metadata is wanted."""
    script = Script()
    script.write("workload", "create", WIDGETS, "a", targets=["one"])
    for step, targets in enumerate((["one", "two"], ["two"]), 2):
        script.step = step
        script.write("workload", "patch", WIDGETS, "a", targets=targets, status={"conditions": [{"type": str(step)}]})
        script.write("controller", "create", CONFIGS, f"a-{step}", data={"n": "1"})
    assert (
        "the controller does not see of widgets a that targets[1] became two: only what came before, and that then targets[0] went from one to two"
        in titles(script, "unobserved")
    )
    assert any(
        title.endswith("sees widgets as it was before targets[0] went from one to two")
        for title in titles(script, "stale")
    )


def test_what_the_controller_makes_is_deleted_and_changed_behind_its_back() -> None:
    assert titles(clean(), "drift") == [
        "configmaps a is deleted behind the controller's back",
        "secrets a is deleted behind the controller's back",
        "data.size of configmaps a becomes '2-drifted' behind the controller's back",
        "data.token of secrets a becomes 'one-drifted' behind the controller's back",
    ]


def test_keys_with_dots_are_found_again_and_drift() -> None:
    script = Script()
    script.write("workload", "create", WIDGETS, "a", metadata={"labels": {"app.kubernetes.io/name": "a"}})
    script.write("workload", "patch", WIDGETS, "a", metadata={"labels": {"app.kubernetes.io/name": "b"}})
    script.write("controller", "create", CONFIGS, "a", data={"nginx.conf": "x"})
    found = transitions(considered(script))[ObjectPlace(WIDGETS, "default", "a")]
    assert [(each.what, each.trigger.get("changed")) for each in found] == [
        ("it was created", None),
        (
            'metadata.labels["app.kubernetes.io/name"] went from a to b',
            {'metadata.labels["app.kubernetes.io/name"]': {}},
        ),
    ]
    assert """data["nginx.conf"] of configmaps a becomes 'x-drifted' behind the controller's back""" in titles(
        script, "drift"
    )


def pod_that_starts() -> Script:
    """A controller that watches pods acts when one runs."""
    script = Script()
    script.write("workload", "create", WIDGETS, "a", spec={"size": 1})
    script.write("controller", "create", "pods", "a-0", spec={"hostname": "a-0"}, status={"phase": "Pending"})
    where = {"hostIP": "10.0.0.1", "podIP": "10.1.0.1"}
    states: list[tuple[str, Any]] = [
        ("scheduler", {"spec": {"hostname": "a-0", "nodeName": "node-1"}}),
        ("kubelet", {"status": {"phase": "Running", **where}}),
        ("kubelet", {"status": {"phase": "Failed", **where}}),
    ]
    for author, fields in states:
        shown = script.write(author, "patch", "pods", "a-0", **fields)
        why = [("watch", shown.revision, "MODIFIED", "pods", "a-0")]
        script.write("controller", "patch", WIDGETS, "a", status={"seen": shown.revision}, why=why)
    return script


def test_where_a_pod_runs_is_no_state_that_a_controller_may_miss() -> None:
    missed = "the controller does not see of pods a-0 that {}: only what came before, and that then {}"
    running, failed = "status.phase went from Pending to Running", "status.phase went from Running to Failed"
    assert titles(pod_that_starts(), "unobserved") == [missed.format(running, failed)]


def test_where_a_pod_runs_is_a_state_for_who_reads_pods() -> None:
    recording = pod_that_starts().recording()
    recording = replace(recording, requests=[*recording.requests, ("get", "pods", 200, 1)])
    found = [plan.title for plan in plans(consider(recording), ["unobserved"])]
    assert any("of pods a-0 that spec.nodeName became node-1" in title for title in found)


def test_classes_take_turns() -> None:
    found = plans(considered(deleted_and_created_again()))
    taken = [(klass, len(list(of_class))) for klass, of_class in itertools.groupby(found, key=lambda plan: plan.klass)]
    assert {klass for klass, _ in taken} == {"crash", "ambiguous", "refused", "stale", "unobserved", "order", "drift"}
    assert taken[:7] == [(klass, TURNS.get(klass, 1)) for klass, _ in taken[:7]]
    assert taken[7][0] == taken[0][0]


def test_each_view_of_a_resource_says_less_than_the_one_before() -> None:
    """So those of another resource come, though each of them is worth less."""
    script = Script()
    script.write("workload", "create", WIDGETS, "a", spec={"size": 0})
    for size in range(1, 9):
        script.step = size
        script.write("workload", "patch", WIDGETS, "a", spec={"size": size})
        script.write("another", "patch", CONFIGS, "a", data={"size": str(size)})
        script.write(
            "controller", "patch", SECRETS, "a", data={"size": str(size)}, why=[("watch", 0, "", CONFIGS, "a")]
        )
    shown = [plan.about[1] for plan in plans(considered(script), ["stale"])]
    first = shown.index(CONFIGS)
    assert 2 < first < shown.count(WIDGETS) / 2


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
    assert found[0].trigger == {"created": WIDGETS, "name": "a", "namespace": "default"}
    assert found[-1].trigger == {"created": WIDGETS, "name": "a", "namespace": "default", "nth": 2}
    script = clean()
    for n, change in enumerate(script.changes):
        script.changes[n] = change._replace(step=0)
    assert transitions(considered(script)) == {}


@rows(
    "number, follow",
    [
        (0, [f"create {CONFIGS} a", f"create {SECRETS} a", f"patch {WIDGETS} a"]),
        (2, [f"patch {WIDGETS} a"]),
        (3, []),
        (4, [f"patch {WIDGETS} a"]),
        (6, []),
        (7, [f"create {CONFIGS} b", f"create {SECRETS} b"]),
    ],
    ids=[
        "what the workload creates",
        "a write of the controller in the midst of it",
        "its last one, before the workload does something else",
        "what the workload changes",
        "a deletion about which it does nothing",
        "another creation",
    ],
)
def test_a_burst_is_what_the_controller_writes_until_the_workload_does_something_else(
    number: int, follow: list[str]
) -> None:
    of_all = considered(deleted_and_created_again())
    found = burst_after(of_all, of_all.recording.changes[number])
    assert [f"{each.verb} {each.place.resource} {each.place.name}" for each in found] == follow


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


def test_each_kind_of_request_is_refused_once_and_more_often_with_each_error() -> None:
    """Those that show what others do come last."""
    recording = clean().recording(requests=[("update", CONFIGS, 200, 3)])
    found = [plan.about[4:] for plan in plans(consider(recording), ["refused"])]
    assert found == [
        ("Conflict", "1"),
        ("InternalError", "1"),
        ("Conflict", "3"),
        ("ServiceUnavailable", "3"),
        ("TooManyRequests", "3"),
        ("Forbidden", "3"),
        ("InternalError", "6"),
        ("ServiceUnavailable", "1"),
        ("TooManyRequests", "1"),
        ("Forbidden", "1"),
        ("InternalError", "3"),
    ]
    patched = plans(consider(clean().recording(requests=[("patch", CONFIGS, 200, 3)])), ["refused"])
    assert {plan.about[4] for plan in patched} == {error for error, _ in found} - {"Conflict"}
    listed = plans(consider(clean().recording(requests=[("list", CONFIGS, 200, 1)])), ["refused"])
    assert {plan.about[4:] for plan in listed} == {
        (error, times) for error in ("InternalError", "ServiceUnavailable", "TooManyRequests") for times in ("1", "3")
    }


def test_requests_of_a_subresource_are_of_a_kind_of_their_own() -> None:
    """A rule about both would hit only those that come first."""
    recording = clean().recording(requests=[("create", "pods/exec", 101, 1), ("update", WIDGETS, 200, 2)])
    found = {plan.title.partition(" is refused")[0]: plan for plan in plans(consider(recording), ["refused"])}
    matches = {title: plan.faults[0]["match"]["subresource"] for title, plan in found.items()}
    assert matches == {"create of exec of pods": "exec", "update of widgets": ""}


def test_reads_are_refused_at_the_start_and_when_there_is_something_to_do() -> None:
    recording = clean().recording(requests=[("list", CONFIGS, 200, 3), ("list", SECRETS, 200, 1)])
    found = plans(consider(recording), ["refused"])
    later = [plan for plan in found if plan.moves]
    assert [plan.title for plan in later] == [
        "list of configmaps is refused with InternalError once, from when widgets a: it was created",
        "list of configmaps is refused with InternalError 3 times, from when widgets a: it was created",
    ]
    assert later[0].moves[0]["when"] == {"created": WIDGETS, "name": "a", "namespace": "default"}
    assert {plan.about[2] for plan in found if not plan.moves} == {CONFIGS, SECRETS}


CONFLICT = {"name": "a", "match": {"resource": "widgets", "verbs": ["update"]}, "error": "Conflict", "times": 1}
FROZEN = {"match": {"resource": "widgets"}, "view": "freeze"}


@pytest.mark.parametrize(
    ("plan", "klass", "faults"),
    [
        ({"seed": 0, "rules": [CONFLICT]}, "refused", [CONFLICT]),
        ({"rules": [{"process": {"kill": "after"}}, CONFLICT]}, "crash", [{"process": {"kill": "after"}}, CONFLICT]),
        ({"rules": [FROZEN]}, "stale", [FROZEN]),
        ({"presets": ["restart"]}, "refused", [{"name": "restart", "from": "1s", "restart": "2s"}]),
    ],
    ids=["a refusal", "a crash", "a view", "a preset"],
)
def test_a_plan_of_faults_is_one(plan: dict[str, object], klass: str, faults: list[object]) -> None:
    found = parse(plan)
    assert (found.klass, list(found.faults)) == (klass, faults)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"presets": ["conflicts"]}, "rules: conflicts hits by chance"),
        ({"rules": [{"erorr": "Conflict"}]}, "faults: the faults are invalid: rules[0].erorr: there is no such field"),
        ({"rules": [], "sede": 1}, 'a plan has no "sede"'),
    ],
    ids=["chance", "a misspelt effect", "a misspelt field"],
)
def test_a_plan_of_faults_that_is_refused(plan: dict[str, object], message: str) -> None:
    with pytest.raises(PlanError) as refusal:
        parse(plan)
    assert message in str(refusal.value)


def test_pods_that_have_failed_are_again_what_their_annotations_say() -> None:
    """Made ready by hand, they would be ready without their operator."""
    script = Script()
    script.write("controller", "create", "statefulsets.apps", "a", spec={"replicas": 1})
    found = plans(considered(script, has_nodes=True), ["workload"])
    fates = [[step["pod"] for step in of_plan["steps"]] for plan in found for of_plan in plan.steps]
    recovered = {"name": "a-*", "recover": True}
    assert fates == [[{"name": "a-*", "fail": how}, recovered] for how in ("crash-loop", "never-ready")]
