"""The order of versions, the stored and the served ones, deprecation."""

from __future__ import annotations

import random

import pytest

from noxu.crd.types import deprecation_warning, served_versions, storage_version, version_of, version_priority
from noxu.values import Json, Object


def version(name: str, *, served: bool = True, storage: bool = False, **more: Json) -> Object:
    return {"name": name, "served": served, "storage": storage, **more}


def crd(*versions: Object) -> Object:
    return {"spec": {"group": "u2.example.com", "names": {"kind": "Widget"}, "versions": list(versions)}}


def test_priority() -> None:
    ordered = [
        "v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2",
        "V1", "bar1", "foo1", "foo10", "v", "v1beta", "v1beta1x", "v1gamma1", "v9223372036854775808",
    ]  # fmt: skip
    shuffled = list(ordered)
    random.Random(1).shuffle(shuffled)
    assert sorted(shuffled, key=version_priority) == ordered


def test_numbers_are_ascii() -> None:
    assert version_priority("v１")[0] == 1


def test_storage_and_served_versions() -> None:
    widget = crd(version("v1alpha1", served=False), version("foo"), version("v1", storage=True), version("v2beta1"))
    assert storage_version(widget) == "v1"
    assert served_versions(widget) == ["v1", "v2beta1", "foo"]
    assert version_of(widget, "foo") == version("foo")
    assert version_of(widget, "bar") is None
    empty: Object = {"spec": {"versions": None}}
    assert storage_version(empty) is None
    assert served_versions(empty) == []


OLD = version("v1beta1", deprecated=True)
WARNINGS: list[tuple[str, list[Object], str]] = [
    ("not deprecated", [version("v1beta1")], ""),
    ("unknown", [], ""),
    ("nothing else is served", [OLD, version("v1", served=False)], "u2.example.com/v1beta1 Widget is deprecated"),
    ("the best newer version", [version("v1"), OLD, version("v2")], "u2.example.com/v1beta1 Widget is deprecated; use u2.example.com/v2 Widget"),
    ("what is newer may be deprecated, too", [OLD, version("v2", deprecated=True), version("v1beta2")], "u2.example.com/v1beta1 Widget is deprecated; use u2.example.com/v1beta2 Widget"),
    ("older ones do not count", [OLD, version("v1alpha9"), version("foo")], "u2.example.com/v1beta1 Widget is deprecated"),
    ("in one's own words", [{**OLD, "deprecationWarning": 'no "more"'}, version("v1")], 'no "more"'),
]  # fmt: skip


@pytest.mark.parametrize(("versions", "warning"), [row[1:] for row in WARNINGS], ids=[row[0] for row in WARNINGS])
def test_deprecation(versions: list[Object], warning: str) -> None:
    assert deprecation_warning(crd(*versions), "v1beta1") == warning
