"""Stored objects validated by the current schema of their definition."""

from __future__ import annotations

from typing import Final

import pytest

from noxu.registry.resource import Versions
from noxu.registry.strategies import revalidate
from noxu.values import Object, copy
from tests.registry.world import GROUP, version, widget, widgets

METADATA: Final[Object] = {"namespace": "default", "uid": "u", "generation": 1, "resourceVersion": "7"}
V2: Final = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"color": {"type": "string", "maxLength": 3}}}},
}


@pytest.fixture
def versions() -> Versions:
    return widgets(version(), version("v2", V2))


ROWS: Final[dict[str, tuple[Object, str, list[str], list[str]]]] = {
    # the object, then its version, the fields of its errors, and its hidden fields
    "valid": (widget(metadata=METADATA, size=2), "v1", [], []),
    "invalid": (widget(metadata=METADATA, size=-1), "v1", ["spec.size"], []),
    "with hidden fields": (widget(metadata={**METADATA, "x": 1}, old=1), "v1", [], ["metadata.x", "spec.old"]),
    "valid with its defaults": (widget(metadata=METADATA), "v1", [], []),
    "by the schema of its version": (
        widget(api_version=f"{GROUP}/v2", metadata=METADATA, color="white", size=-1),
        "v2",
        ["spec.color"],
        ["spec.size"],
    ),
    "by the storage version, if its own no longer exists": (
        widget(api_version=f"{GROUP}/v0", metadata=METADATA, color="white", size=-1),
        "v1",
        ["spec.size"],
        [],
    ),
    "with malformed metadata, which a read drops": (
        widget(metadata={**METADATA, "labels": 5}),
        "v1",
        [],
        [],
    ),
    "of a name that is no longer valid": (widget("A", metadata=METADATA), "v1", ["metadata.name"], []),
}


@pytest.mark.parametrize(("value", "at_version", "errors", "hidden"), ROWS.values(), ids=ROWS)
def test_a_stored_object_is_validated_as_it_is_read(
    versions: Versions, value: Object, at_version: str, errors: list[str], hidden: list[str]
) -> None:
    found = revalidate(copy(value), versions)
    assert found.resource.version == at_version
    assert [error.field for error in found.errors] == errors
    assert found.hidden == hidden
