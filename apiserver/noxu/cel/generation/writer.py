"""Writes the Python source of a generated rule: lines, names, costs, and checks of the raw JSON that it loads.

The result of an expression is an `Operand`: Python code, and facts about its value. Raw JSON is checked once, when it
is loaded into a variable; later uses of the same path take the variable.

`INLINED` has the operators and functions that generated rules perform themselves, by the ids of their overloads. An
entry takes the writer and the operands and returns the result, or None to have the function called instead. It charges
the cost that `noxu.cel.cost.runtime` computes, as Python code over the sizes of the operands: n × 0.1, rounded up, is
written as -(-n//10), which is equal for every n that occurs.

    self.s.contains('abc')   →   c += -(-len(t2)//10) * (1)      with self.s in t2
                                 (('abc') in t2)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from noxu.cel.cost.runtime import PATTERN
from noxu.cel.library.standard import compile_pattern
from noxu.cel.memory import allocate, allocate_text
from noxu.cel.types.schema_types import with_type_and_object_meta
from noxu.cel.values.values import FORMAT_READERS, JsonList, JsonObject
from noxu.schema.structural import Structural
from noxu.values import MAX_INT64, MIN_INT64

MAX_DEPTH: Final = 40  # nested blocks; Python allows 100


class Fallback(Exception):
    """Raised by a generated rule that the interpreter must evaluate, because a value is not as the rule assumes."""


class Unsupported(Exception):
    """No code can be generated for this expression."""


Kind: TypeAlias = Literal["str", "int", "float", "bool", "raw", "items", "value"]
"""The facts about a value at the time of generation.

str, int, float, bool: it is exactly of that class. raw: a list or dict of JSON, as the operand's schema says. items: a list
of JSON, each element as the schema says. value: a value of the interpreter, and nothing else is known.
"""
SCALARS: Final = frozenset({"str", "int", "float", "bool"})
Path: TypeAlias = tuple[object, ...]
"""How a value is reached: the code of a variable, and names or indices. ("self", "ports", 0) is `self.ports[0]`."""


T = TypeVar("T")


class Operand(NamedTuple):
    """`constant` is the value of a literal. `path` is not empty if the value comes from an object."""

    code: str
    kind: Kind
    schema: Structural | None = None
    constant: object = None
    path: Path = ()


def _find(blocks: list[dict[Path, T]], path: Path) -> T | None:
    return next((block[path] for block in reversed(blocks) if path in block), None)


class SourceWriter:
    """Collects the lines of one function.

    Costs that are known while generating are added up in `pending` and written before a line that branches, so that a rule
    without branches costs one constant:

        self.a <= self.b   →   t1 = s
                               if t1.__class__ is not dict: raise Fallback
                               t2 = t1['a']
                               if t2.__class__ is not int: raise Fallback
                               t3 = t1['b']
                               if t3.__class__ is not int: raise Fallback
                               return 5 if (t2 <= t3) else -6

    (-6 is ~5: the rule does not hold, and has cost 5.)
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, object] = {
            "Fallback": Fallback, "JsonList": JsonList, "JsonObject": JsonObject,
        }  # fmt: skip
        self.depth = 1
        self.pending = 0
        self.temps = 0
        self.counts_cost = False  # whether the function has a variable `c` for its cost
        self.allocates = False  # whether the function may make values whose size it announces
        # One dict for each open block: what was loaded in a block is not known after it.
        self.loaded: list[dict[Path, Operand]] = [{}]
        self.probed: list[dict[Path, tuple[str, Operand]]] = [{}]  # (code for "it is present", the value if it is)

    # Lines

    def emit(self, line: str) -> None:
        self.lines.append(f"{' ' * self.depth}{line}")

    def temp(self, code: str = "") -> str:
        """A new variable, with the value of `code`."""
        self.temps += 1
        name = f"t{self.temps}"
        if code:
            self.emit(f"{name} = {code}")
        return name

    def name(self, thing: object) -> str:
        """A global name for an object that cannot be written as code."""
        for name, named in self.names.items():
            if named is thing:
                return name
        name = f"k{len(self.names)}"
        self.names[name] = thing
        return name

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        self.write_pending()
        self.emit(header)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unsupported
        self.loaded.append({})
        self.probed.append({})
        yield
        self.write_pending()
        self.loaded.pop()
        self.probed.pop()
        self.depth -= 1

    @contextmanager
    def loop(self, header: str) -> Iterator[None]:
        with self.block(header):
            yield
            self.check_limit()

    def fall_back_if(self, condition: str) -> None:
        self.emit(f"if {condition}: raise Fallback")

    def allocate(self, size: str) -> None:
        """Announce that many bytes, given as code."""
        self.allocates = True
        self.emit(f"{self.name(allocate)}({size})")

    # Costs

    def charge(self, cost: int | str) -> None:
        """Add a cost: a number, or the code of an expression for it."""
        if isinstance(cost, int):
            self.pending += cost
        else:
            self.counts_cost = True
            self.emit(f"c += {cost}")

    def write_pending(self) -> None:
        if self.pending:
            self.counts_cost = True
            self.emit(f"c += {self.pending}")
            self.pending = 0

    def check_limit(self) -> None:
        """Write the call of `more`, which is due when the cost exceeds `limit`."""
        self.write_pending()
        self.counts_cost = True
        self.emit("if c > limit: limit = more(c)")

    # Operands

    def load(self, code: str, schema: Structural, path: Path) -> Operand:
        """JSON, checked to be as the schema says (as `values.from_json` would)."""
        loaded = _find(self.loaded, path)
        if loaded is None:
            probed = _find(self.probed, path)
            if probed is None:
                loaded = self.check(self.temp(code), schema, path)
            else:
                self.fall_back_if(f"not {probed[0]}")
                loaded = probed[1]
            self.loaded[-1][path] = loaded
        return loaded

    def load_if_present(self, code: str, schema: Structural, path: Path, ambiguous: str = "") -> str:
        """Code for whether a value is present; loads it if it is. Absent and null are the same here.

        `ambiguous` is a condition under which an absent value and a null differ: then the interpreter decides.

            has(self.a) && self.a > 3   →   t2 = t1.get('a')
                                            t3 = t2 is not None
                                            if t3:
                                             if t2.__class__ is not int: raise Fallback
                                            t4 = t3                              # the result of has()
                                            if t4:
                                             if not t3: raise Fallback           # self.a is in t2, if it is present
                                             t4 = (t2 > (3))
        """
        if _find(self.loaded, path) is not None:
            return "True"
        probed = _find(self.probed, path)
        if probed is None:
            name = self.temp(code)
            present = self.temp(f"{name} is not None")
            if ambiguous:
                self.fall_back_if(f"not {present} and {ambiguous}")
            with self.block(f"if {present}:"):
                probed = present, self.check(name, schema, path)
            self.probed[-1][path] = probed
        return probed[0]

    def check(self, name: str, schema: Structural, path: Path) -> Operand:
        """The operand for JSON in a variable, and lines that check its class."""
        if schema.int_or_string:
            self.fall_back_if(f"{name}.__class__ is not str and {name}.__class__ is not int")
            return Operand(name, "value", path=path)
        match schema.type:
            case "object":
                self.fall_back_if(f"{name}.__class__ is not dict")
                seen = with_type_and_object_meta(schema) if schema.embedded_resource else schema
                return Operand(name, "raw", seen, path=path)
            case "array" if schema.items is not None:
                self.fall_back_if(f"{name}.__class__ is not list")
                return Operand(name, "raw", schema, path=path)
            case "string":
                self.fall_back_if(f"{name}.__class__ is not str")
                read = FORMAT_READERS.get(schema.validation.format)
                if read is not None:
                    self.allocates = True
                    return Operand(self.temp(f"{self.name(read)}({name})"), "value", path=path)
                return Operand(name, "str", path=path)
            case "integer":
                self.fall_back_if(f"{name}.__class__ is not int")
                return Operand(name, "int", path=path)
            case "boolean":
                self.fall_back_if(f"{name}.__class__ is not bool")
                return Operand(name, "bool", path=path)
            case "number":
                with self.block(f"if {name}.__class__ is not float:"):
                    self.fall_back_if(f"{name}.__class__ is not int")
                    self.emit(f"{name} = float({name})")
                return Operand(name, "float", path=path)
        raise Unsupported

    def literal(self, value: object) -> Operand:
        kind: dict[type, Kind] = {str: "str", int: "int", float: "float", bool: "bool"}
        if type(value) in kind and value == value:
            return Operand(f"({value!r})", kind[type(value)], constant=value)
        return Operand(self.name(value) if value is not None else "None", "value", constant=value)

    def as_value(self, operand: Operand) -> str:
        """Code for the value as the interpreter represents it."""
        if operand.kind == "raw":
            assert operand.schema is not None
            wrapper = "JsonList" if operand.schema.type == "array" else "JsonObject"
            return f"{wrapper}({operand.code}, {self.name(operand.schema)})"
        if operand.kind == "items":
            assert operand.schema is not None
            item = self.as_value(Operand("item", "raw", operand.schema))
            return f"[{item} for item in {operand.code}]"
        return operand.code

    def as_kind(self, operand: Operand, kind: Kind) -> str:
        """Code for the value, which is checked to be of that class."""
        if operand.kind == kind:
            return operand.code
        if operand.kind != "value":
            raise Unsupported
        name = self.temp(operand.code)
        self.fall_back_if(f"{name}.__class__ is not {kind}")
        return name

    def function(self, header: str) -> str:
        """The source of the function."""
        start = [" c = 0"] if self.counts_cost else []
        return "\n".join([header, *start, *self.lines])


Inline: TypeAlias = Callable[[SourceWriter, list[Operand]], Operand | None]
_LONG_TEXT: Final = 1024  # characters; the number of shorter ones is limited by their cost


def traversal(operand: Operand) -> str:
    """The cost of reading a string once."""
    if isinstance(operand.constant, str):
        return str(-(-len(operand.constant) // 10))
    return f"-(-len({operand.code})//10)"


def shorter_traversal(left: Operand, right: Operand) -> str:
    """The cost of reading the shorter of two strings once."""
    if not isinstance(left.constant, str):
        left, right = right, left
    if not isinstance(left.constant, str):
        return f"-(-min(len({left.code}), len({right.code}))//10)"
    length = len(left.constant)
    if length == 0:
        return "0"
    return f"(1 if {right.code} else 0)" if length <= 10 else f"-(-min({length}, len({right.code}))//10)"


def charge(writer: SourceWriter, code: str) -> None:
    writer.charge(int(code) if code.isdigit() else code)


def _relation(sign: str, kind: Kind) -> Inline:
    def inline(writer: SourceWriter, args: list[Operand]) -> Operand | None:
        left, right = args
        if kind == "float" and not all(arg.path or arg.constant is not None for arg in args):
            return None  # a computed double may be NaN
        codes = writer.as_kind(left, kind), writer.as_kind(right, kind)
        if kind == "str":
            charge(writer, shorter_traversal(left._replace(code=codes[0]), right._replace(code=codes[1])))
        else:
            writer.charge(1)
        return Operand(f"({codes[0]} {sign} {codes[1]})", "bool")

    return inline


def _arithmetic(sign: str) -> Inline:
    def inline(writer: SourceWriter, args: list[Operand]) -> Operand:
        left, right = (writer.as_kind(arg, "int") for arg in args)
        writer.charge(1)
        result = writer.temp(f"{left} {sign} {right}")
        writer.fall_back_if(f"not {MIN_INT64} <= {result} <= {MAX_INT64}")
        return Operand(result, "int")

    return inline


def _concatenation(writer: SourceWriter, args: list[Operand]) -> Operand:
    left, right = (writer.as_kind(arg, "str") for arg in args)
    result = Operand(writer.temp(f"{left} + {right}"), "str")
    writer.allocates = True
    announce = f"{writer.name(allocate_text)}(len({result.code}), {result.code})"
    writer.emit(f"if len({result.code}) > {_LONG_TEXT}: {announce}")
    charge(writer, traversal(result))
    return result


def _length(writer: SourceWriter, args: list[Operand]) -> Operand | None:
    if args[0].kind == "value":
        return None
    writer.charge(1)
    return Operand(f"len({args[0].code})", "int")


def _negation(writer: SourceWriter, args: list[Operand]) -> Operand:
    writer.charge(1)
    return Operand(f"(not {writer.as_kind(args[0], 'bool')})", "bool")


def _strings(writer: SourceWriter, args: list[Operand]) -> tuple[Operand, Operand]:
    text, part = (arg._replace(code=writer.as_kind(arg, "str")) for arg in args)
    return text, part


def _contains(writer: SourceWriter, args: list[Operand]) -> Operand:
    text, part = _strings(writer, args)
    charge(writer, f"{traversal(text)} * ({traversal(part)})")
    return Operand(f"({part.code} in {text.code})", "bool")


def _affix(method: str) -> Inline:
    def inline(writer: SourceWriter, args: list[Operand]) -> Operand:
        text, part = _strings(writer, args)
        charge(writer, traversal(part))
        return Operand(f"{text.code}.{method}({part.code})", "bool")

    return inline


def _matches(writer: SourceWriter, args: list[Operand]) -> Operand | None:
    pattern = args[1].constant
    if not isinstance(pattern, str):
        return None
    text = writer.as_kind(args[0], "str")
    pattern_cost = -int(-len(pattern) * PATTERN // 1)
    writer.charge(f"-(-(len({text}) + 1)//10) * {pattern_cost}")
    return Operand(f"{writer.name(compile_pattern(pattern).search)}({text})", "bool")


_SIGNS: Final = {"less": "<", "less_equals": "<=", "greater": ">", "greater_equals": ">="}
_KINDS: Final[dict[str, Kind]] = {"int64": "int", "string": "str", "double": "float", "bool": "bool"}
INLINED: Final[dict[str, Inline]] = {
    **{f"{name}_{suffix}": _relation(sign, kind) for name, sign in _SIGNS.items() for suffix, kind in _KINDS.items()},
    "add_int64": _arithmetic("+"),
    "subtract_int64": _arithmetic("-"),
    "multiply_int64": _arithmetic("*"),
    "add_string": _concatenation,
    **dict.fromkeys(("size_string", "string_size", "size_list", "list_size", "size_map", "map_size"), _length),
    "logical_not": _negation,
    "contains_string": _contains,
    "starts_with_string": _affix("startswith"),
    "ends_with_string": _affix("endswith"),
    "matches": _matches,
    "matches_string": _matches,
}


def equality(writer: SourceWriter, args: list[Operand], sign: str) -> Operand | None:
    """`==` and `!=` of two scalars of the same class; None for other operands."""
    left, right = args
    if left.kind != right.kind or left.kind not in SCALARS:
        return None
    if left.kind == "str":
        charge(writer, shorter_traversal(left, right))
    else:
        writer.charge(1)
    return Operand(f"({left.code} {sign} {right.code})", "bool")
