"""The figures about releases of other projects: the simple comparison, and what counts as missed."""

from __future__ import annotations

from typing import Any

from conformance.upgrades import PAIRS, measured, simply_broken
from tests.generation.test_kinds import crd
from tests.rows import rows
from tests.upgrades.test_changes import INTEGER, STRING, UNUSED, V1, V2, items, of, with_versions


def test_there_are_twenty_pairs() -> None:
    assert len({pair.name for pair in PAIRS}) == 20


@rows(
    "old, new, fields",
    [
        (of(a=STRING), of(a=STRING), []),
        (of(a=STRING), of(a=INTEGER), ["spec.a"]),
        (of(a=STRING, b=STRING), of(a=STRING), ["spec.b"]),
        (of(a=items(STRING)), of(a=items({**STRING, "maxLength": 3})), ["spec.a[*]"]),
        (of(a=STRING), of("a", a=STRING), ["spec"]),
        (of(a=STRING), of("a", a={**STRING, "default": "x"}), []),
        (of(a={**STRING, "enum": ["x", "y"]}), of(a={**STRING, "enum": ["x"]}), ["spec.a"]),
        (of(a={**INTEGER, "minimum": 1}), of(a={**INTEGER, "minimum": 0}), []),
        ({**of(a=STRING)}, {**of(), "x-kubernetes-preserve-unknown-fields": True}, []),
    ],
)
def test_what_is_simply_broken(old: Any, new: Any, fields: list[str]) -> None:
    former, later = crd(old), crd(new)
    assert [field for version, field in simply_broken(former, later) if version == "v1"] == fields
    figures = measured([former], [later])
    assert (figures.missed, figures.breaking) == ([], 2 * len(fields))


def test_a_version_that_is_not_served_is_broken() -> None:
    old, new = with_versions(V1, V2), with_versions(V1, UNUSED)
    assert list(simply_broken(old, new)) == [("v2", "")]
    figures = measured([old], [new])
    assert (figures.missed, len(figures.unshown)) == ([], 1)
    assert measured([old], [with_versions(V1)]).missed == []
