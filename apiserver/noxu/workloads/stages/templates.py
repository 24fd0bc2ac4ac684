"""Templates of Go (text/template), as far as stages of kwok have them; what is beyond that is refused when a template is read.

    {{ .spec.nodeName }}   {{ $now }}   {{ index . 0 | Quote }}   {{ or .a ( f .b ) }}   {{/* comment */}}   {{- trimmed -}}
    {{ $x := … }}   {{ $x = … }}   {{ if … }} {{ else if … }} {{ else }} {{ end }}   {{ with … }} {{ else }} {{ end }}
    {{ range … }}   {{ range $item := … }}   {{ range $index, $item := … }} {{ else }} {{ end }}   {{ break }} {{ continue }}

Values are those of JSON. A field that is not there is nothing, also of nothing, which Go refuses there. `define`, `template`,
`block` and methods are refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from noxu.expressions import expression
from noxu.features import meant
from noxu.values import Json

Function = Callable[..., Any]
Evaluate = Callable[["_Scope"], Any]
Render = Callable[["_Scope"], None]
MAX_OUTPUT: Final = 1 << 20  # characters


class TemplateError(Exception):
    """A template cannot be rendered for an object."""


class _Scope:
    """While a template is rendered: what `.` and `$` are, its variables, the functions, and the output."""

    def __init__(self, data: Json, functions: Mapping[str, Function]) -> None:
        self.dot = data
        self.variables: list[tuple[str, Any]] = [("$", data)]
        self.functions = functions
        self.output: list[str] = []
        self.length = 0

    def write(self, text: str) -> None:
        self.length += len(text)
        if self.length > MAX_OUTPUT:
            raise TemplateError(f"it makes more than {MAX_OUTPUT} characters")
        self.output.append(text)

    def position(self, name: str) -> int:
        return max(n for n, (there, _) in enumerate(self.variables) if there == name)


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class GoTemplate:
    """A compiled template. `known` are the names of functions. Raises ValueError."""

    def __init__(self, text: str, known: Iterable[str]) -> None:
        parser = _Parser(_pieces(text.strip()), frozenset(known))
        self._nodes = parser.block()
        parser.finish()

    def render(self, data: Json, functions: Mapping[str, Function]) -> str:
        """Raises TemplateError."""
        scope = _Scope(data, functions)
        try:
            _run(self._nodes, scope)
        except (_Break, _Continue):
            raise TemplateError("break and continue are of a range") from None
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError) as error:
            raise TemplateError(str(error) or repr(error)) from None
        return "".join(scope.output)


def _run(nodes: Sequence[Render], scope: _Scope) -> None:
    for node in nodes:
        node(scope)


# -- pieces and tokens ------------------------------------------------------------------------------------------------


class _Piece(NamedTuple):
    """Text, or the content of an action."""

    is_action: bool
    text: str


_ACTION: Final = expression(
    r"""\{\{(?P<left>-\s)?(?P<comment>\s*/\*.*?\*/\s*)?(?P<body>(?:"(?:[^"\\]|\\.)*"|`[^`]*`|(?!-?\}\}|["`]).)*)"""
    r"""(?P<right>\s-|-)?\}\}""",
    16,  # re.DOTALL
)


def _pieces(text: str) -> list[_Piece]:
    pieces: list[_Piece] = []
    at, trims = 0, False
    for match in _ACTION.finditer(text):
        between = text[at : match.start()]
        between = between.lstrip() if trims else between
        pieces.append(_Piece(False, between.rstrip() if match["left"] else between))
        if match["comment"] is None:
            pieces.append(_Piece(True, match["body"].strip()))
        at, trims = match.end(), bool(match["right"])
    rest = text[at:].lstrip() if trims else text[at:]
    if "{{" in rest:
        raise ValueError(f"an action has no end: {rest[rest.index('{{') :][:40]!r}")
    return [*pieces, _Piece(False, rest)]


class _Token(NamedTuple):
    kind: str
    """text, number, name, fields, variable, or the symbol itself; "" at the end."""
    value: Any
    is_attached: bool


_TOKENS: Final = expression(
    r"""(?P<space>\s*)(?:(?P<text>"(?:[^"\\]|\\.)*")|`(?P<raw>[^`]*)`|(?P<number>[-+]?\d+(?:\.\d+)?)"""
    r"""|(?P<fields>(?:\.[A-Za-z_]\w*)+)|(?P<variable>\$\w*)|(?P<name>[A-Za-z_]\w*)|(?P<symbol>:=|[=,|().]))"""
)


def _tokens(action: str) -> list[_Token]:
    tokens, at = [], 0
    while action[at:].strip():
        match = _TOKENS.match(action, at)
        if match is None:
            raise ValueError(f"{{{{ {action} }}}} is not understood from {action[at:].strip()[:20]!r} on")
        kind = str(match.lastgroup)
        found: Any = match[kind]
        if kind in ("text", "number"):
            found = json.loads(found.removeprefix("+"))
        elif kind == "fields":
            found = found[1:].split(".")
        kind = found if kind == "symbol" else "text" if kind == "raw" else kind
        tokens.append(_Token(kind, found, bool(at) and not match["space"]))
        at = match.end()
    return [*tokens, _Token("", "", is_attached=False)]


# -- control structures -----------------------------------------------------------------------------------------------


class _Parser:
    def __init__(self, pieces: Sequence[_Piece], known: frozenset[str]) -> None:
        self._pieces = pieces
        self._next = 0
        self._known = known
        self._variables = ["$"]

    def finish(self) -> None:
        if self._next < len(self._pieces):
            raise ValueError(f"{{{{ {self._pieces[self._next].text} }}}} ends nothing")

    def block(self) -> list[Render]:
        """Until an action that ends it, which is not taken: `end` or `else`."""
        nodes: list[Render] = []
        while self._next < len(self._pieces):
            piece = self._pieces[self._next]
            word = piece.text.split(None, 1)[0] if piece.is_action and piece.text else ""
            if word in ("end", "else"):
                break
            self._next += 1
            if not piece.is_action:
                nodes.append(_text(piece.text))
            elif word in _STRUCTURES:
                nodes.append(self._structure(word, piece.text[len(word) :]))
            elif word in ("break", "continue"):
                nodes.append(_raise(_Break if word == "break" else _Continue))
            elif word in ("define", "template", "block"):
                raise ValueError(f"{{{{ {piece.text} }}}}: {word} is not supported in stages")
            elif piece.text:
                nodes.append(self._expressions(piece.text).statement())
        return nodes

    def _expressions(self, text: str) -> _Expressions:
        return _Expressions(text, self._known, self._variables)

    def _structure(self, word: str, rest: str) -> Render:
        depth = len(self._variables)
        names, value = self._expressions(rest).declaration(in_range=word == "range")
        inner = self.block()
        otherwise = self._otherwise(word)
        del self._variables[depth:]
        return _STRUCTURES[word](names, value, inner, otherwise)

    def _otherwise(self, word: str) -> list[Render]:
        """What follows `else`; the `end` is taken."""
        if self._next == len(self._pieces):
            raise ValueError(f"{{{{ {word} }}}} has no end")
        text = self._pieces[self._next].text
        self._next += 1
        if text == "end":
            return []
        following = text.removeprefix("else").strip()
        next_word, _, rest = following.partition(" ")
        if next_word in ("if", "with"):
            return [self._structure(next_word, rest)]
        if following:
            raise ValueError(f"{{{{ {text} }}}} is not understood")
        nodes = self.block()
        if self._next == len(self._pieces) or self._pieces[self._next].text != "end":
            raise ValueError(f"{{{{ {word} }}}} has no end")
        self._next += 1
        return nodes


def _text(text: str) -> Render:
    return lambda scope: scope.write(text)


def _raise(error: type[Exception]) -> Render:
    def node(_scope: _Scope) -> None:
        raise error

    return node


def _if(names: Sequence[str], value: Evaluate, inner: Sequence[Render], otherwise: Sequence[Render]) -> Render:
    def node(scope: _Scope) -> None:
        depth = len(scope.variables)
        found = value(scope)
        scope.variables += [(name, found) for name in names]
        _run(inner if is_true(found) else otherwise, scope)
        del scope.variables[depth:]

    return node


def _with(names: Sequence[str], value: Evaluate, inner: Sequence[Render], otherwise: Sequence[Render]) -> Render:
    def node(scope: _Scope) -> None:
        depth, before = len(scope.variables), scope.dot
        found = value(scope)
        scope.variables += [(name, found) for name in names]
        if is_true(found):
            scope.dot = found
            _run(inner, scope)
        else:
            _run(otherwise, scope)
        scope.dot = before
        del scope.variables[depth:]

    return node


def _range(names: Sequence[str], value: Evaluate, inner: Sequence[Render], otherwise: Sequence[Render]) -> Render:
    def node(scope: _Scope) -> None:
        depth, before = len(scope.variables), scope.dot
        pairs = _pairs(value(scope))
        for pair in pairs:
            scope.dot = pair[1]
            scope.variables += zip(names, pair if len(names) > 1 else pair[1:], strict=False)
            try:
                _run(inner, scope)
            except _Continue:
                continue
            except _Break:
                break
            finally:
                del scope.variables[depth:]
        scope.dot = before
        if not pairs:
            _run(otherwise, scope)

    return node


def _pairs(value: Any) -> list[tuple[Any, Any]]:
    if value is None:
        return []
    if isinstance(value, dict):
        return sorted(value.items())
    if isinstance(value, list | tuple):
        return list(enumerate(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return [(n, n) for n in range(value)]
    raise TypeError(f"range can't iterate over {go_text(value)}")


_STRUCTURES: Final[Mapping[str, Callable[..., Render]]] = {"if": _if, "with": _with, "range": _range}


# -- expressions ------------------------------------------------------------------------------------------------------


class _Expressions:
    """The expressions of one action. `variables` are those that are declared before it; it adds its own."""

    def __init__(self, text: str, known: frozenset[str], variables: list[str]) -> None:
        self._text, self._known, self._variables = text.strip(), known, variables
        self._tokens = _tokens(text)
        self._next = 0

    def _wrong(self) -> ValueError:
        return ValueError(f"{{{{ {self._text} }}}} is not understood")

    def _take(self, kind: str) -> bool:
        if self._tokens[self._next].kind != kind:
            return False
        self._next += 1
        return True

    def statement(self) -> Render:
        """An output, a declaration, or an assignment."""
        first, second = self._tokens[0], self._tokens[min(1, len(self._tokens) - 1)]
        if first.kind == "variable" and second.kind in (":=", "="):
            self._next = 2
            value = self._whole()
            if second.kind == ":=":
                self._variables.append(first.value)
                return lambda scope: scope.variables.append((first.value, value(scope)))
            self._check_variable(first.value)
            return _assignment(first.value, value)
        shown = self._whole()
        return lambda scope: scope.write(go_text(shown(scope)))

    def declaration(self, *, in_range: bool) -> tuple[list[str], Evaluate]:
        """`PIPELINE`, `$x := PIPELINE`, and of a range `$i, $x := PIPELINE`."""
        names = []
        while self._tokens[self._next].kind == "variable" and self._tokens[self._next + 1].kind in (":=", ","):
            names.append(self._tokens[self._next].value)
            self._next += 2
            if self._tokens[self._next - 1].kind == ":=":
                break
        if len(names) > (2 if in_range else 1):
            raise self._wrong()
        value = self._whole()
        self._variables += names
        return names, value

    def _whole(self) -> Evaluate:
        value = self._pipeline()
        if not self._take(""):
            raise self._wrong()
        return value

    def _pipeline(self) -> Evaluate:
        value = self._command(None)
        while self._take("|"):
            value = self._command(value)
        return value

    def _command(self, piped: Evaluate | None) -> Evaluate:
        token = self._tokens[self._next]
        if token.kind == "name" and token.value not in _CONSTANTS:
            self._next += 1
            arguments = self._arguments()
            return self._call(token.value, [*arguments, *([piped] if piped is not None else [])])
        operand = self._operand()
        if operand is None or piped is not None or self._tokens[self._next].kind not in ("", "|", ")"):
            raise self._wrong()  # a value is no function, so it has no arguments
        return operand

    def _arguments(self) -> list[Evaluate]:
        arguments = []
        while (operand := self._operand()) is not None:
            arguments.append(operand)
        return arguments

    def _operand(self) -> Evaluate | None:
        token = self._tokens[self._next]
        if token.kind in ("", "|", ")"):
            return None
        self._next += 1
        if token.kind in ("text", "number"):
            return lambda _scope: token.value
        if token.kind == "name":
            return _constant(token.value) if token.value in _CONSTANTS else self._call(token.value, [])
        if token.kind == "fields":
            return _fields(lambda scope: scope.dot, token.value)
        if token.kind == ".":
            return lambda scope: scope.dot
        if token.kind == "variable":
            self._check_variable(token.value)
            return self._with_fields(lambda scope: scope.variables[scope.position(token.value)][1])
        if token.kind == "(":
            inner = self._pipeline()
            if not self._take(")"):
                raise self._wrong()
            return self._with_fields(inner)
        raise self._wrong()

    def _with_fields(self, value: Evaluate) -> Evaluate:
        token = self._tokens[self._next]
        if token.kind == "fields" and token.is_attached:
            self._next += 1
            return _fields(value, token.value)
        return value

    def _check_variable(self, name: str) -> None:
        if name not in self._variables:
            raise ValueError(f"{{{{ {self._text} }}}}: undefined variable {name}{meant(name, self._variables)}")

    def _call(self, name: str, arguments: Sequence[Evaluate]) -> Evaluate:
        if name in ("and", "or"):
            if not arguments:
                raise self._wrong()
            return _first(arguments, stop=name == "or")
        if name not in self._known:
            raise ValueError(
                f"{{{{ {self._text} }}}}: function {name!r} is not known: there are {', '.join(sorted(self._known))}"
                f"{meant(name, sorted(self._known))}"
            )
        return lambda scope: scope.functions[name](*[argument(scope) for argument in arguments])


_CONSTANTS: Final[Mapping[str, Json]] = {"true": True, "false": False, "nil": None}


def _constant(name: str) -> Evaluate:
    return lambda _scope: _CONSTANTS[name]


def _assignment(name: str, value: Evaluate) -> Render:
    def node(scope: _Scope) -> None:
        scope.variables[scope.position(name)] = (name, value(scope))

    return node


def _first(arguments: Sequence[Evaluate], *, stop: bool) -> Evaluate:
    """`or`, `and`: the first argument that decides, or the last one."""

    def evaluate(scope: _Scope) -> Any:
        found = None
        for argument in arguments:
            found = argument(scope)
            if is_true(found) == stop:
                break
        return found

    return evaluate


def _fields(value: Evaluate, names: Sequence[str]) -> Evaluate:
    def evaluate(scope: _Scope) -> Any:
        found = value(scope)
        for name in names:
            if found is None:
                return None
            if not isinstance(found, dict):
                raise TypeError(f"can't evaluate field {name} in {go_text(found)}")
            found = found.get(name)
        return found

    return evaluate


# -- values as Go has them --------------------------------------------------------------------------------------------


def is_true(value: Any) -> bool:
    """Go: not the zero value, not empty."""
    return bool(value)


def go_text(value: Any) -> str:
    """A value as Go prints it."""
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_text(each)}' for key, each in sorted(value.items()))}]"
    if isinstance(value, list | tuple):
        return f"[{' '.join(map(go_text, value))}]"
    return str(value)
