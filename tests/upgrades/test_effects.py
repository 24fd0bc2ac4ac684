"""What a new CRD changes for an object that is stored."""

from __future__ import annotations

from typing import Any

from noxu.crd import types
from noxu.generation.kinds import versions_of
from noxu.upgrades.effects import MAX_FIELDS, DefinitionPreview, ObjectEffect, effect_of, versions_gone
from noxu.values import Object, copy
from tests.generation.test_kinds import crd
from tests.rows import rows
from tests.upgrades.test_changes import INTEGER, STRING, UNUSED, V1, V2, items, of, ruled, with_versions


def stored(spec: Any, version: str = "v1") -> Object:
    metadata = {"name": "a", "namespace": "default", "uid": "1", "resourceVersion": "7"}
    return {"apiVersion": f"example.com/{version}", "kind": "Widget", "metadata": metadata, "spec": spec}


def what(old: Any, new: Any, spec: Any) -> dict[str, Any]:
    """The effects that there are."""
    value = stored(spec)
    before = copy(value)
    effect = effect_of(value, versions_of(crd(old)), versions_of(crd(new)))
    assert value == before
    found = {**effect._asdict(), "refused": effect.refused, "errors": [error.field for error in effect.errors]}
    return {name: what for name, what in found.items() if what}


LIMITED = of(a={**INTEGER, "maximum": 5})
RULED = ruled(of(a=INTEGER, b=INTEGER), "self.a < 5")


@rows(
    "name, old, new, spec, expected",
    [
        ("nothing", of(a=INTEGER), of(a=INTEGER), {"a": 1}, {}),
        ("a value within a new bound", of(a=INTEGER), LIMITED, {"a": 1}, {}),
        ("a value that ratcheting forgives", of(a=INTEGER), LIMITED, {"a": 9}, {"errors": ["spec.a"], "forgiven": True}),
        ("a rule that ratcheting forgives", of(a=INTEGER, b=INTEGER), RULED, {"a": 9}, {"errors": ["spec"], "forgiven": True}),
        ("a value that was invalid before", LIMITED, LIMITED, {"a": 9}, {}),
        ("a list that may stay as it is", of(a=items(STRING)), of(a=items(STRING, **{"x-kubernetes-list-type": "set"})),
         {"a": ["x", "x"]}, {"errors": ["spec.a[1]"], "forgiven": True}),
        ("a field that is gone", of(a=INTEGER, b=STRING), of(a=INTEGER), {"a": 1, "b": "x"}, {"pruned": ["spec.b"]}),
        ("a field that was hidden before", of(a=INTEGER), of(a=INTEGER), {"b": 1}, {}),
        ("a field that is shown again", of(a=INTEGER), of(a=INTEGER, b=INTEGER), {"b": 1}, {"defaulted": ["spec.b"]}),
        ("a default", of(a=INTEGER), of(a=INTEGER, b={**STRING, "default": "x"}), {}, {"defaulted": ["spec.b"]}),
        ("another default", of(b={**STRING, "default": "x"}), of(b={**STRING, "default": "y"}), {}, {"defaulted": ["spec.b"]}),
        ("a default that is there", of(a=INTEGER), of(a={**INTEGER, "default": 1}), {"a": 3}, {}),
    ],
)  # fmt: skip
def test_effects(name: str, old: Any, new: Any, spec: Any, expected: dict[str, Any]) -> None:
    assert what(old, new, spec) == expected


def test_what_no_ratcheting_forgives_is_refused() -> None:
    old = crd(of(a=INTEGER))
    scale = {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.a"}
    new = copy(old.value)
    new["spec"]["versions"][0]["subresources"] = {"scale": scale}
    effect = effect_of(stored({"a": -1}), versions_of(old), versions_of(old._replace(value=new)))
    assert effect.refused
    assert [error.field for error in effect.errors] == [".spec.a"]


def test_a_version_that_is_gone_is_unreadable() -> None:
    old, new = with_versions(V1, V2), with_versions(V1)
    assert effect_of(stored({}, "v2"), versions_of(old), versions_of(new)).unreadable == "no version v2"
    assert not effect_of(stored({}, "v1"), versions_of(old), versions_of(new)).unreadable


@rows(
    "old, new, status, expected",
    [
        ([V1, V2], [V1, V2], ["v1", "v2"], []),
        ([V1, V2], [V1, UNUSED], ["v1"], ["version v2 is no longer served"]),
        ([V1, V2], [V1], ["v1"], ["version v2 is no longer served"]),
        ([V1, UNUSED], [V1], ["v1", "v2"], ["version v2 is gone, and status.storedVersions has it"]),
        ([V1, UNUSED], [V1], [], []),
    ],
)
def test_versions_that_go(old: list[Object], new: list[Object], status: list[str], expected: list[str]) -> None:
    former, later = (types.default(types.decode(with_versions(*each).value).value) for each in (old, new))
    sentences = versions_gone({**former, "status": {"storedVersions": status}}, later)
    assert [sentence.partition(":")[0] for sentence in sentences] == expected


def test_objects_are_counted_and_the_first_ones_are_listed() -> None:
    preview = DefinitionPreview("widgets.example.com", 2)
    error: Any = "an error"
    for n in range(5):
        preview.add(f"Widget {n}", ObjectEffect([error], n > 0, [f"spec.a[{n}].b", "spec.a[9].b"], [], ""))
    assert preview.counts == {"refused": 1, "forgiven": 4, "pruned": 5}
    assert preview.pruned == {"spec.a[*].b": 5}
    assert [title for title, _ in preview.listed] == ["Widget 0", "Widget 1"]
    assert preview.breaks
    for n in range(MAX_FIELDS + 5):
        preview.add("Widget", ObjectEffect([], False, [f"spec.labels.l{n}"], [], ""))
    assert len(preview.pruned) == MAX_FIELDS
