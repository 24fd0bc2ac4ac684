"""YAML as sigs.k8s.io/yaml writes it (go-yaml v2 and the emitter it took over from libyaml), and as go-yaml v3 writes nodes.

Keys are in natural order (`a9` before `a10`), lists in mappings are not indented, long lines are folded at the first
space beyond column 80, strings are quoted only if they would be read as something else. Nothing recurses.

    {"a": {"x": [1, {"b": []}]}, "id": "007"}

    a:
      x:
      - 1
      - b: []
    id: "007"

The emitter of v3 has another layout. gnostic's `compiler.Marshal` uses it for a tree of nodes that was read from JSON: keys
stay in the order of the mapping; the members of a collection are indented by two columns in a list and to the next multiple
of four in a mapping; lines are not folded. Strings are quoted where YAML 1.2 reads something else, or a date.

    {"b": {"x": [1, {"c": []}]}, "a": ["yes", "2001-01-01"]}

    b:
        x:
            - 1
            - c: []
    a:
        - yes
        - "2001-01-01"
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cmp_to_key
from typing import ClassVar, Final, NamedTuple

from noxu.expressions import expression
from noxu.go.text import float_json, plain
from noxu.go.yaml_scalars import is_text, is_timestamp, resolve
from noxu.values import Json, Object

_INDENT: Final = 2
_WIDTH: Final = 80
_MAX_SIMPLE_KEY: Final = 128  # bytes; longer keys are written as `? key`

BREAKS: Final = "\n\r\x85\u2028\u2029"
PRINTABLE: Final = "\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd"
_UNPRINTABLE: Final = f"[^{PRINTABLE}]"
_base60: Final = expression(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_break: Final = expression(f"[{BREAKS}]")
_edge: Final = expression(f"[ {BREAKS}]|.*[ {BREAKS}]\\Z", re.DOTALL)  # starts or ends with space or break
_break_space: Final = expression(f"[{BREAKS}] ")
_unquotable: Final = expression(f" [{BREAKS}]|{_UNPRINTABLE}")  # only double quotes will do
_indicator: Final = expression(r"---|\.\.\.|[#,\[\]{}&*!|>'\"%@`]|[?:-](?:[ \t]|\Z)")
_inner_indicator: Final = expression(f":(?:[ \t]|\\Z)|[ \t\0{BREAKS}]#")
_to_escape: Final = expression(f'{_UNPRINTABLE}|[{BREAKS}"\\\\]')
_ESCAPES: Final = {
    "\0": "\\0",
    "\a": "\\a",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\v": "\\v",
    "\f": "\\f",
    "\r": "\\r",
    "\x1b": "\\e",
    '"': '\\"',
    "\\": "\\\\",
    "\x85": "\\N",
    "\xa0": "\\_",
    "\u2028": "\\L",
    "\u2029": "\\P",
}


def write(value: Json) -> bytes:
    """One document, with a line end."""
    return YamlEmitter().document(value).encode("utf-8", "surrogatepass")


def compare_keys(left: str, right: str) -> int:
    """go-yaml's order: letters by code point and after everything else, runs of digits as numbers.

    Negative, zero or positive. `a9` and `a10` differ at index 1, where 9 < 10; `a-1` comes before `a1`, and that before
    `aa`.
    """
    for n, (a, b) in enumerate(zip(left, right, strict=False)):
        if a == b:
            continue
        if a.isalpha() or b.isalpha():
            if a.isalpha() and b.isalpha():
                return -1 if a < b else 1
            return -1 if b.isalpha() else 1
        start_value = int("0" in (a, b) and _after_digits(left, n))
        left_number, left_end = _number(left, n, start_value)
        right_number, right_end = _number(right, n, start_value)
        if left_number != right_number:
            return left_number - right_number
        if left_end != right_end:
            return left_end - right_end
        return -1 if a < b else 1
    return len(left) - len(right)


def _after_digits(text: str, position: int) -> bool:
    """Whether the run of digits directly before the position has a digit other than 0."""
    while position and text[position - 1].isdecimal():
        position -= 1
        if text[position] != "0":
            return True
    return False


def _number(text: str, position: int, number: int) -> tuple[int, int]:
    while position < len(text) and text[position].isdecimal():
        number = number * 10 + ord(text[position]) - ord("0")
        position += 1
    return (number + _HALF) % (2 * _HALF) - _HALF, position  # an int64 wraps around


_HALF: Final = 2**63
_natural: Final = cmp_to_key(compare_keys)


class _Frame(NamedTuple):
    """An open collection: its members still to be written, the mapping (None for a list), and the indentation around it."""

    rest: Iterator[Json]
    mapping: Object | None
    outer: int


class YamlEmitter:
    """The emitter: text, its column, and the indentation of the innermost collection (-1 outside of all).

    `whitespace` and `indention` are libyaml's names: the last character is a space; the line has only indentation and
    indicators so far. The latter allows `- - a` and `- b: c` on one line:

        text        column  indent  whitespace  indention
        ""          0       0       True        True
        "-"         1       0       False       True       the item is a mapping: indent becomes 2
        "- b"       3       2       False       False
        "- b:"      4       2       False       False

    go-yaml v3 has the same emitter, but another layout: what `_NodeEmitter` overrides.
    """

    indent_step: ClassVar[int] = _INDENT
    width: ClassVar[int] = _WIDTH

    def __init__(self) -> None:
        self.out: list[str] = []
        self.column = 0
        self.indent = -1
        self.whitespace = True
        self.indention = True

    def document(self, value: Json) -> str:
        stack: list[_Frame] = []
        self.node(value, stack, in_mapping=False)
        while stack:
            rest, mapping, outer = stack[-1]
            try:
                item = next(rest)
            except StopIteration:
                self.indent = outer
                stack.pop()
                continue
            self.start_line()
            if mapping is None:
                self.sign("-", indention=True)
                self.node(item, stack, in_mapping=False)
                continue
            if len(item.encode("utf-8", "surrogatepass")) <= _MAX_SIMPLE_KEY and not _break.search(item):
                self.string(item, simple_key=True, in_mapping=True)
                self.put(":")
            else:
                self.sign("?", indention=True)
                self.string(item, simple_key=False, in_mapping=True)
                self.start_line()
                self.sign(":", indention=True)
            self.node(mapping[item], stack, in_mapping=True)
        self.start_line()
        return "".join(self.out)

    def node(self, value: Json, stack: list[_Frame], *, in_mapping: bool) -> None:
        if isinstance(value, str):
            self.string(value, simple_key=False, in_mapping=in_mapping)
        elif isinstance(value, (dict, list)) and value:
            mapping = value if isinstance(value, dict) else None
            rest = iter(value) if mapping is None else self.keys(mapping)
            stack.append(_Frame(rest, mapping, self.indent))
            self.indent = self.collection_indent(is_list=mapping is None, in_mapping=in_mapping)
        else:
            self.sign(self.scalar(value))

    # -- layout: what differs between versions of go-yaml

    def keys(self, mapping: Object) -> Iterator[str]:
        """The keys in the order in which they are written."""
        return iter(sorted(mapping, key=_natural))

    def collection_indent(self, *, is_list: bool, in_mapping: bool) -> int:
        """The indentation of the members of a collection that starts here."""
        if self.indent < 0:
            return 0
        return self.indent if is_list and in_mapping and not self.indention else self.indent + _INDENT

    def string_indent(self, *, in_mapping: bool) -> int:
        """The indentation of the second and later lines of a string."""
        return self.indent + _INDENT if self.indent >= 0 else _INDENT

    def is_text(self, text: str) -> bool:
        """Whether a plain scalar is read as a string."""
        return isinstance(resolve(text), str) and not is_timestamp(text) and not _base60.fullmatch(text)

    def may_be_block(self, text: str) -> bool:
        """Whether a text of several lines can be a literal block."""
        return not _unquotable.search(text) and not text.endswith(" ")

    def scalar(self, value: Json) -> str:
        """The text of a number, boolean, null or empty collection."""
        return _text(value)

    # -- text

    def put(self, text: str) -> None:
        self.out.append(text)
        self.column += len(text)
        self.whitespace = self.indention = False

    def sign(self, text: str, *, indention: bool = False) -> None:
        """Text that needs a space before it; an indicator (`-`, `?`, `:`) keeps `indention`."""
        after_indent = self.indention and indention
        if not self.whitespace:
            self.put(" ")
        self.put(text)
        self.indention = after_indent

    def line_end(self) -> None:
        self.out.append("\n")
        self.column = 0

    def start_line(self) -> None:
        indent = max(self.indent, 0)
        if not self.indention or self.column > indent or (self.column == indent and not self.whitespace):
            self.line_end()
        if self.column < indent:
            self.out.append(" " * (indent - self.column))
            self.column = indent
        self.whitespace = self.indention = True

    def string(self, text: str, *, simple_key: bool, in_mapping: bool) -> None:
        outer = self.indent
        self.indent = self.string_indent(in_mapping=in_mapping)
        style = self._style(text, simple_key=simple_key)
        if style == "|":
            self.literal(text)
        elif style == '"':
            self.double_quoted(text, fold=not simple_key)
        elif style == "'":
            self.sign("'")
            self.folded(text.replace("'", "''"), fold=not simple_key, quoted=True)
            self.put("'")
        else:
            self.sign("")
            self.folded(text, fold=not simple_key, quoted=False)
        self.indent = outer

    def _style(self, text: str, *, simple_key: bool) -> str:
        """The quotation mark, `|` for a literal block, "" for plain text."""
        if "\n" in text:
            return "|" if not simple_key and self.may_be_block(text) else '"'
        if _unquotable.search(text) or not self.is_text(text):
            return '"'
        if (
            _indicator.match(text)
            or _inner_indicator.search(text)
            or _edge.match(text)
            or _break.search(text)
            or _break_space.search(text)
        ):
            return '"' if _break_space.search(text) else "'"
        return ""

    def folded(self, text: str, *, fold: bool, quoted: bool) -> None:
        """Plain or single-quoted text: a single space beyond the width becomes a line end.

        The only line breaks in such text are U+2028 and U+2029 (see `Writer._style`), which are copied.
        """
        if (not fold or self.column + len(text) <= self.width or " " not in text) and not _break.search(text):
            self.put(text)
            return
        last = len(text) - 1
        was_space = was_break = False
        for n, char in enumerate(text):
            if char == " ":
                alone = not was_space and text[n + 1 : n + 2] != " "
                if fold and alone and self.column > self.width and (not quoted or 0 < n < last):
                    self.start_line()
                else:
                    self.put(" ")
                was_space = True
            elif char in BREAKS:
                self.out.append(char)
                self.column = 0
                self.indention = was_break = True
            else:
                if was_break:
                    self.start_line()
                self.put(char)
                was_space = was_break = False
        self.whitespace = self.indention = False

    def double_quoted(self, text: str, *, fold: bool) -> None:
        self.sign('"')
        if text.startswith("\ufeff"):  # go-yaml then escapes every character
            self.put("".join(map(_escape, text)) + '"')
            return
        pieces = text.split(" ") if fold else [text]
        last = len(text) - 1
        position = 0  # of the space before the piece, in `text`
        was_space = False
        for n, piece in enumerate(pieces):
            if n:
                if not was_space and self.column > self.width and 0 < position < last:
                    self.start_line()
                    if not piece:  # another space follows
                        self.put("\\")
                else:
                    self.put(" ")
                position += 1
                was_space = True
            if piece:
                self.put(_to_escape.sub(lambda match: _escape(match[0]), piece))
                position += len(piece)
                was_space = False
        self.put('"')

    def literal(self, text: str) -> None:
        self.sign("|")
        hint = str(self.indent_step) if text[0] in f" {BREAKS}" else ""
        chomp = "-" if text[-1] not in BREAKS else "+" if len(text) == 1 or text[-2] in BREAKS else ""
        self.put(hint + chomp)
        self.line_end()
        self.whitespace = self.indention = True
        was_break = True
        for piece in re.split(f"([{BREAKS}])", text):
            if piece and piece in BREAKS:
                self.out.append(piece)
                self.column = 0
                self.indention = was_break = True
            elif piece:
                if was_break:
                    self.start_line()
                self.out.append(piece)
                self.column += len(piece)
                self.indention = was_break = False


def _text(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, (dict, list)):
        return "{}" if isinstance(value, dict) else "[]"
    if isinstance(value, float):  # upstream reads the JSON as YAML
        number = resolve(float_json(value))
        return plain(number)
    return plain(value)


def _escape(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


_IN_LIST: Final = 2
_STEP: Final = 4
_unblockable: Final = expression(rf" [{BREAKS}]|[^\t{PRINTABLE}]| \Z")


def write_nodes(value: Json) -> bytes:
    """One document, with a line end. Surrogates become question marks."""
    return _NodeEmitter().document(value).encode("utf-8", "replace")


class _NodeEmitter(YamlEmitter):
    indent_step: ClassVar[int] = _STEP
    width: ClassVar[int] = 2**31 - 1

    def keys(self, mapping: Object) -> Iterator[str]:
        return iter(mapping)

    def collection_indent(self, *, is_list: bool, in_mapping: bool) -> int:
        return 0 if self.indent < 0 else self.string_indent(in_mapping=in_mapping)

    def string_indent(self, *, in_mapping: bool) -> int:
        if self.indent >= 0 and not in_mapping:
            return self.indent + _IN_LIST
        return _STEP * ((self.indent + _STEP) // _STEP) if self.indent >= 0 else _STEP

    def is_text(self, text: str) -> bool:
        return is_text(text)

    def may_be_block(self, text: str) -> bool:
        return not _unblockable.search(text)

    def scalar(self, value: Json) -> str:
        """Numbers are as in JSON."""
        if isinstance(value, float):
            return float_json(value)
        if value is None:
            return "null"
        return super().scalar(value) if isinstance(value, (dict, list)) else plain(value)
