"""`record` and `NamedTuple`: what `dataclasses.dataclass` and `typing.NamedTuple` make, in a third of the time.

The server has two hundred of them, and makes them while it starts. `dataclass` writes and compiles six methods for each
frozen class, half a millisecond. `record` has it compile `__init__`; `repr`, equality and hashes are functions that all
records share. That no field of a `frozen` record is assigned is checked by mypy alone. The decorated class is an ordinary
dataclass otherwise: `dataclasses.replace` and `dataclasses.fields` work, and so do `__post_init__` and `field(…)`.

`typing.NamedTuple` compiles each annotation, to see whether it is an expression. This one leaves them as they are. For mypy
both are those of the standard library.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

__all__ = ["NamedTuple", "record"]

C = TypeVar("C")

_MADE: Final = frozenset({"__annotations__", "__module__", "__qualname__", "__new__", "__slots__"})
"""What a named tuple has by itself."""

if TYPE_CHECKING:
    from dataclasses import dataclass as record
    from typing import NamedTuple
else:

    def record(made=None, /, *, frozen=False, eq=True, slots=False, kw_only=False, weakref_slot=False):
        """A decorator, with the options of `dataclass`. Hashable, if equal by value: only if it is frozen."""

        def decorate(made):
            shown, compared = "__repr__" in vars(made), "__eq__" in vars(made)
            made = dataclass(
                made,
                repr=False,
                eq=False,
                match_args=False,
                slots=slots,
                kw_only=kw_only,
                weakref_slot=weakref_slot,
            )
            if not shown:
                made.__repr__ = _repr
            if eq and not compared:
                made.__eq__ = _equal_by(made)
                made.__hash__ = _hash_by(made) if frozen else None
            return made

        return decorate if made is None else decorate(made)

    class _Fields(type):
        """Makes a class with annotated fields a named tuple."""

        def __new__(cls, name, bases, namespace):
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            names = list(namespace.get("__annotations__", ()))
            defaults = [namespace[field] for field in names if field in namespace]
            made = namedtuple(name, names, defaults=defaults, module=namespace["__module__"])  # noqa: PYI024
            made.__annotations__ = namespace.get("__annotations__", {})
            made.__qualname__ = namespace["__qualname__"]
            made.__orig_bases__ = bases
            for attribute, value in namespace.items():
                if attribute not in _MADE and attribute not in names:
                    setattr(made, attribute, value)
            return made

    class NamedTuple(metaclass=_Fields):
        """A base: the class statement makes a subclass of `tuple`, as with `typing.NamedTuple`."""


def _repr(self: Any) -> str:
    shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{type(self).__qualname__}({shown})"


def _equal_by(made: type[C]) -> Any:
    values = _values_of(made)

    def __eq__(self: C, other: object) -> bool:  # noqa: N807
        if other.__class__ is not self.__class__:
            return NotImplemented
        return bool(values(self) == values(other))

    return __eq__


def _hash_by(made: type[C]) -> Any:
    values = _values_of(made)

    def __hash__(self: C) -> int:  # noqa: N807
        return hash(values(self))

    return __hash__


def _values_of(made: type) -> Any:
    """A function that gets the compared fields of a record, in C."""
    names = [field.name for field in fields(made) if field.compare]
    return attrgetter(*names) if names else lambda _: ()
