"""`record` and `NamedTuple`: what `dataclasses.dataclass` and `typing.NamedTuple` make, in a tenth of the time.

The server has two hundred of them, and makes them while it starts. `dataclass` writes and compiles six methods for each
frozen class, half a millisecond. `record` compiles `__init__` when it has been called a few times; `repr`, equality and hashes
are functions that all records share, and what `dataclasses.fields` needs is made when it is asked for. That no field of a
`frozen` record is assigned is checked by mypy alone. The decorated class is an ordinary dataclass otherwise:
`dataclasses.replace` and `dataclasses.fields` work, and so do `__post_init__` and `field(…)`.

`typing.NamedTuple` compiles each annotation, to see whether it is an expression, and for each class a constructor and five
methods. This one leaves annotations as they are, classes share the methods, and the constructors of classes with the same
number of fields share their instructions. For mypy both are those of the standard library.

`cached_property` is that of Python 3.12 and later. That of Python 3.11 holds a lock while it computes, one for all instances:
the event loop would wait while a thread compiles another object, for as long as that thread waits for its turn.
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from operator import attrgetter, itemgetter
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

__all__ = ["NamedTuple", "cached_property", "record"]

C = TypeVar("C")

_FEW: Final = 3
"""Calls of `__init__` after which it is compiled."""
_FIELDS: Final = "__dataclass_fields__"

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:  # noqa: N801 - as in the standard library
        """An attribute that is computed when it is first asked for. Two threads may compute it at the same time."""

        def __init__(self, func):
            self.func = func
            self.__doc__ = func.__doc__

        def __set_name__(self, owner, name):
            self._name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = vars(instance)[self._name] = self.func(instance)
            return value


if TYPE_CHECKING:
    from dataclasses import dataclass as record
    from typing import NamedTuple
else:

    def record(made=None, /, *, frozen=False, eq=True, slots=False, kw_only=False, weakref_slot=False):
        """A decorator, with the options of `dataclass`. Hashable, if equal by value: only if it is frozen."""

        def decorate(given):
            given.__doc__ = given.__doc__ or given.__name__  # else `dataclass` writes a signature
            options = {"init": False, "repr": False, "eq": False, "match_args": False, "kw_only": kw_only}
            if slots and _is_plain(given):
                listed = _fields_of(given, kw_only=kw_only)
                made = _slotted(given, listed, _LateFields(given, options), weakref_slot=weakref_slot)
            else:
                made = dataclass(given, slots=slots, weakref_slot=weakref_slot, **options)
                listed = fields(made)
            made.__init__ = _init_of(made, listed, slots=slots)
            if "__repr__" not in vars(given):
                made.__repr__ = _repr
            if eq and "__eq__" not in vars(given):
                values = _values_of(listed)
                made.__eq__ = _equal_by(values)
                made.__hash__ = _hash_by(values) if frozen else None
            return made

        return decorate if made is None else decorate(made)

    # what the fields of a `namedtuple` are, which takes half the time of a property
    _field = getattr(collections, "_tuplegetter", lambda position, doc: property(itemgetter(position), doc=doc))

    class _NamedFields(type):
        """Makes a class with annotated fields a named tuple."""

        def __new__(cls, name, bases, namespace):
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            names = tuple(namespace.get("__annotations__", ()))
            defaults = {field: namespace[field] for field in names if field in namespace}
            if [*defaults] != [*names[len(names) - len(defaults) :]]:
                raise TypeError(f"a field of {name} without a default follows one that has a default")
            for position, field in enumerate(names):
                namespace[field] = _field(position, None)
            namespace.setdefault("__doc__", f"{name}({', '.join(names)})")
            namespace |= {
                "__new__": _constructor(name, names, tuple(defaults.values())),
                "__slots__": (),
                "__match_args__": names,
                "__orig_bases__": bases,
                "_fields": names,
                "_field_defaults": defaults,
            }
            return type(name, (_Named,), namespace)

    class NamedTuple(metaclass=_NamedFields):
        """A base: the class statement makes a subclass of `tuple`, as with `typing.NamedTuple`."""


class _Named(tuple[Any, ...]):
    """The methods of named tuples."""

    __slots__ = ()
    if TYPE_CHECKING:
        _fields: tuple[str, ...]

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Self:
        made = tuple.__new__(cls, values)
        if len(made) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
        return made

    def _replace(self, /, **named: Any) -> Self:
        made = self._make(map(named.pop, self._fields, self))
        if named:
            raise ValueError(f"Got unexpected field names: {list(named)!r}")
        return made

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({shown})"

    def __getnewargs__(self) -> tuple[Any, ...]:
        """For copies and pickles."""
        return tuple(self)

    __replace__ = _replace  # for copy.replace, since Python 3.13


_NAMES: Final = {"new": tuple.__new__, "__builtins__": {}, "__name__": __name__}


def _constructor(name: str, fields: tuple[str, ...], defaults: tuple[Any, ...]) -> FunctionType:
    """`__new__` of a named tuple.

    Of the class `Pair` with the fields `a` and `b`: `lambda _cls, a, b: new(_cls, (a, b))`, as `namedtuple` writes it. The
    instructions of `lambda _cls, _0, _1: new(_cls, (_0, _1))` are the same.
    """
    code = _instructions(len(fields)).replace(
        co_varnames=("_cls", *fields), co_name="__new__", co_qualname=f"{name}.__new__"
    )
    return FunctionType(code, _NAMES, "__new__", defaults)


@cache
def _instructions(number: int) -> CodeType:
    """The code of a constructor with a number of fields."""
    fields = "".join(f"_{position}, " for position in range(number))
    made: FunctionType = eval(f"lambda _cls, {fields}: new(_cls, ({fields}))", {})  # noqa: S307 - of numbers
    return made.__code__


def _is_plain(given: type) -> bool:
    """Whether all annotations of a class are those of fields, and it inherits none."""
    special = ("ClassVar", "InitVar", "KW_ONLY")
    return given.__bases__ == (object,) and not any(
        word in str(annotation) for annotation in given.__annotations__.values() for word in special
    )


def _fields_of(given: type, *, kw_only: bool) -> list[Field[Any]]:
    """The fields of a plain class, as `dataclasses.fields` lists them, without their types."""
    listed = []
    for name in given.__annotations__:
        default = vars(given).get(name, MISSING)
        each: Field[Any] = default if isinstance(default, Field) else field(default=default)
        each.name = name
        if each.kw_only is MISSING:
            each.kw_only = kw_only
        listed.append(each)
    return listed


class _LateFields:
    """`__dataclass_fields__` of a class with slots. The library makes them when they are first asked for."""

    def __init__(self, given: type, options: dict[str, bool]) -> None:
        self._given = given
        self._options = options

    def __get__(self, _: object, owner: type) -> Any:
        found = fields(dataclass(self._given, **self._options))
        home = next(each for each in owner.__mro__ if vars(each).get(_FIELDS) is self)
        setattr(home, _FIELDS, made := {each.name: each for each in found})
        return made


def _slotted(given: type, listed: list[Field[Any]], late: _LateFields, *, weakref_slot: bool) -> Any:
    """The class again with slots instead of class variables: slots cannot be added to a class."""
    names = [each.name for each in listed]
    namespace = {name: value for name, value in vars(given).items() if name not in {*names, "__dict__", "__weakref__"}}
    slots = (*names, "__weakref__") if weakref_slot else tuple(names)
    return type(given)(
        given.__name__,
        given.__bases__,
        namespace | {"__qualname__": given.__qualname__, "__slots__": slots, _FIELDS: late},
    )


def _init_of(made: Any, listed: Sequence[Field[Any]], *, slots: bool) -> Any:
    """An `__init__` that assigns field by field, until it has been called a few times. Then it is compiled.

    Most records of a server are made once. The compiled one is also the only one that knows what is wrong with arguments.
    """
    calls = 0

    def __init__(self: Any, *values: Any, **named: Any) -> None:  # noqa: N807
        nonlocal calls
        calls += 1
        if calls <= _FEW and (found := _assigned(listed, values, named, slots=slots)) is not None:
            for name, value in found.items():
                setattr(self, name, value)
            if hasattr(made, "__post_init__"):
                self.__post_init__()
            return
        made.__init__ = _compiled_init(made, listed, slots=slots)
        made.__init__(self, *values, **named)

    return __init__


def _assigned(
    listed: Sequence[Field[Any]], values: tuple[Any, ...], named: dict[str, Any], *, slots: bool
) -> dict[str, Any] | None:
    """The values of fields for the arguments of `__init__`; None if these are wrong."""
    by_position = [each.name for each in listed if each.init and not each.kw_only]
    given = dict(zip(by_position, values, strict=False))
    is_wrong = len(values) > len(by_position) or given.keys() & named.keys()
    given |= named
    if is_wrong or given.keys() - {each.name for each in listed if each.init}:
        return None
    if any(each.init and each.name not in given and not _has_default(each) for each in listed):
        return None
    for each in listed:
        if each.name not in given:
            if each.default_factory is not MISSING:
                given[each.name] = each.default_factory()
            elif each.default is not MISSING and (each.init or slots):
                given[each.name] = each.default
    return given


def _has_default(each: Field[Any]) -> bool:
    return each.default is not MISSING or each.default_factory is not MISSING


_DISPLAYS: Final[dict[Any, str]] = {list: "[]", dict: "{}"}
"""What makes the same as these factories, in a third of the time."""


def _compiled_init(made: type, listed: Sequence[Field[Any]], *, slots: bool) -> Any:
    """Of the fields `a: int`, `b: int = 1`, `c: T = field(default_factory=T)`, `d: list = field(default_factory=list)` and
    `e: int = field(init=False)`:

    def __init__(self, a, b=default_b, c=MISSING, d=MISSING):
        self.a = a
        self.b = b
        self.c = factory_c() if c is MISSING else c
        self.d = [] if d is MISSING else d
    """
    positional, named, lines = ["self"], ["*"], []
    known: dict[str, Any] = {"MISSING": MISSING}
    for each in listed:
        name, value = each.name, ""
        known[f"default_{name}"], known[f"factory_{name}"] = each.default, each.default_factory
        has_factory = each.default_factory is not MISSING
        made_new = _DISPLAYS.get(each.default_factory, f"factory_{name}()")
        if each.init:
            default = "=MISSING" if has_factory else "" if each.default is MISSING else f"=default_{name}"
            (named if each.kw_only else positional).append(f"{name}{default}")
            value = f"{made_new} if {name} is MISSING else {name}" if has_factory else name
        elif has_factory:
            value = made_new
        elif slots and each.default is not MISSING:
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


def _equal_by(values: Callable[[Any], object]) -> Any:
    def __eq__(self: C, other: object) -> bool:  # noqa: N807
        if other.__class__ is not self.__class__:
            return NotImplemented
        return bool(values(self) == values(other))

    return __eq__


def _hash_by(values: Callable[[Any], object]) -> Any:
    def __hash__(self: C) -> int:  # noqa: N807
        return hash(values(self))

    return __hash__


def _values_of(listed: Sequence[Field[Any]]) -> Callable[[Any], object]:
    """A function that gets the compared fields of a record, in C."""
    names = [each.name for each in listed if each.compare]
    return attrgetter(*names) if names else lambda _: ()
