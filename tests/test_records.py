"""Records and named tuples are those of the standard library, made faster."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import typing
from collections.abc import Callable
from typing import Any

import pytest

from noxu import records
from tests.rows import rows

if not typing.TYPE_CHECKING:
    from noxu.records import NamedTuple, record
else:
    from dataclasses import dataclass as record
    from typing import NamedTuple


class Pair(NamedTuple):
    """Two."""

    left: int
    right: str = "r"

    @property
    def both(self) -> str:
        return f"{self.left}{self.right}"

    @classmethod
    def of(cls, text: str) -> Pair:
        return cls(len(text), text)


def made(decorator: Any, **options: Any) -> Any:
    class Point:
        x: int
        y: list[int] = dataclasses.field(default_factory=list)
        hidden: str = dataclasses.field(default="h", repr=False, compare=False)

    return decorator(**options)(Point)


OPTIONS: list[dict[str, bool]] = [
    {},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "weakref_slot": True},
    {"slots": True, "eq": False},
    {"frozen": True, "kw_only": True, "slots": True},
]


def described(kind: Any, *, by_name: bool) -> list[object]:
    """What can be observed of a class: of equal instances, different ones, and those with another hidden field."""

    def new(x: int, y: Any, **more: str) -> Any:
        return kind(x=x, y=y, **more) if by_name else kind(x, y, **more)

    one, equal, other, hidden = new(1, (2,)), new(1, (2,)), new(1, (3,)), new(1, (2,), hidden="other")
    return [
        repr(one).rpartition(".")[2],
        one == equal,
        one == other,
        one == hidden,
        one == (1, (2,)),
        kind.__hash__ is None,
        kind.__hash__ is None or hash(one) == hash(equal),
        [field.name for field in dataclasses.fields(kind)],
        dataclasses.replace(one, x=5).x,
        hasattr(one, "__dict__"),
        hasattr(one, "__weakref__"),
    ]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_record_behaves_as_a_dataclass(options: dict[str, bool]) -> None:
    by_name = "kw_only" in options
    expected = described(made(dataclasses.dataclass, **options), by_name=by_name)
    assert described(made(record, **options), by_name=by_name) == expected


CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("all by position", (1, [2], "c"), {}),
    ("defaults", (1,), {}),
    ("by name", (), {"x": 1, "z": "c"}),
    ("none", (), {}),
    ("an unknown one", (1,), {"other": 2}),
    ("one twice", (1,), {"x": 2}),
    ("too many", (1, [2], "c", 4), {}),
    ("one that is not given", (1,), {"counted": 2}),
]


@rows(("values", "named"), [row[1:] for row in CALLS], ids=[row[0] for row in CALLS])
@pytest.mark.parametrize("options", [{}, {"slots": True}, {"kw_only": True}], ids=str)
def test_a_record_is_made_as_a_dataclass_is(
    options: dict[str, bool], values: tuple[Any, ...], named: dict[str, Any]
) -> None:
    def result(decorator: Any) -> list[object]:
        class Point:
            x: int
            y: list[int] = dataclasses.field(default_factory=list)
            z: str = "z"
            counted: int = dataclasses.field(init=False, default=7)
            listed: list[int] = dataclasses.field(init=False, default_factory=list)
            total: int = dataclasses.field(init=False)

            def __post_init__(self) -> None:
                self.total = self.x + self.counted
                self.listed.append(self.total)
                self.y.append(self.x)

        kind, found = decorator(**options)(Point), list[object]()
        for _ in range(5):  # the fourth call compiles
            try:
                one = kind(*values, **named)
            except TypeError as error:
                found.append(str(error).replace("positional argument", "argument"))
            else:
                found.append([getattr(one, field.name) for field in dataclasses.fields(kind)])
        return found

    assert result(record) == result(dataclasses.dataclass)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_library_knows_a_record_before_and_after_it_is_used(options: dict[str, bool]) -> None:
    def known(decorator: Any) -> list[object]:
        kind = made(decorator, **options)

        class Derived(kind):  # type: ignore[misc]
            pass

        one = Derived(x=1)
        return [
            dataclasses.is_dataclass(kind),
            dataclasses.asdict(one),
            [(each.name, each.type, each.kw_only, each.repr, each.compare) for each in dataclasses.fields(Derived)],
            dataclasses.fields(Derived) == dataclasses.fields(kind),
            type(dataclasses.replace(one, x=2)).__name__,
            copy.copy(one).x,
            (kind.__name__, kind.__qualname__, kind.__module__, kind.__bases__),
        ]

    assert known(record) == known(dataclasses.dataclass)


def test_a_record_inherits_fields_and_has_class_variables() -> None:
    def described(decorator: Any) -> object:
        @decorator(slots=True)
        class Base:
            kind: typing.ClassVar[str] = "base"
            x: int

        @decorator(slots=True)
        class Derived(Base):
            y: int = 2

        kind: Any = Derived
        one = kind(1)
        return [repr(one).rpartition(".")[2], Derived.kind, [each.name for each in dataclasses.fields(kind)], one.x]

    assert described(record) == described(dataclasses.dataclass)


def test_a_record_keeps_methods_of_its_own() -> None:
    @record(slots=True)
    class Own:
        x: int

        def __repr__(self) -> str:
            return "shown"

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    assert repr(Own(1)) == "shown"
    assert Own(1) == Own(2)


def test_a_named_tuple_has_what_that_of_the_library_has() -> None:
    pair = Pair(1)
    assert pair == (1, "r")
    assert repr(pair) == "Pair(left=1, right='r')"
    assert (pair.both, Pair.of("ab"), Pair.__doc__) == ("1r", (2, "ab"), "Two.")
    assert (Pair._fields, Pair._field_defaults) == (("left", "right"), {"right": "r"})
    assert not hasattr(pair, "__dict__")
    assert pickle.loads(pickle.dumps(pair)) == copy.copy(pair) == pair
    assert typing.get_type_hints(Pair) == {"left": int, "right": str}
    assert records.NamedTuple is NamedTuple


def named_tuples(base: Any) -> list[Any]:
    class Empty(base):
        pass

    class One(base):
        only: int

    class Three(base):
        first: int
        second: str = "s"
        third: tuple[int, ...] = ()

        def __str__(self) -> str:
            return f"{self!r}, as text"

    return [Empty, One, Three]


USES: dict[str, Callable[[Any], object]] = {
    "nothing": lambda kind: kind(),
    "by position": lambda kind: kind(1),
    "more": lambda kind: kind(1, "b"),
    "too many": lambda kind: kind(1, 2, 3, 4),
    "by name": lambda kind: kind(third=(3,), first=1),
    "an unknown name": lambda kind: kind(1, other=2),
    "as text": lambda kind: str(kind(1)),
    "the fields": lambda kind: [kind._fields, kind._field_defaults, kind.__match_args__],
    "of values": lambda kind: kind._make([1, 2, 3]),
    "of too few values": lambda kind: kind._make([]),
    "replaced": lambda kind: kind(1)._replace(first=2),
    "replaced, another name": lambda kind: kind(1)._replace(other=2),
    "as a dict": lambda kind: kind(1)._asdict(),
    "the name": lambda kind: [kind.__name__, kind.__qualname__.rpartition(".")[2], kind.__module__],
    "the parameters": lambda kind: [
        (each.name, each.kind, each.default) for each in inspect.signature(kind).parameters.values()
    ],
    "assigned": lambda kind: setattr(kind(1), kind._fields[0], 2),
    "compared": lambda kind: [kind(1) == (1,), kind(1) == (1, "s", ()), hash(kind(1)) == hash(tuple(kind(1)))],
    "matched": lambda kind: [field for field in kind._fields if getattr(kind(1), field) == 1],
}


@rows("use", USES.values(), ids=USES)
def test_a_named_tuple_behaves_as_that_of_the_library(use: Callable[[Any], object]) -> None:
    def result(kind: Any) -> object:
        try:
            return repr(use(kind))
        except (TypeError, ValueError, AttributeError) as error:
            return f"{type(error).__name__}: {error}"

    expected = [result(kind) for kind in named_tuples(typing.NamedTuple)]
    assert [result(kind) for kind in named_tuples(records.NamedTuple)] == expected


def test_fields_with_defaults_are_the_last_ones() -> None:
    with pytest.raises(TypeError, match="without a default"):

        class _Wrong(records.NamedTuple):
            first: int = 1
            second: int  # type: ignore[misc]
