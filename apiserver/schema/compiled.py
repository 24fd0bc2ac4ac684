"""The fast path: one look at an object says that it is clean, or leaves it to the walkers.

Clean: pruning removes nothing, no null is dropped, validation, list types and embedded resources report nothing.
Missing defaults are filled in on the way. At any doubt the answer is no, and then the readable walkers (prune, default,
validate …) do all the work; they alone know messages. What was filled in until then they would have filled in
themselves. That both come to the same is a property test.

Python source is generated for each node of a schema that values reach, as `conditions` says: a schema of 2 MB costs
nothing until objects come, and then only for the fields that they use, and a kind with a handful of objects is never
compiled at all.

Two things are left until an object is complete: what its metadata must be, and what the root says of all its fields.
Rules (CEL) are not looked at.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from apiserver.schema.conditions import ANYTHING, NOTHING, Accepts, is_anything, source
from apiserver.schema.pruning import META
from apiserver.schema.structural import MISSING, NO_VALIDATION, Structural

if TYPE_CHECKING:
    from apiserver.api.types import Json, Object

WARM_UP: Final = 16
"""Objects that go to the walkers before a schema is compiled, which takes as long as they do with about as many."""
AT_ONCE: Final = 64
"""Nodes that one object may have compiled, which takes some ten milliseconds. The rest is for the next objects."""


class Compiled:
    """The fast path of one schema, compiled as far as values have needed it."""

    __slots__ = ("_accepts", "_accepts_status", "_functions", "_is_complete", "_warm_up")

    def __init__(self, schema: Structural, *, warm_up: int = WARM_UP) -> None:
        self._functions = functions = _Functions()
        status = schema.properties.get("status")
        self._accepts = functions.entry(_body(schema))
        self._accepts_status = is_anything if status is None else functions.entry(status)
        complete = _completeness(schema)
        self._is_complete = is_anything if complete is None else functions.entry(complete)
        self._warm_up = warm_up

    def accepts(self, value: Object) -> bool:
        """Fill in the defaults of a whole object, in place; whether it is clean then, but for its metadata."""
        if self._warm_up:
            self._warm_up -= 1
            return False
        self._functions.left = AT_ONCE
        return self._accepts(value)

    def accepts_status(self, status: Json) -> bool:
        """The same for the status alone, once an object has been accepted."""
        return self._accepts_status(status)

    def is_complete(self, value: Object) -> bool:
        """Whether an accepted object is valid as a whole, now that its metadata is what will be stored."""
        return self._is_complete(value)


def _body(schema: Structural) -> Structural:
    """The root as far as it can be judged at once: without metadata, and without what holds for all fields together."""
    metadata = schema.properties.get("metadata", ANYTHING)
    has_defaults = any(one.default is not MISSING for one in (metadata, *metadata.properties.values()))
    return Structural(
        type="object",
        properties={
            **dict.fromkeys(META, ANYTHING),
            **schema.properties,
            "metadata": NOTHING if has_defaults else ANYTHING,
        },
        additional_properties=schema.additional_properties,
        preserve_unknown_fields=schema.preserve_unknown_fields,
    )


def _completeness(schema: Structural) -> Structural | None:
    """What is left to judge of the root; None if there is nothing."""
    metadata = schema.properties.get("metadata")
    silent = metadata is None or (metadata.validation is NO_VALIDATION and not metadata.properties)
    if silent and schema.validation is NO_VALIDATION:
        return None
    properties = {} if metadata is None else {"metadata": replace(metadata, preserve_unknown_fields=True)}
    return Structural(type="object", properties=properties, preserve_unknown_fields=True, validation=schema.validation)


class _Functions:
    """The functions made for a schema. They share their globals: each other, and constants."""

    def __init__(self) -> None:
        self._globals: dict[str, Any] = {}
        self._numbers = count()
        self.left = AT_ONCE

    def entry(self, schema: Structural) -> Accepts:
        """A node's function, to be called from outside."""
        name = self.function(schema)

        def call(value: Json) -> bool:
            return self._globals[name](value)  # type: ignore[no-any-return]

        return call

    # What generated source calls

    def constant(self, value: object) -> str:
        name = f"c{next(self._numbers)}"
        self._globals[name] = value
        return name

    def function(self, schema: Structural) -> str:
        name = f"f{next(self._numbers)}"
        self._globals[name] = self._later(schema, self._globals, name)
        return name

    def table(self, properties: dict[str, Structural]) -> str:
        table: dict[str, Accepts] = {}
        for name, schema in properties.items():
            table[name] = self._later(schema, table, name)
        return self.constant(table)

    def _later(self, schema: Structural, place: dict[str, Any], name: str) -> Accepts:
        """What stands in for a node's function until the first value comes."""
        made: Accepts | None = None

        def first(value: Json) -> bool:
            nonlocal made
            if made is None:
                if self.left <= 0:
                    return False
                self.left -= 1
                made = place[name] = self._make(schema)
            return made(value)

        return first

    def _make(self, schema: Structural) -> Accepts:
        scope: dict[str, Accepts] = {}
        code = compile(source(schema, self), "<schema>", "exec")
        exec(code, self._globals, scope)  # noqa: S102 - written by `conditions`, with names as literals
        return scope["accepts"]
