"""`record` and `NamedTuple`: what `dataclasses.dataclass` and `typing.NamedTuple` make, in a third of the time.

The server has two hundred of them, and makes them while it starts. `dataclass` writes and compiles six methods for each
frozen class, half a millisecond. `record` compiles `__init__` when it is first called; `repr`, equality and hashes are
functions that all records share. That no field of a `frozen` record is assigned is checked by mypy alone. The decorated
class is an ordinary dataclass otherwise: `dataclasses.replace` and `dataclasses.fields` work, and so do `__post_init__` and
`field(…)`.

`typing.NamedTuple` compiles each annotation, to see whether it is an expression. This one leaves them as they are. For mypy
both are those of the standard library.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import MISSING, dataclass, fields
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
            made.__doc__ = made.__doc__ or made.__name__  # else `dataclass` writes a signature
            made = dataclass(
                made,
                init=False,
                repr=False,
                eq=False,
                match_args=False,
                slots=slots,
                kw_only=kw_only,
                weakref_slot=weakref_slot,
            )
            made.__init__ = _init_of(made, slots=slots)
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


def _init_of(made: Any, *, slots: bool) -> Any:
    """An `__init__` that is compiled, and takes its own place, when it is first called."""

    def __init__(self: Any, *values: Any, **named: Any) -> None:  # noqa: N807
        made.__init__ = _compiled_init(made, slots=slots)
        made.__init__(self, *values, **named)

    return __init__


def _compiled_init(made: type, *, slots: bool) -> Any:
    """Of the fields `a: int`, `b: int = 1`, `c: list = field(default_factory=list)` and `d: int = field(init=False)`:

    def __init__(self, a, b=default_b, c=MISSING):
        self.a = a
        self.b = b
        self.c = factory_c() if c is MISSING else c
    """
    positional, named, lines = ["self"], ["*"], []
    known: dict[str, Any] = {"MISSING": MISSING}
    for field in fields(made):
        name, value = field.name, ""
        known[f"default_{name}"], known[f"factory_{name}"] = field.default, field.default_factory
        has_factory = field.default_factory is not MISSING
        if field.init:
            default = "=MISSING" if has_factory else "" if field.default is MISSING else f"=default_{name}"
            (named if field.kw_only else positional).append(f"{name}{default}")
            value = f"factory_{name}() if {name} is MISSING else {name}" if has_factory else name
        elif has_factory:
            value = f"factory_{name}()"
        elif slots and field.default is not MISSING:
            value = f"default_{name}"
        if value:
            lines.append(f"    self.{name} = {value}")
    if hasattr(made, "__post_init__"):
        lines.append("    self.__post_init__()")
    parameters = ", ".join(positional + (named if len(named) > 1 else []))
    exec("\n".join([f"def __init__({parameters}):", *lines, "    pass"]), known)  # noqa: S102 - of names of fields
    known["__init__"].__qualname__ = f"{made.__qualname__}.__init__"
    return known["__init__"]


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
