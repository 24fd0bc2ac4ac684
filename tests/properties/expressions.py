"""Random well-typed CEL expressions, as text, about objects of one schema; and objects that fit it, more or less."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as st

from noxu.values import Object

TEXT: Final[Object] = {"type": "string", "maxLength": 20}
INTEGER: Final[Object] = {"type": "integer"}
SCHEMA: Final[Object] = {
    "type": "object",
    "properties": {
        "i": INTEGER,
        "j": INTEGER,
        "s": TEXT,
        "t": {**TEXT, "nullable": True},
        "b": {"type": "boolean"},
        "n": {"type": "number"},
        "port": {"x-kubernetes-int-or-string": True},
        "time": {"type": "string", "format": "date-time"},
        "names": {"type": "array", "items": TEXT, "maxItems": 9},
        "numbers": {"type": "array", "items": INTEGER, "maxItems": 9},
        "set": {"type": "array", "items": TEXT, "maxItems": 9, "x-kubernetes-list-type": "set"},
        "labels": {"type": "object", "additionalProperties": TEXT, "maxProperties": 9},
        "o": {"type": "object", "properties": {"x": INTEGER, "a-b": TEXT}},
        "items": {
            "type": "array",
            "maxItems": 9,
            "items": {"type": "object", "properties": {"name": TEXT, "weight": INTEGER}, "required": ["name"]},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
    },
}
TEXTS: Final = ("", "a", "ab", "b", "hello", "é☃", "10", "2024-01-01T00:00:00Z", "x" * 12)
INTEGERS: Final = (0, 1, 2, 3, -1, 7, 10, 2**63 - 1, -(2**63))
FLOATS: Final = (0.0, 1.0, 1.5, -2.5, 1e300, 3)

_texts = st.sampled_from(TEXTS)
_integers = st.sampled_from(INTEGERS)
_wrong: st.SearchStrategy[Any] = st.sampled_from((None, 5, "x", True, [], {}, 1.5))


def _mostly(right: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Now and then something of another type: what is stored was valid once, not always now."""
    return st.one_of(*[right] * 12, _wrong)


objects: Final[st.SearchStrategy[Object]] = st.fixed_dictionaries(
    {},
    optional={
        "i": _mostly(_integers),
        "j": _integers,
        "s": _mostly(_texts),
        "t": st.one_of(_texts, st.none()),
        "b": _mostly(st.booleans()),
        "n": st.sampled_from(FLOATS),
        "port": _mostly(st.one_of(_integers, _texts)),
        "time": st.sampled_from(("2024-02-29T12:30:45Z", "2024-02-29T12:30:45.5+02:00", "soon")),
        "names": _mostly(st.lists(_mostly(_texts), max_size=4)),
        "numbers": st.lists(_mostly(_integers), max_size=4),
        "set": st.lists(_texts, max_size=4, unique=True),
        "labels": st.dictionaries(_texts, _mostly(_texts), max_size=3),
        "o": st.fixed_dictionaries({}, optional={"x": _integers, "a-b": _texts}),
        "items": st.lists(
            st.fixed_dictionaries({"name": _texts}, optional={"weight": _mostly(_integers)}),
            max_size=3,
        ),
    },
)

FIELDS: Final = {
    "int": ("self.i", "self.j", "self.o.x", "self.numbers[0]", "self.items[0].weight"),
    "string": (
        "self.s", "self.t", "self.names[0]", "self.labels.a", "self.labels['b']", "self.o.a__dash__b",
        "self.items[0].name",
    ),
    "bool": ("self.b",),
    "double": ("self.n",),
    "dyn": ("self.port", "dyn(self.i)", "dyn(1.0)", "dyn('a')"),
    "time": ("self.time",),
    "texts": ("self.names", "self.set"),
    "ints": ("self.numbers",),
    "map": ("self.labels",),
}  # fmt: skip
LITERALS: Final = {
    "int": ("0", "1", "-1", "3", "9223372036854775807", "-9223372036854775808"),
    "string": ("''", "'a'", "'ab'", "'é☃'", "'hello'", "'10'"),
    "bool": ("true", "false"),
    "double": ("0.0", "1.5", "-2.5", "1e300"),
    "time": ("timestamp('2024-01-01T00:00:00Z')", "timestamp('2024-02-29T12:30:45.5+02:00')"),
    "span": ("duration('1h')", "duration('-1m30s')"),
    "texts": ("['a', 'b']", "[]"),
    "ints": ("[1, 2, 3]", "[]"),
    "map": ("{'a': 'b'}", "{}"),
    "dyn": ("dyn(1)",),
}
ELEMENTS: Final = {"texts": "string", "ints": "int", "map": "string"}
# What makes an expression of a type: templates whose holes are types. `<` `>` stand for a comparison sign.
SHAPES: Final[dict[str, tuple[str, ...]]] = {
    "bool": (
        "{int} SIGN {int}", "{string} SIGN {string}", "{double} SIGN {double}", "{time} SIGN {time}", "{span} SIGN {span}",
        "{dyn} SIGN {dyn}", "{bool} == {bool}", "{texts} == {texts}", "{ints} != {ints}", "{map} == {map}",
        "({bool} && {bool})", "({bool} || {bool})", "!({bool})", "({bool} ? {bool} : {bool})",
        "{string} in {texts}", "{int} in {ints}", "{string} in {map}", "{dyn} == {int}", "{int} < {double}",
        "{string}.contains({string})", "{string}.startsWith({string})", "{string}.endsWith({string})",
        "{string}.matches('^[a-z]+$')", "{string}.matches({string})",
    ),
    "int": (
        "({int} + {int})", "({int} - {int})", "({int} * {int})", "({int} / {int})", "({int} % {int})", "-({int})",
        "size({string})", "{texts}.size()", "size({ints})", "size({map})", "int({string})", "int({double})",
        "({bool} ? {int} : {int})", "{ints}[{int}]", "{time}.getHours()", "{time}.getFullYear()",
    ),
    "string": (
        "({string} + {string})", "string({int})", "string({bool})", "{texts}[{int}]", "({bool} ? {string} : {string})",
        "{map}[{string}]",
    ),
    "double": ("({double} + {double})", "({double} * {double})", "({double} / {double})", "double({int})", "-({double})"),
    "time": ("({time} + {span})", "({time} - {span})", "timestamp({string})"),
    "span": ("({time} - {time})", "({span} + {span})"),
    "texts": ("({texts} + {texts})", "[{string}, {string}]", "({bool} ? {texts} : {texts})"),
    "ints": ("({ints} + {ints})", "[{int}, {int}]"),
    "map": ("{{{string}: {string}}}",),
    "dyn": ("dyn({int})", "dyn({string})", "dyn({double})", "dyn({bool})"),
}  # fmt: skip
# Functions beyond the language's core.
EXTRA: Final[dict[str, tuple[str, ...]]] = {
    "bool": (
        "{texts}.isSorted()", "isIP({string})", "has(self.s)", "has(self.t)", "has(self.o.x)", "has(self.labels.a)",
        "has(self.items[0].weight)", "has(self.port)", "self.?t.hasValue()", "self == oldSelf", "self.i >= oldSelf.i",
        "self.items == oldSelf.items", "self.set == oldSelf.set", "self.items.all(x, x.weight > {int})",
        "self.items.exists(x, x.name == {string} || x.weight < {int})", "self.items.exists_one(x, x.name == {string})",
        "self.items.all(x, self.items.exists_one(y, x.name == y.name))", "sets.contains({texts}, {texts})",
        "type({dyn}) == int", "optional.of({int}).value() == {int}", "self.labels.all(k, v, k != v)",
    ),
    "int": (
        "{ints}.sum()", "{ints}.max()", "{string}.indexOf({string})", "{texts}.indexOf({string})", "{ints}.min()",
        "self.items.filter(x, x.weight > {int}).size()", "self.?i.orValue({int})", "self.items.map(x, x.weight).sum()",
    ),
    "string": (
        "{string}.lowerAscii()", "{string}.substring({int})", "{string}.replace({string}, {string})", "{texts}.join('-')",
        "{string}.charAt({int})", "{string}.find('[a-z]')", "'%s %s'.format([{string}, {int}])", "{string}.trim()",
        "string({span})", "string({time})",
    ),
    "texts": (
        "{string}.split(',')", "{texts}.sort()", "{texts}.distinct()", "self.items.map(x, x.name)",
        "{texts}.slice({int}, {int})", "{ints}.transformList(i, v, string(v))",
    ),
    "ints": ("{ints}.sort()", "{ints}.reverse()", "{ints}.transformList(i, v, i + v)"),
    "map": ("{map}.transformMap(k, v, v + k)",),
}  # fmt: skip
FOLDS: Final = {
    "bool": ("all", "exists", "exists_one"),
    "texts": ("filter", "map"),
    "ints": ("filter", "map"),
}


@dataclass
class Writer:
    """Draws expressions. `core` leaves out what is not in the language itself."""

    draw: st.DrawFn
    core: bool
    scope: list[tuple[str, str]] = field(default_factory=list)

    def choose(self, options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def write(self, kind: str, depth: int) -> str:
        if depth <= 0:
            return self.leaf(kind)
        ways = ["leaf", "shape", "shape", "shape"]
        if kind in FOLDS:
            ways.append("fold")
        match self.choose(ways):
            case "leaf":
                return self.leaf(kind)
            case "fold":
                return self.fold(kind, depth - 1)
        shapes = SHAPES.get(kind, ())
        if not self.core:
            shapes += EXTRA.get(kind, ())
        shape: str = self.choose(shapes) if shapes else self.leaf(kind)
        while "SIGN" in shape:
            shape = shape.replace("SIGN", self.choose(("<", "<=", ">", ">=", "==", "!=")), 1)
        return shape.format_map(_Holes(self, depth - 1))

    def leaf(self, kind: str) -> str:
        known = [name for name, its in self.scope if its == kind]
        return str(self.choose((*known, *known, *FIELDS.get(kind, ()), *LITERALS.get(kind, ()))))

    def fold(self, kind: str, depth: int) -> str:
        source = self.choose(("texts", "ints", "map") if kind == "bool" else (kind,))
        macro, variable = self.choose(FOLDS[kind]), self.choose(("x", "y", "z"))
        over = self.write(source, depth)
        self.scope.append((variable, ELEMENTS[source]))
        body = self.write(ELEMENTS[source] if macro == "map" else "bool", depth)
        self.scope.pop()
        return f"{over}.{macro}({variable}, {body})"


class _Holes(dict[str, str]):
    """Fills the holes of a shape, each with an expression of its own."""

    def __init__(self, writer: Writer, depth: int) -> None:
        super().__init__()
        self.writer = writer
        self.depth = depth

    def __missing__(self, kind: str) -> str:
        return self.writer.write(kind, self.depth)


@st.composite
def expressions(draw: st.DrawFn, kind: str = "bool", depth: int = 3, *, core: bool = False) -> str:
    return Writer(draw, core).write(kind, draw(st.integers(1, depth)))
