"""Writes the Python of a generated rule: lines, names, costs, and raw JSON checked as it is loaded.

What an expression gave is an `Atom`: Python code, and what is certain about its value.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from apiserver.cel.schema_types import with_type_and_object_meta
from apiserver.cel.values import FORMATS, JsonList, JsonObject
from apiserver.schema.structural import Structural

MAX_DEPTH: Final = 40  # of blocks; Python takes 100


class Undecided(Exception):
    """A generated rule found that something is not as simple as it takes it to be."""


class Declined(Exception):
    """Nothing is generated for this expression."""


# str, int, float, bool: of exactly that class. raw: JSON as the schema says, a list or a dict. items: a list of JSON,
# each as the schema says. value: as the walker knows values, nothing else is certain.
Kind: TypeAlias = Literal["str", "int", "float", "bool", "raw", "items", "value"]
SCALARS: Final = frozenset({"str", "int", "float", "bool"})
Trail: TypeAlias = tuple[object, ...]  # how a value is reached: a variable, names


T = TypeVar("T")


class Atom(NamedTuple):
    """`constant` is the value of a literal; `trail` says where the value comes from, if it comes from an object."""

    code: str
    kind: Kind
    schema: Structural | None = None
    constant: object = None
    trail: Trail = ()


def _find(blocks: list[dict[Trail, T]], trail: Trail) -> T | None:
    return next((block[trail] for block in reversed(blocks) if trail in block), None)


class Writer:
    """`pending` are costs not yet written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, object] = {
            "Undecided": Undecided, "JsonList": JsonList, "JsonObject": JsonObject,
        }  # fmt: skip
        self.depth = 1
        self.pending = 0
        self.temps = 0
        self.counts = False  # is there a variable for the cost?
        self.known: list[dict[Trail, Atom]] = [{}]  # what was loaded, in this block and those around it
        self.tested: list[dict[Trail, tuple[str, Atom]]] = [{}]  # what was loaded if it is there, and whether it is

    # Lines

    def emit(self, line: str) -> None:
        self.lines.append(f"{' ' * self.depth}{line}")

    def temp(self, code: str = "") -> str:
        self.temps += 1
        name = f"t{self.temps}"
        if code:
            self.emit(f"{name} = {code}")
        return name

    def name(self, thing: object) -> str:
        """A name for something that is no code."""
        for name, known in self.names.items():
            if known is thing:
                return name
        name = f"k{len(self.names)}"
        self.names[name] = thing
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.flush()
        self.emit(head)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Declined
        self.known.append({})
        self.tested.append({})
        yield
        self.flush()
        self.known.pop()
        self.tested.pop()
        self.depth -= 1

    @contextmanager
    def loop(self, head: str) -> Iterator[None]:
        with self.block(head):
            yield
            self.ask()

    def refuse(self, condition: str) -> None:
        self.emit(f"if {condition}: raise Undecided")

    # Costs

    def spend(self, cost: int | str) -> None:
        """A number, or code for one."""
        if isinstance(cost, int):
            self.pending += cost
        else:
            self.counts = True
            self.emit(f"c += {cost}")

    def flush(self) -> None:
        if self.pending:
            self.counts = True
            self.emit(f"c += {self.pending}")
            self.pending = 0

    def ask(self) -> None:
        """Costs may have grown beyond the limit up to which nobody has to be asked."""
        self.flush()
        self.counts = True
        self.emit("if c > limit: limit = more(c)")

    # Atoms

    def load(self, code: str, schema: Structural, trail: Trail) -> Atom:
        """A piece of JSON, checked to be as the schema says (as `values.from_json` would)."""
        known = _find(self.known, trail)
        if known is None:
            tested = _find(self.tested, trail)
            if tested is None:
                known = self.check(self.temp(code), schema, trail)
            else:
                self.refuse(f"not {tested[0]}")
                known = tested[1]
            self.known[-1][trail] = known
        return known

    def load_if_present(self, code: str, schema: Structural, trail: Trail, refused: str = "") -> str:
        """Code for whether it is there. `refused` is a condition under which it is hard to tell."""
        if _find(self.known, trail) is not None:
            return "True"
        tested = _find(self.tested, trail)
        if tested is None:
            name = self.temp(code)
            there = self.temp(f"{name} is not None")
            if refused:
                self.refuse(f"not {there} and {refused}")
            with self.block(f"if {there}:"):
                tested = there, self.check(name, schema, trail)
            self.tested[-1][trail] = tested
        return tested[0]

    def check(self, name: str, schema: Structural, trail: Trail) -> Atom:
        if schema.int_or_string:
            self.refuse(f"{name}.__class__ is not str and {name}.__class__ is not int")
            return Atom(name, "value", trail=trail)
        match schema.type:
            case "object":
                self.refuse(f"{name}.__class__ is not dict")
                seen = with_type_and_object_meta(schema) if schema.embedded_resource else schema
                return Atom(name, "raw", seen, trail=trail)
            case "array" if schema.items is not None:
                self.refuse(f"{name}.__class__ is not list")
                return Atom(name, "raw", schema, trail=trail)
            case "string":
                self.refuse(f"{name}.__class__ is not str")
                read = FORMATS.get(schema.validation.format)
                if read is not None:
                    return Atom(self.temp(f"{self.name(read)}({name})"), "value", trail=trail)
                return Atom(name, "str", trail=trail)
            case "integer":
                self.refuse(f"{name}.__class__ is not int")
                return Atom(name, "int", trail=trail)
            case "boolean":
                self.refuse(f"{name}.__class__ is not bool")
                return Atom(name, "bool", trail=trail)
            case "number":
                with self.block(f"if {name}.__class__ is not float:"):
                    self.refuse(f"{name}.__class__ is not int")
                    self.emit(f"{name} = float({name})")
                return Atom(name, "float", trail=trail)
        raise Declined

    def literal(self, value: object) -> Atom:
        kind: dict[type, Kind] = {str: "str", int: "int", float: "float", bool: "bool"}
        if type(value) in kind and value == value:
            return Atom(f"({value!r})", kind[type(value)], constant=value)
        return Atom(self.name(value) if value is not None else "None", "value", constant=value)

    def boxed(self, atom: Atom) -> str:
        """Code for the value as the walker knows it."""
        if atom.kind == "raw":
            assert atom.schema is not None
            box = "JsonList" if atom.schema.type == "array" else "JsonObject"
            return f"{box}({atom.code}, {self.name(atom.schema)})"
        if atom.kind == "items":
            assert atom.schema is not None
            item = self.boxed(Atom("one", "raw", atom.schema))
            return f"[{item} for one in {atom.code}]"
        return atom.code

    def certain(self, atom: Atom, kind: Kind) -> str:
        """Code for a value of that class."""
        if atom.kind == kind:
            return atom.code
        if atom.kind != "value":
            raise Declined
        name = self.temp(atom.code)
        self.refuse(f"{name}.__class__ is not {kind}")
        return name

    def function(self, header: str) -> str:
        """All that was written."""
        start = [" c = 0"] if self.counts else []
        return "\n".join([header, *start, *self.lines])
