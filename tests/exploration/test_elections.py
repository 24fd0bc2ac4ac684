"""Which objects are locks of leader elections, and how they are released."""

from __future__ import annotations

from noxu.exploration.elections import ANNOTATION, LEASES, is_lock, patches
from noxu.exploration.recording import ObjectPlace
from noxu.values import Object
from tests.rows import rows

HELD, FREE = '{"holderIdentity": "one", "leaderTransitions": 3}', '{"holderIdentity": ""}'


def annotated(record: str) -> Object:
    return {"metadata": {"annotations": {ANNOTATION: record}}}


@rows(
    "resource, value, patch",
    [
        (LEASES, {"spec": {"holderIdentity": "one"}}, {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}),
        (LEASES, {"spec": {}}, None),
        (
            "configmaps",
            annotated(HELD),
            annotated('{"holderIdentity": "", "leaderTransitions": 3, "leaseDurationSeconds": 1}'),
        ),
        ("endpoints", annotated(FREE), None),
        ("endpoints", annotated("["), None),
    ],
    ids=["a Lease", "a Lease that is free", "a ConfigMap", "Endpoints that are free", "a record that cannot be read"],
)
def test_a_lock_is_released(resource: str, value: Object, patch: Object | None) -> None:
    place = ObjectPlace(resource, "default", "lock")
    assert is_lock(place, value)
    assert patches([(place, value)]) == ([] if patch is None else [(place, patch)])


@rows(
    "resource, value",
    [("configmaps", {"metadata": {"name": "a"}}), ("secrets", annotated(HELD)), ("endpoints", {})],
    ids=["a ConfigMap without the annotation", "a Secret", "what is gone"],
)
def test_other_objects_are_no_locks(resource: str, value: Object) -> None:
    assert not is_lock(ObjectPlace(resource, "default", "a"), value)
