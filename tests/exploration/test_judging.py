"""How a run is judged against the clean ones, by small recordings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from noxu.exploration.findings import CleanRuns, is_done
from noxu.exploration.judging import clean_runs, judge, judge_clean
from noxu.exploration.masks import learn
from noxu.exploration.plans import CLEAN, RunPlan
from noxu.exploration.recording import Life, RunRecording, StepResult
from tests.exploration.recordings import CLAIMS, CONFIGS, SECRETS, WIDGETS, Script, clean
from tests.rows import rows

PLAN = RunPlan("crash", "something happens")


def two_clean_runs() -> CleanRuns:
    recordings = [clean("one").recording(), clean("two").recording()]
    return clean_runs(recordings, learn(recordings))


def unchanged() -> Script:
    return clean("three")


def another_past(author: str) -> Script:
    """A revision that is kept, of a state that was there for a while."""
    script = clean()
    script.write(author, "create", "controllerrevisions.apps", "a-5d8f", revision=2)
    return script


def without_the_secret() -> Script:
    script = Script()
    for change in clean().changes:
        if change.place.resource != SECRETS:
            script.changes.append(change)
    script.there = {place: value for place, value in clean().there.items() if place.resource != SECRETS}
    script.step = 2
    return script


def one_more_config() -> Script:
    script = clean()
    script.write("controller", "create", CONFIGS, "a-2")
    return script


def another_size() -> Script:
    script = clean()
    script.write("controller", "patch", CONFIGS, "a", data={"size": "9"})
    return script


def a_claim_is_deleted() -> Script:
    script = clean()
    script.write("statefulset-controller", "create", CLAIMS, "data-a-0")
    script.write("controller", "delete", CLAIMS, "data-a-0", why=[("watch", 14, "MODIFIED", WIDGETS, "a")])
    return script


def made_twice() -> Script:
    script = clean()
    script.write("controller", "delete", CONFIGS, "a")
    script.write("controller", "create", CONFIGS, "a", data={"size": "2"})
    return script


def collected_when_nothing_uses_it() -> Script:
    """The collector asks for the deletion of a claim, and the one that protects claims removes the finalizer."""
    script = clean()
    script.write("statefulset-controller", "create", CLAIMS, "data-a-0")
    waiting = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["kubernetes.io/pvc-protection"]}
    script.write("garbage-collector-controller", "delete", CLAIMS, "data-a-0")
    change = script.changes.pop()
    before = change.before or {}
    script.changes.append(change._replace(after={**before, "metadata": {**before["metadata"], **waiting}}))
    script.there[change.place] = script.changes[-1].after or {}
    script.write("persistentvolumeclaim-protection-controller", "delete", CLAIMS, "data-a-0")
    return script


def left_by_the_collector() -> Script:
    """A deletion with the policy Orphan: the controller asks for it, and the garbage collector ends it."""
    script = clean()
    script.write("controller", "delete", CONFIGS, "a")
    change = script.changes.pop()
    waiting = {**(change.before or {}), "metadata": {"uid": "uid-11", "finalizers": ["orphan"]}}
    script.changes.append(change._replace(after=waiting))
    script.there[change.place] = waiting
    script.write("garbage-collector-controller", "delete", CONFIGS, "a")
    return script


def let_go_when_somebody_deletes_it() -> Script:
    """The workload asks for a deletion, which the controller ends by removing its finalizer."""
    script = clean()
    waiting = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"]}
    script.write("workload", "delete", WIDGETS, "a")
    change = script.changes.pop()
    before = change.before or {}
    script.changes.append(change._replace(after={**before, "metadata": {**before["metadata"], **waiting}}))
    script.there[change.place] = script.changes[-1].after or {}
    script.write("controller", "delete", WIDGETS, "a")
    script.changes[-1] = script.changes[-1]._replace(verb="patch")
    return script


def a_report_and_a_wish() -> Script:
    """What the controller reports of an object, and what another controller writes, follow from what it wants."""
    script = clean()
    script.write("kubelet", "create", CONFIGS, "0-first-by-name")
    script.write("controller", "patch", WIDGETS, "a", subresource="status", status={"size": 9})
    script.write("controller", "patch", SECRETS, "a", type="other")
    return script


def collected() -> Script:
    script = clean()
    script.write("controller", "create", CONFIGS, "late", uid="uid-late")
    script.write("garbage-collector-controller", "delete", CONFIGS, "late")
    return script


@rows(
    "run, sentences",
    [
        (unchanged, []),
        (without_the_secret, ["secrets default/a is missing after step 1"]),
        (
            one_more_config,
            [
                "the controller created configmaps default/a-2 1 times instead of 0, once more at revision 16",
            ],
        ),
        (
            another_size,
            [
                "configmaps default/a differs at the end: data.size is '9' instead of '2' (updated by the controller at revision 16)"
            ],
        ),
        (
            a_claim_is_deleted,
            [
                "the controller deleted persistentvolumeclaims default/data-a-0 at revision 17, after a watch had delivered "
                "widgets.example.com default/a (MODIFIED) at revision 14; at 15 the object had been changed"
            ],
        ),
        (
            made_twice,
            ["the controller deleted configmaps default/a at revision 16"],
        ),
        (lambda: another_past("statefulset-controller"), []),
        (
            lambda: another_past("controller"),
            [
                "the controller created controllerrevisions.apps default/a-5d8f 1 times instead of 0, once more at revision 16"
            ],
        ),
        (collected, []),
        (collected_when_nothing_uses_it, []),
        (
            let_go_when_somebody_deletes_it,
            ["widgets.example.com default/a is missing at the end (deleted by the controller at revision 17)"],
        ),
        (left_by_the_collector, ["the controller deleted configmaps default/a at revision 16"]),
        (
            a_report_and_a_wish,
            [
                "secrets default/a differs at the end: type is 'other' instead of absent (updated by the controller at "
                "revision 18)",
                "widgets.example.com default/a differs at the end: status.size is 9 instead of 1 (updated by the controller "
                "at revision 17)",
                "configmaps default/0-first-by-name is left at the end (created by kubelet at revision 16)",
            ],
        ),
    ],
    ids=[
        "nothing has happened",
        "an object is missing",
        "an object is left",
        "a field differs",
        "something is deleted after an old event",
        "something is deleted and made again",
        "a controller of the cluster keeps another past",
        "the program itself keeps another past",
        "the garbage collector takes away what came too late",
        "the garbage collector takes away what another one protects",
        "who removes the last finalizer has not asked for the end",
        "what waits for a finalizer counts once, when it begins",
        "what the controller wants comes first",
    ],
)
def test_writes_and_ends_are_compared(run: Callable[[], Script], sentences: list[str]) -> None:
    assert [finding.sentence for finding in judge(two_clean_runs(), PLAN, run().recording())] == sentences


OF_WIDGETS = ({"when": {"step": 1}, "view": {"resource": WIDGETS, "from": "old"}, "restart": True},)
OF_CONFIGS = ({"when": {"step": 1}, "view": {"resource": SECRETS}, "views": [{"resource": CONFIGS, "from": "old"}]},)
OF_POD = ("watch", 17, "MODIFIED", "pods", "a-0")
OF_WIDGET = ("watch", 14, "MODIFIED", WIDGETS, "a")
OF_CONFIG = ("watch", 11, "ADDED", CONFIGS, "a")


@rows(
    "moves, why, cause",
    [
        ((), [OF_POD, OF_WIDGET], "a watch had delivered widgets.example.com default/a (MODIFIED) at revision 14; at 15 the object"),
        ((), [OF_POD], "a watch had delivered pods default/a-0 (MODIFIED) at revision 17; at 18 the object"),
        (OF_WIDGETS, [OF_CONFIG, OF_WIDGET], "a watch had delivered widgets.example.com default/a (MODIFIED) at revision 14; at 15 the object"),
        (OF_CONFIGS, [OF_WIDGET, OF_CONFIG], "a watch had delivered configmaps default/a (ADDED) at revision 11; at 16 the object"),
        (OF_WIDGETS, [OF_POD, ("list", 10, "", WIDGETS, "")], "it had listed widgets.example.com at revision 10; at 13 widgets.example.com default/a"),
        ((), [OF_POD, ("list", 10, "", WIDGETS, "")], "a watch had delivered pods default/a-0 (MODIFIED) at revision 17; at 18 the object"),
    ],
    ids=[
        "not a pod that has changed since, too",
        "a pod, if nothing else was old",
        "what the plan has made old, and not what came later",
        "each of its views",
        "a list, if the plan has made it old",
        "another list has not",
    ],
)  # fmt: skip
def test_the_cause_is_the_old_state_that_matters(
    moves: tuple[Any, ...], why: list[tuple[str, int, str, str, str]], cause: str
) -> None:
    script = clean()
    script.write("controller", "patch", CONFIGS, "a", data={"size": "2", "more": "3"})
    script.write("kubelet", "create", "pods", "a-0")
    script.write("kubelet", "patch", "pods", "a-0", subresource="status", status={"phase": "Running"})
    script.write("controller", "delete", SECRETS, "a", why=why)
    [deleted, *_] = judge(two_clean_runs(), RunPlan("stale", "", moves=moves), script.recording())
    assert (
        deleted.sentence == f"the controller deleted secrets default/a at revision 19, after {cause} had been changed"
    )


@rows(
    "more, sentences",
    [
        ({"lives": [Life(0, 1, planned=False)]}, ["the controller ended with status 1"]),
        ({"lives": [Life(0, 137, planned=True)]}, []),
        (
            {"lives": [Life(0, 2, planned=False)], "output": "panic: nil map\n\ngoroutine 1"},
            ["the controller panicked: panic: nil map"],
        ),
        (
            {"steps": [StepResult("start", 1.0, never_idle="the server is not idle")]},
            ["after start the controller did not become idle within 1 s: the server is not idle"],
        ),
        (
            {"steps": [StepResult("step 1: wait Widget a", 30.0, "widgets a is not Ready\nits status")]},
            ["step 1: wait Widget a did not succeed: widgets a is not Ready"],
        ),
        (
            {"broken": [("a claim is deleted", "at revision 12")]},
            ["a claim is deleted (at revision 12)"],
        ),
    ],
    ids=[
        "it ends",
        "it is killed by the plan",
        "it panics",
        "it is never idle",
        "a step fails",
        "an invariant does not hold",
    ],
)
def test_programs_and_steps_are_judged(more: dict[str, Any], sentences: list[str]) -> None:
    recording = clean().recording(**more)
    assert [finding.sentence for finding in judge(two_clean_runs(), PLAN, recording)] == sentences
    assert [finding.sentence for finding in judge_clean(recording)] == sentences


def test_a_step_that_fails_says_what_the_cluster_warns_of() -> None:
    steps = [StepResult("start", 0.1), StepResult("wait StatefulSet db", 0.1, "waited 30 s; now it is\nstatus: {}")]
    warned = 'FailedCreate statefulsets db: serviceaccount "db" not found'
    [finding] = judge_clean(Script().recording(steps=steps, warnings=[warned]))
    assert finding.sentence == "wait StatefulSet db did not succeed: waited 30 s"
    assert finding.details == (f"warning: {warned}", "status: {}")


@rows(
    "known, number",
    [({}, 1), ({"is_outdated": True}, 0), ({"tries_again": True}, 0)],
    ids=["the controller sees the present", "it sees the past", "it sleeps before another attempt"],
)
def test_a_step_is_compared_unless_the_controller_cannot_know_better(known: dict[str, Any], number: int) -> None:
    plan = RunPlan("unobserved", "", moves=({"when": {"step": 1}},))
    steps = [StepResult(f"step {n}", 0.1, **(known if n == 1 else {})) for n in range(4)]
    script = Script()
    for change in clean().changes:  # the first step makes another ConfigMap, which the second one puts right
        if change.step == 2 and script.step == 1:
            script.step = 2
            script.write("controller", "patch", CONFIGS, "a", data={"size": "2"})
        data = {"data": {"size": "1"}} if change.place.resource == CONFIGS else {}
        fields = {name: value for name, value in (change.after or {}).items() if name != "metadata"}
        script.write(
            change.author, change.verb, change.place.resource, "a", subresource=change.subresource, **fields | data
        )
    assert len(judge(two_clean_runs(), plan, script.recording(steps=steps))) == number


def comes_and_goes(*secrets: int, steps: int = 3) -> Script:
    """A Widget is created, deleted and created again; a Secret is made in some of the steps, and stays."""
    script = Script()
    for step, verb in enumerate(("create", "delete", "create")[:steps], start=1):
        script.step = step
        script.write("workload", verb, WIDGETS, "a")
        if step in secrets:
            script.write("controller", "create", SECRETS, "a")
    return script


@rows(
    "run, sentences",
    [
        (comes_and_goes(3), []),
        (comes_and_goes(), ["secrets default/a is missing at the end"]),
        (comes_and_goes(steps=2), []),
    ],
    ids=["it is made when the Widget is created anew", "it is not made then, either", "the Widget is not created anew"],
)
def test_nothing_is_missing_that_was_wanted_only_while_the_controller_did_not_see_it(
    run: Script, sentences: list[str]
) -> None:
    recording = comes_and_goes(1, steps=max(change.step for change in run.changes)).recording()
    known = clean_runs([recording, recording], learn([recording, recording]))
    view = {"resource": WIDGETS, "namespace": "default", "name": "a", "hold": True}
    moves = ({"when": {"step": 1}, "view": view, "through": 2}, {"when": {"deleted": WIDGETS}, "release": True})
    found = judge(known, RunPlan("unobserved", "", moves=moves), run.recording())
    assert [finding.sentence for finding in found] == sentences


def scaled(*, in_vain: bool = False, lost: bool = False, early: bool = False) -> tuple[Script, int]:
    """A claim goes with the size and comes again. Returns the revision at which an old view begins, too.

    `in_vain`: an old view makes it once more before the size grows. `lost`: because of one it is deleted afterwards.
    `early`: that begins before what follows from the new size.
    """

    def claim(author: str, verb: str, uid: str = "") -> int:
        return script.write(author, verb, CLAIMS, "data-a-1", uid=uid).revision

    script = clean()
    claim("statefulset-controller", "create", "first")
    script.step = 3
    begins = script.write("workload", "patch", WIDGETS, "a", spec={"size": 0}).revision
    claim("controller", "delete")
    if in_vain:
        claim("statefulset-controller", "create", "in vain")
        claim("controller", "delete")
    script.step = 4
    grown = script.write("workload", "patch", WIDGETS, "a", spec={"size": 3}).revision
    made = claim("statefulset-controller", "create", "second")
    if lost:
        begins = grown if early else made
        claim("controller", "delete")
        claim("statefulset-controller", "create", "third")
    return script, begins


@rows(
    "happens, sentences",
    [
        (["in_vain"], []),
        (["lost"], [f"the controller deleted {CLAIMS} default/data-a-1 at revision 21, 2 times instead of 1"]),
        (["lost", "early"], [f"the controller deleted {CLAIMS} default/data-a-1 at revision 21, 2 times instead of 1"]),
    ],
    ids=["what is made in vain is taken back", "what was there before is taken away", "so is what is always made then"],
)
def test_what_an_old_view_has_made_may_be_taken_back(happens: list[str], sentences: list[str]) -> None:
    usual = [scaled()[0].recording()]
    move = {"when": {"updated": WIDGETS, "name": "a"}, "view": {"resource": WIDGETS}}
    script, begins = scaled(**dict.fromkeys(happens, True))
    recording = script.recording(fired=[{"move": move, "revision": begins}])
    found = judge(clean_runs(usual, learn(usual)), RunPlan("stale", "", moves=(move,)), recording)
    assert [finding.sentence for finding in found] == sentences


def deleted_with_its_widget(*, early: bool = False, late: bool = False) -> Script:
    """The Secret goes with the Widget, in the step after that of its change."""
    script = clean()
    script.step = 3
    script.write("workload", "patch", WIDGETS, "a", spec={"size": 0})
    if early:
        script.write("controller", "delete", SECRETS, "a")
    script.step = 4
    script.write("workload", "delete", WIDGETS, "a")
    if not early and not late:
        script.write("controller", "delete", SECRETS, "a")
    script.step = 5
    script.write("workload", "create", WIDGETS, "a", spec={"size": 1})
    if late:
        script.write("controller", "delete", SECRETS, "a")
    return script


@pytest.mark.parametrize(
    ("run", "sentences"),
    [
        (
            deleted_with_its_widget(early=True),
            ["the controller deleted secrets default/a at revision 17, earlier than in clean runs"],
        ),
        (deleted_with_its_widget(late=True), []),
    ],
    ids=["too early: it was needed until then", "late"],
)
def test_what_is_deleted_too_early_is_found(run: Script, sentences: list[str]) -> None:
    usual = [deleted_with_its_widget().recording()]
    found = judge(clean_runs(usual, learn(usual)), PLAN, run.recording())
    assert [finding.sentence for finding in found if finding.kind == "deleted"] == sentences


@pytest.mark.parametrize(
    ("statuses", "kinds"), [((), ["not restored", "stuck"]), ((1,), ["exited", "not restored", "stuck"])]
)
def test_what_is_not_restored_explains_why_a_later_step_waits_in_vain(
    statuses: tuple[int, ...], kinds: list[str]
) -> None:
    at = {"kind": CONFIGS, "name": "a", "namespace": "default"}
    plan = RunPlan("drift", "", steps=({"after": 2, "steps": [{"delete": at}]},))
    script = clean()
    script.step = 3
    script.write("workload", "delete", CONFIGS, "a")
    failures = ["", "", "", "", "waited 30 s until it exists; it does not exist", ""]
    steps = [StepResult(f"step {n}", 0.1, failure) for n, failure in enumerate(failures)]
    lives = [Life(0, status, planned=False) for status in (*statuses, None)]
    found = judge(two_clean_runs(), plan, script.recording(steps=steps, lives=lives))
    assert [finding.kind for finding in found] == kinds


def test_what_a_plan_deletes_may_be_made_again() -> None:
    at = {"kind": CONFIGS, "name": "a", "namespace": "default"}
    plan = RunPlan("drift", "", steps=({"after": 2, "steps": [{"delete": at}]},))
    script = clean()
    script.step = 3
    script.write("workload", "delete", CONFIGS, "a")
    script.write("controller", "create", CONFIGS, "a", data={"size": "2"})
    assert judge(two_clean_runs(), plan, script.recording()) == []


@rows(
    "who_reports, found",
    [
        ("statefulset-controller", []),  # it may take time until pods are ready again
        ("controller", ["configmaps default/a was changed behind the controller's back, and stays so: status.ready is 0 instead of 1"]),
    ],
)  # fmt: skip
def test_a_controller_restores_no_status_that_others_write(who_reports: str, found: list[str]) -> None:
    def report(script: Script, ready: int) -> None:
        script.write(who_reports, "patch", CONFIGS, "a", subresource="status", status={"ready": ready})

    without_fault, script = clean(), clean()
    for each in (without_fault, script):  # a status that comes and goes with its object is no report
        report(each, 0)
        each.write("controller", "delete", CONFIGS, "a")
        each.write("controller", "create", CONFIGS, "a", data={"size": "2"}, status={"ready": 0})
    report(without_fault, 1)
    at = {"kind": CONFIGS, "name": "a", "namespace": "default"}
    plan = RunPlan("drift", "", steps=({"after": 2, "steps": [{"delete": at}]},))
    report(script, 1)
    script.step = 3
    script.write("workload", "delete", CONFIGS, "a")
    script.write("controller", "create", CONFIGS, "a", data={"size": "2"})
    report(script, 0)
    script.step = 4
    report(script, 1)
    recordings = [without_fault.recording()]
    judged = judge(clean_runs(recordings, learn(recordings)), plan, script.recording())
    assert [each.sentence for each in judged if each.kind == "not restored"] == found


def test_a_note_of_when_something_was_made_again_is_no_difference() -> None:
    """As rabbitmq's operator leaves at a StatefulSet, and at a ConfigMap, if it was not the first one to make it."""
    at = {"kind": CONFIGS, "name": "a", "namespace": "default"}
    plan = RunPlan("drift", "", steps=({"after": 2, "steps": [{"delete": at}]},))
    script = clean()
    script.step = 3
    script.write("workload", "delete", CONFIGS, "a")
    noted = {"annotations": {"example.com/createdAt": "2026-11-28T09:00:00Z"}}
    script.write("controller", "create", CONFIGS, "a", data={"size": "2"}, metadata=noted)
    assert judge(two_clean_runs(), plan, script.recording()) == []
    noted["annotations"]["example.com/mode"] = "slow"
    script.write("controller", "patch", CONFIGS, "a", metadata=noted)
    [found] = judge(two_clean_runs(), plan, script.recording())
    assert found.sentence.endswith("stays so: metadata.annotations.example.com/mode is 'slow' instead of absent")


def test_what_is_not_made_again_is_said() -> None:
    at = {"kind": CONFIGS, "name": "a", "namespace": "default"}
    plan = RunPlan("drift", "", steps=({"after": 2, "steps": [{"delete": at}]},))
    script = clean()
    script.step = 3
    script.write("workload", "delete", CONFIGS, "a")
    assert [finding.sentence for finding in judge(two_clean_runs(), plan, script.recording())] == [
        "configmaps default/a was deleted behind the controller's back, and is not made again"
    ]


PAUSES = RunPlan("spec", "", steps=({"after": 1, "steps": [{"patch": {}}, {"patch": {}}]},))
"""A field is changed in step 2, and changed back in step 3."""


def changed_and_changed_back(*written: tuple[str, str, str, dict[str, Any]], back: bool = True) -> Script:
    script = Script()
    script.write("workload", "create", WIDGETS, "a", spec={"paused": False})
    script.write("controller", "create", CONFIGS, "a", data={"paused": "no"})
    script.step = 2
    script.write("workload", "patch", WIDGETS, "a", spec={"paused": True})
    script.write("controller", "patch", CONFIGS, "a", data={"paused": "yes"})
    script.write("controller", "create", CONFIGS, "note")
    script.step = 3
    script.write("workload", "patch", WIDGETS, "a", spec={"paused": False})
    if back:
        script.write("controller", "patch", CONFIGS, "a", data={"paused": "no"})
        script.write("controller", "delete", CONFIGS, "note")
    for author, resource, name, fields in written:
        script.write(author, "patch", resource, name, **fields)
    script.step = 4
    return script


@rows(
    "script, found",
    [
        (changed_and_changed_back(), []),
        (
            changed_and_changed_back(back=False),
            [
                "setting a field back does not lead back: data.paused is 'yes' instead of 'no' in configmaps default/a",
                "setting a field back does not lead back: configmaps default/note is there (created by the controller at revision 14)",
            ],
        ),
        (changed_and_changed_back(("controller", WIDGETS, "a", {"status": {"observedGeneration": 3}})), []),
        (
            changed_and_changed_back(("controller", WIDGETS, "a", {"status": {"last": "x"}})),
            [
                "setting a field back does not lead back: status.last is 'x' instead of absent in widgets.example.com default/a"
            ],
        ),
        (changed_and_changed_back(("statefulset-controller", CLAIMS, "data-a-2", {})), []),
    ],
    ids=[
        "all is as before",
        "it forgets what it has made",
        "generations are counted on",
        "the status remembers",
        "a StatefulSet keeps the claims of pods that are gone",
    ],
)
def test_setting_a_field_back_leads_back(script: Script, found: list[str]) -> None:
    assert [finding.sentence for finding in judge(two_clean_runs(), PAUSES, script.recording())] == found


def test_a_change_that_is_refused_is_no_fault_of_the_controller() -> None:
    steps = [StepResult("start", 0.1), StepResult("step 1", 0.1), StepResult("step 2", 0.1, "Invalid: spec.size")]
    recording = changed_and_changed_back(back=False).recording(steps=[*steps, StepResult("end", 0.1)])
    assert judge(two_clean_runs(), PAUSES, recording) == []
    assert not is_done(PAUSES, recording)
    [stuck] = judge(two_clean_runs(), PAUSES, clean().recording(steps=[*steps[:1], StepResult("step 1", 30.0, "no")]))
    assert stuck.sentence == "step 1 did not succeed: no"


@rows(
    "habit, plan, sentences",
    [
        (
            "hot_loops",
            PLAN,
            ["the controller has a bad habit: hot loop: widgets a, 20 times in 1 s"],
        ),
        ("hot_loops", PLAN._replace(moves=({},)), []),
        ("no_op_writes", PLAN, []),
        ("conflicts", PLAN, ["the controller has a bad habit: conflict: widgets a, 20 times in 1 s"]),
        ("conflicts", PLAN._replace(instances=2), []),
        ("fights", PLAN, ["the controller has a bad habit: fight: widgets a, 20 times in 1 s"]),
        ("fights", PLAN._replace(instances=2), []),
        ("early_retries", PLAN, []),
        ("polling", PLAN, []),
    ],
    ids=[
        "a hot loop",
        "with a view of the past it cannot know better",
        "writes that change nothing are harmless",
        "many conflicts",
        "two instances lose conflicts",
        "a fight",
        "two instances answer each other for a while",
        "an event comes before the time that Retry-After has asked for",
        "it polls as it does in clean runs",
    ],
)
def test_manners_are_judged_by_those_of_clean_runs(habit: str, plan: RunPlan, sentences: list[str]) -> None:
    usual = two_clean_runs()._replace(habits=frozenset({"polling"}))
    recording = clean().recording(habits=[(habit, 1, "widgets a, 20 times in 1 s")])
    assert [finding.sentence for finding in judge(usual, plan, recording)] == sentences


@pytest.mark.parametrize(("beyond", "number"), [(1, 0), (4, 0), (5, 1)])
def test_conflicts_are_counted_from_those_of_clean_runs_on(beyond: int, number: int) -> None:
    """As those of rabbitmq's operator: in a clean run there are four or five, which are tolerated, and by chance six."""
    asked = [
        ("update", WIDGETS, 409, 3),
        ("patch", CONFIGS, 409, 1),
        ("create", CONFIGS, 409, 9),
        ("get", WIDGETS, 200, 9),
    ]
    recordings = [clean().recording(requests=asked), clean().recording()]
    usual = clean_runs(recordings, learn(recordings))
    found = judge(usual, PLAN, clean().recording(habits=[("conflicts", beyond, "widgets a")]))
    assert len(found) == number


@rows(
    "finalizers, owner, sentences",
    [
        (["x"], "", ["configmaps default/a is left at the end (updated by the controller at revision 17)"]),
        ([], "uid-10", ["configmaps default/a is left at the end (updated by the controller at revision 17)"]),
    ],
    ids=["a finalizer is never removed", "an owned object outlives its owner"],
)
def test_what_a_deletion_leaves_behind_is_found(finalizers: list[str], owner: str, sentences: list[str]) -> None:
    def deleted(*, all_of_it: bool) -> Script:
        script = clean()
        script.write("workload", "delete", WIDGETS, "a")
        if all_of_it:
            script.write("controller", "delete", CONFIGS, "a")
        else:
            metadata = {"finalizers": finalizers, "ownerReferences": [{"uid": owner, "kind": "Widget", "name": "a"}]}
            script.write("controller", "patch", CONFIGS, "a", metadata=metadata)
        return script

    usual = [deleted(all_of_it=True).recording()]
    found = judge(clean_runs(usual, learn(usual)), PLAN, deleted(all_of_it=False).recording())
    assert [finding.sentence for finding in found] == sentences


@rows("klass, found", [("drift", []), ("crash", [f"{CLAIMS} default/data-a-0"])], ids=["a drift", "another plan"])
def test_what_only_a_drift_has_caused_may_be_taken_away(klass: str, found: list[str]) -> None:
    """A StatefulSet that was scaled up has made a claim, which its operator does not want."""
    at = {"kind": WIDGETS, "name": "a", "merge": {"spec": {"size": 3}}}
    plan = RunPlan(klass, "", steps=({"after": 2, "steps": [{"patch": at}]},) if klass == "drift" else ())
    recordings = [clean().recording()]
    judged = judge(clean_runs(recordings, learn(recordings)), plan, a_claim_is_deleted().recording())
    assert [each.subject for each in judged if each.kind == "deleted"] == found


SEVERAL = [
    ("one instead of another", ["a", "b"], ["c", "a"], "spec.names.* is 'c' instead of 'b'"),
    ("one too few", ["a", "b"], ["a"], "spec.names.* is not 'b'"),
    ("one too many", ["a"], ["a", "a"], "spec.names.* is also 'a'"),
    (
        "each one of another",
        [{"a": "1", "b": "1"}, {"a": "2", "b": "2"}],
        [{"a": "1", "b": "2"}, {"a": "2", "b": "1"}],
        "spec.names.*.b is ['2', '1'] instead of ['1', '2']",
    ),
    (
        "one of another, and another one",
        [{"a": "1", "b": "1"}, {"a": "2", "b": "2"}],
        [{"a": "1", "b": "2"}, {"a": "2", "b": "3"}],
        "spec.names.*.b is '3' instead of '1'",
    ),
    ("lines of a text", "a=1\nb=2\nc=3", "c=3\nb=4\na=1", "spec.names is 'b=4' instead of 'b=2'"),
]


@rows(("usual", "found", "sentence"), [row[1:] for row in SEVERAL], ids=[row[0] for row in SEVERAL])
def test_of_several_values_those_are_said_that_differ(usual: Any, found: Any, sentence: str) -> None:
    def made(names: Any) -> RunRecording:
        script = clean()
        script.write("controller", "create", CLAIMS, "a", spec={"names": names})
        return script.recording()

    judged = judge(clean_runs([made(usual)], learn([made(usual)])), CLEAN, made(found))
    assert [each.sentence.partition(": ")[2].partition(" (")[0] for each in judged] == [sentence]


FAILING = RunPlan("workload", "", steps=({"after": 1, "steps": [{"pod": {"name": "a-*", "fail": "crash-loop"}}]},))
DEPLOYMENTS = "deployments.apps"


def with_a_pod(restarts: int, *, replicas: int = 1, phase: str = "Ready") -> Script:
    script = clean()
    script.write("controller", "create", DEPLOYMENTS, "a", spec={"replicas": replicas}, status={"restarted": restarts})
    script.write("replicaset-controller", "create", "pods", "a-1", status={"restartCount": restarts})
    script.write("controller", "patch", WIDGETS, "a", subresource="status", status={"phase": phase})
    return script


@rows(
    "script, plan, found",
    [
        (with_a_pod(3), FAILING, []),
        (with_a_pod(3), PLAN, ["deployments.apps default/a", "pods default/a-1"]),
        (with_a_pod(3, replicas=2), FAILING, ["deployments.apps default/a"]),
        (with_a_pod(3, phase="Failed"), FAILING, ["widgets.example.com default/a"]),
    ],
    ids=[
        "pods that were made to fail have restarted",
        "otherwise that is a difference",
        "the spec of the Deployment is compared",
        "so is what the controller says of it",
    ],
)
def test_what_failing_pods_remember_is_not_held_against_the_controller(
    script: Script, plan: RunPlan, found: list[str]
) -> None:
    usual = [with_a_pod(0).recording()]
    assert [each.subject for each in judge(clean_runs(usual, learn(usual)), plan, script.recording())] == found


READY, DEGRADED, OLD = (
    {"type": kind, "status": "True", "lastTransitionTime": "2026-11-28T22:17:07Z", "message": message}
    for kind, message in (("Ready", "all is well"), ("Degraded", "it was refused"), ("Ready", "it starts"))
)
WIDGET = "widgets.example.com default/a differs at the end: status.conditions.*."
BY_THE_CONTROLLER = " (updated by the controller at revision 16)"


@rows(
    "usual, found, sentence, details",
    [
        ([READY], [READY, DEGRADED], "type is also 'Degraded'", ["message is also 'it was refused'", "status is also 'True'"]),
        ([READY, DEGRADED], [READY], "type is not 'Degraded'", ["message is not 'it was refused'", "status is not 'True'"]),
        ([READY, DEGRADED], [OLD, DEGRADED], "message is 'it starts' instead of 'all is well'", []),
    ],
    ids=["an item more", "an item less", "another item"],
)  # fmt: skip
def test_of_lists_is_said_what_is_there_besides_and_what_is_not(
    usual: list[Any], found: list[Any], sentence: str, details: list[str]
) -> None:
    """The name of an item comes first, and the time of its last change is not among the first lines."""

    def recording(conditions: list[Any]) -> RunRecording:
        script = clean()
        script.write("controller", "patch", WIDGETS, "a", subresource="status", status={"conditions": conditions})
        return script.recording()

    clean_ones = [recording(usual)]
    [differs] = judge(clean_runs(clean_ones, learn(clean_ones)), PLAN, recording(found))
    assert differs.sentence == f"{WIDGET}{sentence}{BY_THE_CONTROLLER}"
    lines = [line.removeprefix("status.conditions.*.") for line in differs.details]
    assert [line for line in lines if "<time>" not in line] == details
    assert not any("<time>" in line for line in lines[:-1])


CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: a
  finalizers:
  - x
  annotations:
    a: 'one

      two'
spec:
  size: 1G
status:
  phase: Bound"""


@rows(
    "until, lines",
    [
        ("self.spec.size == '2G' is true", ["spec:", "  size: 1G", "status:"]),
        ("self.status.phase == 'Lost' is true", ["status:", "  phase: Bound", "spec:"]),
        ("Ready", ["spec:", "  size: 1G", "status:"]),
        ("it is deleted", ["metadata:", "  name: a", "  finalizers:"]),
    ],
    ids=["a field of the spec", "a field of the status", "a condition", "its end"],
)
def test_what_has_been_waited_for_is_shown_first(until: str, lines: list[str]) -> None:
    failure = f"PersistentVolumeClaim default/a: waited 30 s until {until}; now it is\n{CLAIM}"
    steps = [StepResult("start", 0.1), StepResult("step 1", 30.0, failure)]
    [stuck] = judge(two_clean_runs(), PLAN, clean().recording(steps=steps))
    assert stuck.sentence == f"step 1 did not succeed: PersistentVolumeClaim default/a: waited 30 s until {until}"
    assert list(stuck.details[:3]) == lines


@rows(
    "tries_again, kinds",
    [(False, ["stuck"]), (True, [])],
    ids=["a step fails", "the controller would have needed another attempt"],
)
def test_a_controller_that_sleeps_before_another_attempt_is_not_stuck(tries_again: bool, kinds: list[str]) -> None:
    """Nor is what is missing at the end held against it."""
    script = clean()
    script.write("controller", "delete", SECRETS, "a")
    steps = [StepResult("start", 0.1), StepResult("step 1", 0.1)]
    steps += [StepResult("step 2", 30.0, "waited 30 s", tries_again=tries_again), StepResult("end", 0.1)]
    found = judge(two_clean_runs(), PLAN, script.recording(steps=steps))
    assert [each.kind for each in found if each.kind != "deleted"] == kinds
