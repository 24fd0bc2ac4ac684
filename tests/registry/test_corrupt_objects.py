"""Errors about objects whose bytes do not match their checksum. tests/faults/test_corrupt_objects.py has whole requests."""

from __future__ import annotations

from typing import Final

import pytest

from noxu.registry.builtin import built_in_versions
from noxu.registry.reader import MAX_ERRORS, storage_key, unlistable, unreadable
from noxu.registry.resource import Resource
from noxu.registry.stored_object import key_of
from tests.registry.world import widgets

BUILT_IN: Final = {versions.collection: versions.storage for versions in built_in_versions()}
WIDGETS: Final = widgets().storage
KEYS: Final[dict[str, tuple[Resource, str, str]]] = {
    "of the core group": (BUILT_IN["/configmaps"], "default", "/registry/configmaps/default/a"),
    "of the core group, cluster-scoped": (BUILT_IN["/namespaces"], "", "/registry/namespaces/a"),
    "of another group": (WIDGETS, "default", "/registry/apiextensions.kubernetes.io/example.com/widgets/default/a"),
}


@pytest.mark.parametrize(("resource", "namespace", "expected"), KEYS.values(), ids=KEYS)
def test_errors_name_the_key_in_etcd(resource: Resource, namespace: str, expected: str) -> None:
    key = key_of(resource, namespace, "a")
    assert storage_key(resource, key) == expected
    error = unreadable(resource, key, 7)
    assert error.code == 500
    assert error.message.startswith(
        f"Internal error occurred: StorageError: corrupt object, Code: 7, Key: {expected}, ResourceVersion: 0, "
        "AdditionalErrorMsg: object not decodable revision=7"
    )


@pytest.mark.parametrize(
    ("count", "more", "causes"), [(1, "", 1), (3, " (and 2 more)", 3), (500, " (and 499 more)", MAX_ERRORS)]
)
def test_a_list_names_a_limited_number_of_corrupt_objects(count: int, more: str, causes: int) -> None:
    corrupt = {key_of(WIDGETS, "default", f"{n:03}"): n for n in reversed(range(count))}
    error = unlistable(WIDGETS, corrupt)
    assert (error.code, error.reason) == (500, "StorageReadError")
    assert error.message.startswith("failed to read one or more widgets.example.com from the storage: ")
    assert "widgets/default/000" in error.message
    assert error.message.endswith(f"ClusterBreakingPotential=true{more}")
    assert error.details is not None
    assert len(error.details["causes"]) == causes
    assert error.details["causes"][0] == {
        "reason": "UnexpectedServerResponse",
        "message": unreadable(WIDGETS, key_of(WIDGETS, "default", "000"), 0).message.removeprefix(
            "Internal error occurred: "
        ),
        "field": "/registry/apiextensions.kubernetes.io/example.com/widgets/default/000",
    }
