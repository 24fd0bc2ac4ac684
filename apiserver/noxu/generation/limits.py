"""What several validations together allow of a value: those of a schema, and of the branches that are chosen for it.

A value that satisfies allOf, one branch of oneOf and one of anyOf satisfies the union of their validations. So a branch is
chosen first, and the value is made to fit; that the other branches of oneOf fail, and `not`, is checked afterwards.

    {minimum: 1, oneOf: [{maximum: 5}, {minimum: 9}]}     1 to 5, or at least 9
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from noxu.generation.texts import Choose
from noxu.schema.structural import NestedValueValidation, ValueValidation
from noxu.values import Json, equal

Branches = Sequence[NestedValueValidation]


class ValueLimits(NamedTuple):
    """The conjunction of validations. A text has to match all `patterns`. `enum` None: any value."""

    least: float = -math.inf
    most: float = math.inf
    shortest: int = 0
    longest: int | None = None
    fewest_items: int = 0
    most_items: int | None = None
    fewest_fields: int = 0
    most_fields: int | None = None
    multiple_of: float | None = None
    format: str = ""
    patterns: tuple[str, ...] = ()
    enum: tuple[Json, ...] | None = None
    required: frozenset[str] = frozenset()
    type: str = ""
    """That a branch asks for, of a value whose schema has no type (x-kubernetes-int-or-string)."""


def chosen(validation: ValueValidation, above: Branches, choose: Choose) -> list[NestedValueValidation]:
    """The validations of a value, with those of the branches `above` for it, and with one branch of each anyOf and oneOf."""
    parts, todo = [], [NestedValueValidation(validation), *above]
    while todo:
        part = todo.pop(0)
        parts.append(part)
        todo += part.validation.all_of
        for branches in (part.validation.one_of, part.validation.any_of):
            if branches:
                todo.append(branches[choose(len(branches))])
    return parts


def limits(parts: Branches) -> ValueLimits:
    """What all of the parts allow."""
    all_ = [part.validation for part in parts]
    return ValueLimits(
        least=max(
            (_bound(v.minimum, v.exclusive_minimum, 1) for v in all_ if v.minimum is not None), default=-math.inf
        ),
        most=min((_bound(v.maximum, v.exclusive_maximum, -1) for v in all_ if v.maximum is not None), default=math.inf),
        shortest=max((v.min_length or 0 for v in all_), default=0),
        longest=_least(v.max_length for v in all_),
        fewest_items=max((v.min_items or 0 for v in all_), default=0),
        most_items=_least(v.max_items for v in all_),
        fewest_fields=max((v.min_properties or 0 for v in all_), default=0),
        most_fields=_least(v.max_properties for v in all_),
        multiple_of=next((v.multiple_of for v in all_ if v.multiple_of), None),
        format=next((v.format for v in all_ if v.format), ""),
        patterns=tuple(dict.fromkeys(v.pattern for v in all_ if v.pattern)),
        enum=_common([v.enum for v in all_ if v.enum]),
        required=frozenset(name for v in all_ for name in v.required),
        type=next((part.forbidden["type"] for part in parts if part.forbidden.get("type")), ""),
    )


def below(parts: Branches, name: str) -> list[NestedValueValidation]:
    """What the parts say about the member of a map."""
    return [inner for part in parts if (inner := part.properties.get(name, part.additional_properties)) is not None]


def of_items(parts: Branches) -> list[NestedValueValidation]:
    """What the parts say about the items of a list."""
    return [part.items for part in parts if part.items is not None]


def _bound(limit: float, exclusive: bool, step: int) -> float:
    return limit + step if exclusive else limit


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)


def _common(enums: Sequence[tuple[Json, ...]]) -> tuple[Json, ...] | None:
    if not enums:
        return None
    return tuple(_in_all(enums[0], enums[1:]))


def _in_all(values: tuple[Json, ...], others: Sequence[tuple[Json, ...]]) -> Iterator[Json]:
    for value in values:
        if all(any(equal(value, member) for member in members) for members in others):
            yield value
