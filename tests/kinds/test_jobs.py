"""batch/v1: selectors, specs, updates and statuses of Jobs; schedules of CronJobs."""

from __future__ import annotations

import pytest

from noxu.kinds.schedules import location_error, schedule_error
from noxu.values import Json, Object
from tests.kinds.objects import UID, create_messages, created, kind_of, merged, update_messages, updated
from tests.rows import rows

JOB = kind_of("batch/v1", "Job")
CRON_JOB = kind_of("batch/v1", "CronJob")
POD = {"containers": [{"name": "c", "image": "nginx"}], "restartPolicy": "Never"}
TEMPLATE: Json = {"template": {"spec": POD}}
LABELS = {
    "batch.kubernetes.io/controller-uid": UID,
    "batch.kubernetes.io/job-name": "x",
    "controller-uid": UID,
    "job-name": "x",
}


def given(**change: Json) -> Object:
    return {"metadata": {"name": "x"}, "spec": merged(TEMPLATE, change)}


def stored(status: Json = None, **change: Json) -> Object:
    found: Object = merged(created(JOB, given(**change)), {"status": status or {}})
    return found


def test_a_new_job_selects_its_pods() -> None:
    spec = stored()["spec"]
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": UID}}
    assert spec["template"]["metadata"]["labels"] == LABELS


def test_a_selector_may_be_chosen_by_hand() -> None:
    chosen = {"manualSelector": True, "selector": {"matchLabels": {"a": "b"}}}
    assert create_messages(JOB, given(**chosen, template={"metadata": {"labels": {"a": "b"}}})) == []
    spec = stored(**chosen)["spec"]
    assert (spec["selector"], spec["template"]["metadata"]) == (chosen["selector"], {})


INDEXED = {"completionMode": "Indexed", "completions": 3, "parallelism": 2}
RULE = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}


def policy(**change: Json) -> Json:
    return {"podFailurePolicy": {"rules": [merged(RULE, change)]}}


def success(**rule: Json) -> Json:
    return {**INDEXED, "successPolicy": {"rules": [rule]}}


FIRST = "spec.podFailurePolicy.rules[0]"
SPECS: list[tuple[str, Json, list[str]]] = [
    ("nothing", {}, []),
    ("pods that never end", {"template": {"spec": {"restartPolicy": "Always"}}}, ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"']),
    ("pods without policy", {"template": {"spec": {"restartPolicy": None}}}, ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"']),
    ("no containers", {"template": {"spec": {"containers": []}}}, ["spec.template.spec.containers: Required value"]),
    ("a negative number", {"parallelism": -1}, ["spec.parallelism: Invalid value: -1: must be greater than or equal to 0"]),
    ("a label of another Job", {"template": {"metadata": {"labels": {"job-name": "y"}}}}, [f'spec.template.metadata.labels[job-name]: Invalid value: {{"batch.kubernetes.io/controller-uid":"{UID}","batch.kubernetes.io/job-name":"x","controller-uid":"{UID}","job-name":"y"}}: must be \'x\'']),
    ("a selector of its own", {"selector": {"matchLabels": {"a": "b"}}}, [
        f'spec.selector: Invalid value: {{"matchLabels":{{"a":"b","batch.kubernetes.io/controller-uid":"{UID}"}}}}: `selector` not auto-generated',
        f'spec.template.metadata.labels: Invalid value: {{"batch.kubernetes.io/controller-uid":"{UID}","batch.kubernetes.io/job-name":"x","controller-uid":"{UID}","job-name":"x"}}: `selector` does not match template `labels`',
    ]),
    ("a mode that is none", {"completionMode": "x"}, ['spec.completionMode: Unsupported value: "x": supported values: "NonIndexed", "Indexed"']),
    ("indexes without number", {"completionMode": "Indexed", "parallelism": 1}, ["spec.completions: Required value: when completion mode is Indexed"]),
    ("a limit for indexes without indexes", {"backoffLimitPerIndex": 1}, ["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"]),
    ("failed indexes without limit", {**INDEXED, "maxFailedIndexes": 1}, ["spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified"]),
    ("more failed indexes than indexes", {**INDEXED, "backoffLimitPerIndex": 1, "maxFailedIndexes": 4}, ["spec.maxFailedIndexes: Invalid value: 4: must be less than or equal to completions"]),
    ("a manager without domain", {"managedBy": "x"}, ['spec.managedBy: Invalid value: "x": must be a domain-prefixed path (such as "acme.io/foo")']),
    ("a failure policy", policy(), []),
    ("a failure policy of pods that are restarted", {**policy(), "template": {"spec": {"restartPolicy": "OnFailure"}}}, ['spec.template.spec.restartPolicy: Invalid value: "OnFailure": only "Never" is supported when podFailurePolicy is specified']),
    ("no action", policy(action=None), [f'{FIRST}.action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]']),
    ("an action for indexes", policy(action="FailIndex"), [f'{FIRST}.action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set']),
    ("a rule about nothing", policy(onExitCodes=None), [f"{FIRST}: Invalid value: specifying one of OnExitCodes and OnPodConditions is required"]),
    ("success as a failure", policy(onExitCodes={"values": [0]}), [f"{FIRST}.onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator"]),
    ("exit codes in disorder", policy(onExitCodes={"values": [2, 1]}), [f"{FIRST}.onExitCodes.values: Invalid value: [2,1]: must be ordered"]),
    ("a container that is none", policy(onExitCodes={"containerName": "d"}), [f'{FIRST}.onExitCodes.containerName: Invalid value: "d": must be one of the container or initContainer names in the pod template']),
    ("a replacement that is none", {"podReplacementPolicy": "x"}, ['spec.podReplacementPolicy: Unsupported value: "x": supported values: "Failed", "TerminatingOrFailed"']),
    ("a replacement that excludes a failure policy", {**policy(), "podReplacementPolicy": "TerminatingOrFailed"}, ['spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"']),
    ("a success policy", success(succeededIndexes="0,2"), []),
    ("a success policy without indexes", {"successPolicy": {"rules": []}}, ['spec.successPolicy: Invalid value: {"rules":[]}: requires indexed completion mode']),
    ("a success policy of too large an index", success(succeededIndexes="0,3"), ['spec.successPolicy.rules[0].succeededIndexes: Invalid value: "0,3": error parsing succeededIndexes: too large index: "3"']),
    ("a success policy of more indexes than listed", success(succeededIndexes="0-1", succeededCount=3), ["spec.successPolicy.rules[0].succeededCount: Invalid value: 3: must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)"]),
]  # fmt: skip


@rows(("change", "expected"), [row[1:] for row in SPECS], ids=[row[0] for row in SPECS])
def test_jobs_are_validated(change: Json, expected: list[str]) -> None:
    assert create_messages(JOB, given(**change)) == expected


def test_names_of_indexed_pods_are_labels() -> None:
    job = {"metadata": {"name": "x" * 62}, "spec": merged(TEMPLATE, INDEXED)}
    host = f"{'x' * 62}-2"
    assert create_messages(JOB, job) == [
        f'metadata.name: Invalid value: "{"x" * 62}": will not able to create pod with invalid DNS label: {host}'
    ]


SUSPENDED = {"suspend": True}
UPDATES: list[tuple[str, Json, Json, Json, list[str]]] = [
    ("parallelism", {}, {}, {"parallelism": 2}, []),
    ("completions", {}, {}, {"completions": 2}, ["spec.completions"]),
    ("completions of indexes", INDEXED, {}, {"completions": 4}, ["spec.completions"]),
    ("completions of indexes and parallelism", INDEXED, {}, {"completions": 4, "parallelism": 4}, []),
    ("the mode", {"completions": 1, "parallelism": 1}, {}, {"completionMode": "Indexed"}, ["spec.completionMode"]),
    ("the manager", {}, {}, {"managedBy": "example.com/a"}, ["spec.managedBy"]),
    ("the image", {}, {}, {"template": {"spec": {"containers": {"0": {"image": "b"}}}}}, ["spec.template"]),
    ("nodes", {}, {}, {"template": {"spec": {"nodeSelector": {"a": "b"}}}}, ["spec.template"]),
    ("nodes while suspended", SUSPENDED, {}, {"template": {"spec": {"nodeSelector": {"a": "b"}}}}, []),
    ("an affinity to nodes while suspended", SUSPENDED, {}, {"template": {"spec": {"affinity": {"nodeAffinity": {}}}}}, []),
    ("an affinity to pods while suspended", SUSPENDED, {}, {"template": {"spec": {"affinity": {"podAffinity": {}}}}}, ["spec.template"]),
    ("resources while suspended", SUSPENDED, {}, {"template": {"spec": {"containers": {"0": {"resources": {"limits": {"cpu": "1"}}}}}}}, []),
    ("the image while suspended", SUSPENDED, {}, {"template": {"spec": {"containers": {"0": {"image": "b"}}}}}, ["spec.template"]),
    ("nodes while pods still run", SUSPENDED, {"active": 1}, {"template": {"spec": {"nodeSelector": {"a": "b"}}}}, ["spec.template"]),
]  # fmt: skip


@rows(("spec", "status", "change", "fields"), [row[1:] for row in UPDATES], ids=[row[0] for row in UPDATES])
def test_updates_of_jobs_are_validated(spec: Json, status: Json, change: Json, fields: list[str]) -> None:
    messages = update_messages(JOB, stored(status, **spec), {"spec": change})
    assert [message.split(": ")[0] for message in messages] == fields


def test_updates_of_jobs_say_what_is_immutable() -> None:
    assert update_messages(JOB, stored(**INDEXED), {"spec": {"completions": 4}}) == [
        "spec.completions: Invalid value: 4: can only be modified in tandem with spec.parallelism"
    ]
    assert update_messages(JOB, stored(), {"spec": {"completions": 4}}) == [
        "spec.completions: Invalid value: 4: field is immutable"
    ]
    (message,) = update_messages(JOB, stored(), {"spec": {"template": {"spec": {"hostname": "a"}}}})
    assert message.startswith(
        'spec.template: Invalid value: {"metadata":{"labels":{"batch.kubernetes.io/controller-uid"'
    )
    assert message.endswith(": field is immutable")


START, END = "2024-01-01T00:00:00Z", "2024-01-01T00:01:00Z"


def conditions(*kinds: str) -> Json:
    return [{"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": None} for kind in kinds]


COMPLETE = {"startTime": START, "completionTime": END, "conditions": conditions("SuccessCriteriaMet", "Complete")}
FAILED = {"startTime": START, "conditions": conditions("FailureTarget", "Failed")}
STATUSES: list[tuple[str, Json, Json, Json, list[str]]] = [
    ("complete", {}, {}, COMPLETE, []),
    ("failed", {}, {}, FAILED, []),
    ("complete without criteria", {}, {}, {**COMPLETE, "conditions": conditions("Complete")}, ["status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition"]),
    ("failed without target", {}, {}, {**FAILED, "conditions": conditions("Failed")}, ["status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition"]),
    ("complete without times", {}, {}, {"conditions": COMPLETE["conditions"]}, ["status.completionTime: Required value: completionTime is required for Complete jobs", "status.startTime: Required value: startTime is required for finished job"]),
    ("complete before it began", {}, {}, {**COMPLETE, "startTime": END, "completionTime": START}, [f'status.completionTime: Invalid value: "{START}": completionTime cannot be set before startTime']),
    ("complete with active pods", {}, {}, {**COMPLETE, "active": 1}, ["status.active: Invalid value: 1: active>0 is invalid for finished job"]),
    ("complete and failed", {}, {}, {**COMPLETE, "conditions": conditions("SuccessCriteriaMet", "Complete", "FailureTarget", "Failed")}, [
        "status.conditions: Invalid value: cannot set Complete=True and Failed=true conditions",
        "status.conditions: Invalid value: cannot set Complete=True and FailureTarget=true conditions",
        "status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and Failed=true conditions",
        "status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
    ]),
    ("a completion time of a running Job", {}, {}, {"startTime": START, "completionTime": END}, [f'status.completionTime: Invalid value: "{END}": cannot set completionTime when there is no Complete=True condition']),
    ("no longer complete", {}, COMPLETE, {"conditions": conditions("SuccessCriteriaMet"), "completionTime": None}, ["status.conditions: Invalid value: cannot disable the terminal Complete=True condition"]),
    ("fewer failures", {}, {"failed": 2}, {"failed": 1}, ["status.failed: Invalid value: 1: cannot decrease the failed counter"]),
    ("fewer successes", {}, {"succeeded": 2}, {"succeeded": 1}, ["status.succeeded: Invalid value: 1: cannot decrease the succeeded counter"]),
    ("fewer successes of an elastic Job", {**INDEXED, "parallelism": 3}, {"succeeded": 2}, {"succeeded": 1}, []),
    ("another completion time", {}, COMPLETE, {"completionTime": "2025-01-01T00:00:00Z"}, ['status.completionTime: Invalid value: "2025-01-01T00:00:00Z": completionTime cannot be mutated']),
    ("another start", {}, {"startTime": START}, {"startTime": END}, ["status.startTime: Required value: startTime cannot be removed for unsuspended job"]),
    ("another start while suspended", {"suspend": True}, {"startTime": START}, {"startTime": None}, []),
    ("more ready than active", {}, {}, {"active": 1, "ready": 2}, ["status.ready: Invalid value: 2: cannot set more ready pods than active"]),
    ("terminating pods of a finished Job", {}, {}, {**FAILED, "terminating": 1}, ["status.terminating: Invalid value: 1: terminating>0 is invalid for finished job"]),
    ("indexes without indexes", {}, {}, {"completedIndexes": "0"}, ['status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed completion mode']),
    ("indexes in disorder", INDEXED, {}, {"completedIndexes": "1,0"}, ['status.completedIndexes: Invalid value: "1,0": error parsing completedIndexes: non-increasing order, previous: 1, current: 0']),
    ("failed indexes without limit", INDEXED, {}, {"failedIndexes": "1"}, ['status.failedIndexes: Invalid value: "1": cannot set non-null failedIndexes when backoffLimitPerIndex is null']),
    ("an index of both", {**INDEXED, "backoffLimitPerIndex": 1}, {}, {"completedIndexes": "0-1", "failedIndexes": "1"}, ['status.failedIndexes: Invalid value: "1": failedIndexes and completedIndexes overlap at index: 1']),
    ("a pod twice", {}, {}, {"uncountedTerminatedPods": {"succeeded": ["a"], "failed": ["a"]}}, ['status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"']),
    ("what broke a rule before, and does not change", {}, {"conditions": conditions("Complete")}, {"ready": 0}, []),
]  # fmt: skip


@rows(("spec", "before", "change", "expected"), [row[1:] for row in STATUSES], ids=[row[0] for row in STATUSES])
def test_statuses_of_jobs_are_validated(spec: Json, before: Json, change: Json, expected: list[str]) -> None:
    assert update_messages(JOB, stored(before, **spec), {"status": change}, "status") == expected


# -- CronJobs ---------------------------------------------------------------------------------------------------------


def cron_job(name: str = "x", **change: Json) -> Object:
    return {
        "metadata": {"name": name},
        "spec": merged({"schedule": "* * * * *", "jobTemplate": {"spec": TEMPLATE}}, change),
    }


CRON_JOBS: list[tuple[str, Object, list[str]]] = [
    ("a minimal one", cron_job(), []),
    ("no schedule", cron_job(schedule=""), ["spec.schedule: Required value"]),
    ("a schedule that is none", cron_job(schedule="x"), ['spec.schedule: Invalid value: "x": expected exactly 5 fields, found 1: [x]']),
    ("a zone in the schedule", cron_job(schedule="TZ=UTC * * * * *"), ['spec.schedule: Invalid value: "TZ=UTC * * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead']),
    ("a zone", cron_job(timeZone="Europe/Berlin"), []),
    ("a zone that is none", cron_job(timeZone="Foo"), ['spec.timeZone: Invalid value: "Foo": unknown time zone Foo']),
    ("the zone of the machine", cron_job(timeZone="Local"), ['spec.timeZone: Invalid value: "Local": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones']),
    ("an empty zone", cron_job(timeZone=""), ['spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string']),
    ("a policy that is none", cron_job(concurrencyPolicy="x"), ['spec.concurrencyPolicy: Unsupported value: "x": supported values: "Allow", "Forbid", "Replace"']),
    ("a negative limit", cron_job(failedJobsHistoryLimit=-1), ["spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0"]),
    ("a selector", cron_job(jobTemplate={"spec": {"selector": {"matchLabels": {"a": "b"}}}}), ['spec.jobTemplate.spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: `selector` will be auto-generated']),
    ("a selector by hand", cron_job(jobTemplate={"spec": {"manualSelector": True}}), ['spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"']),
    ("pods that never end", cron_job(jobTemplate={"spec": {"template": {"spec": {"restartPolicy": "Always"}}}}), ['spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"']),
    ("a name of 52 characters", cron_job("x" * 52), []),
    ("a longer name", cron_job("x" * 53), [f'metadata.name: Invalid value: "{"x" * 53}": must be no more than 52 characters']),
]  # fmt: skip


@rows(("given", "expected"), [row[1:] for row in CRON_JOBS], ids=[row[0] for row in CRON_JOBS])
def test_cron_jobs_are_validated(given: Object, expected: list[str]) -> None:
    assert create_messages(CRON_JOB, given) == expected


def test_a_stored_schedule_may_keep_its_zone() -> None:
    old = created(CRON_JOB, cron_job(schedule="TZ=UTC 0 * * * *"))
    assert update_messages(CRON_JOB, old, {"spec": {"schedule": "TZ=UTC 1 * * * *"}}) == []
    new = updated(CRON_JOB, old, {"spec": {"suspend": True}})
    assert CRON_JOB.warnings(new, old) == [
        "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
        "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
    ]


SCHEDULES: list[tuple[str, str]] = [
    ("* * * * *", ""),
    ("*/15 0-6,12 ? jan-MAR mon", ""),
    ("5/10 * * * *", ""),
    ("@hourly", ""),
    ("@every 1h30m", ""),
    ("TZ=Europe/Berlin @daily", ""),
    ("CRON_TZ=Europe/Berlin 0 0 * * *", ""),
    ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
    ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
    ("60 * * * *", "end of range (60) above maximum (59): 60"),
    ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
    ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
    ("*/0 * * * *", "step of range should be a positive number: */0"),
    ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
    ("1/2/3 * * * *", "too many slashes: 1/2/3"),
    ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
    ("* * * * 7", "end of range (7) above maximum (6): 7"),
    ("@reboot", "unrecognized descriptor: @reboot"),
    ("@every x", 'failed to parse duration @every x: time: invalid duration "x"'),
    ("TZ=Foo * * * * *", "provided bad location Foo: unknown time zone Foo"),
    ("*/-1 * * * *", "negative number (-1) not allowed: -1"),
]


@rows(("schedule", "error"), SCHEDULES)
def test_schedules(schedule: str, error: str) -> None:
    assert schedule_error(schedule) == error


LOCATIONS = [("UTC", ""), ("", ""), ("America", "unknown time zone America"), ("../x", "time: invalid location name")]


@pytest.mark.parametrize(("name", "error"), LOCATIONS)
def test_locations(name: str, error: str) -> None:
    assert location_error(name) == error
