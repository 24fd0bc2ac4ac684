"""The fast path: one pass over an object that accepts it as clean, or leaves it to the readable path.

Clean means: pruning removes nothing, no null is dropped, and validation, list types and embedded resources report no
errors. Missing defaults are filled in on the way. If in doubt, the object is not accepted, and the readable functions
(prune, default, validate …) do all the work; only they have messages. They would have filled in the same defaults. That
both paths give the same results is a property test.

Python source (see `conditions`) is generated for the nodes of a schema that values reach: a schema of 2 MB costs nothing
until objects arrive, and then only for the fields that they have; a kind with a handful of objects is never compiled.

The metadata, and keywords of the root about all fields together, are checked when an object is complete
(`is_complete`). CEL rules are not part of the fast path.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from noxu.schema.conditions import ANYTHING, IDENTITY, NOTHING, Accepts, change_source, is_anything, source
from noxu.schema.defaulting import MAX_ADDED
from noxu.schema.pruning import META
from noxu.schema.structural import MISSING, NO_VALIDATION, Structural

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from noxu.values import Json, Object

    Source: TypeAlias = Callable[[Structural, "_Functions"], str]

WARM_UP: Final = 16
"""Objects that are left to the readable path before a schema is compiled: compiling takes about as long as they do."""
MAX_COMPILED_AT_ONCE: Final = 64
"""Nodes that are compiled for one object, in some ten milliseconds; the next objects continue."""


class Compiled:
    """The fast path of one schema, compiled as far as values have needed it."""

    __slots__ = ("_accepts", "_accepts_change", "_accepts_status", "_functions", "_warm_up", "is_complete")

    def __init__(self, schema: Structural, *, warm_up: int = WARM_UP) -> None:
        self._functions = functions = _Functions()
        status = schema.properties.get("status")
        body = _body(schema)
        self._accepts = functions.entry(functions.function(body))
        self._accepts_change = functions.entry(functions.change(body))
        self._accepts_status = is_anything if status is None else functions.entry(functions.function(status))
        complete = _completeness(schema)
        completeness = _Functions()  # whose conditions do not say what is accepted
        self.is_complete = None if complete is None else completeness.entry(completeness.function(complete))
        """Whether an accepted object is valid as a whole, now that its metadata is what will be stored; None: it is."""
        self._warm_up = warm_up

    def accepts(self, value: Object, old: Object | None = None) -> bool:
        """Fill in the defaults of a whole object, in place; whether it is clean apart from its metadata.

        `old` is an object that has been accepted. Parts that the two share in the same places are not checked again.
        """
        if self._warm_up:
            self._warm_up -= 1
            return False
        self._functions.left = MAX_COMPILED_AT_ONCE
        self._functions.room_left[0] = MAX_ADDED
        return self._accepts(value) if old is None else self._accepts_change(value, old)

    @property
    def is_exact(self) -> bool:
        """Whether no accepted object has floats, or different values in the same place that are equal in Python.

        So of two accepted objects, parts that are equal in Python (where 1, 1.0 and True are) are equal, apart from metadata.
        It is known of the nodes that values have reached; it becomes False before the first such value is accepted.
        """
        return self._functions.is_exact

    def accepts_status(self, status: Json) -> bool:
        """The same for the status alone, after the object has been accepted."""
        return self._accepts_status(status)


def _body(schema: Structural) -> Structural:
    """The root without metadata, and without keywords about all fields together."""
    metadata = schema.properties.get("metadata", ANYTHING)
    has_defaults = any(node.default is not MISSING for node in (metadata, *metadata.properties.values()))
    return Structural(
        type="object",
        properties={
            **dict.fromkeys(META, IDENTITY),
            **schema.properties,
            "metadata": NOTHING if has_defaults else IDENTITY,
        },
        additional_properties=schema.additional_properties,
        preserve_unknown_fields=schema.preserve_unknown_fields,
    )


def _completeness(schema: Structural) -> Structural | None:
    """The rest of the root, None if it has no conditions."""
    metadata = schema.properties.get("metadata")
    silent = metadata is None or (metadata.validation is NO_VALIDATION and not metadata.properties)
    if silent and schema.validation is NO_VALIDATION:
        return None
    properties = {} if metadata is None else {"metadata": replace(metadata, preserve_unknown_fields=True)}
    return Structural(type="object", properties=properties, preserve_unknown_fields=True, validation=schema.validation)


class _Functions:
    """The functions generated for a schema. Their globals are each other, and constants."""

    def __init__(self) -> None:
        self.room_left = [MAX_ADDED]
        """Values in two threads share it. If it is used up too early, a value is left to the readable path, which counts exactly."""
        self._globals: dict[str, Any] = {"room": self.room_left}
        self._numbers = count()
        self.left = MAX_COMPILED_AT_ONCE
        self.is_exact = True

    def entry(self, name: str) -> Callable[..., bool]:
        """The function of that name, for callers outside of the generated source."""

        def call(*values: Json) -> bool:
            return self._globals[name](*values)  # type: ignore[no-any-return]

        return call

    # The protocol `conditions.Functions`

    def constant(self, value: object) -> str:
        name = f"c{next(self._numbers)}"
        self._globals[name] = value
        return name

    def function(self, schema: Structural) -> str:
        name = f"f{next(self._numbers)}"
        self._globals[name] = self._later(schema, self._globals, name)
        return name

    def change(self, schema: Structural) -> str:
        name = f"g{next(self._numbers)}"
        self._globals[name] = self._later(schema, self._globals, name, change_source)
        return name

    def room(self) -> str:
        return "room"

    def table(self, properties: dict[str, Structural]) -> str:
        table: dict[str, Accepts] = {}
        for name, schema in properties.items():
            table[name] = self._later(schema, table, name)
        return self.constant(table)

    def inexact(self) -> None:
        self.is_exact = False

    def _later(self, schema: Structural, place: dict[str, Any], name: str, source_of: Source = source) -> Accepts:
        """A stand-in for a node's function. The first value compiles the node; then `place[name]` is the function itself."""
        compiled: Callable[..., bool] | None = None

        def first(*values: Json) -> bool:
            nonlocal compiled
            if compiled is None:
                if self.left <= 0:
                    return False
                self.left -= 1
                compiled = place[name] = self._make(source_of(schema, self))
            return compiled(*values)

        return first

    def _make(self, text: str) -> Callable[..., bool]:
        scope: dict[str, Callable[..., bool]] = {}
        exec(compile(text, "<schema>", "exec"), self._globals, scope)  # noqa: S102 - written by `conditions`, with names as literals
        return scope["accepts"]
