r"""A fast path for YAML in block style, as most manifests are written. It reads what it certainly understands, or gives up.

libyaml makes objects of each key, of each value and of the end of each collection. Here a line is an item, a key, or both:

    spec:              column 0, key "spec" without a value: what follows is its value, if it is indented
      versions:        column 2, and the key is open: the mapping {"versions": None} is the value of "spec"
      - name: v1       an item at the column of the key that is open: the list [{"name": "v1"}], with a mapping at column 4
        served: true   column 4: the next key of that mapping
      scope: |-        column 2: the mapping at 4 and the list at 2 are closed; a block scalar, which ends
        a              before a line that is indented less than its first one
        b

Definitions repeat their lines (nine of ten occur more than once), so the results of lines are cached. A scalar of
several lines is found by one search in the text.

Nothing here refuses a document. With an alias, a tag, a merge, a key that is no text, equal keys, a tab, a flow collection
of more than a few words, or anything else that is not described here, the document is left to `go.yaml`, which reads it
from the beginning. A property holds both to the same values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias

from noxu.go.yaml_scalars import MEANINGFUL, as_json, resolve
from noxu.values import Json


class _Uncertain(Exception):
    """There is something in the document that is not understood here."""


def read(body: bytes) -> Json:
    """The document, a mapping or a list; None if `go.yaml` might read it differently, or refuse it."""
    try:
        return _read(_text(body))
    except _Uncertain:
        return None


def _text(body: bytes) -> str:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise _Uncertain from None
    if _odd_character(body.translate(None, _ASCII).decode()):
        raise _Uncertain
    return text


_ASCII: Final = bytes(range(0x20, 0x7F)) + b"\n"
# All but what YAML calls printable, its other line breaks, the byte order mark, and a stand-in of `go.yaml`.
_odd_character: Final = re.compile(
    "[^\xa0-\u2027\u202a-\ud7ff\ue000-\uf8fe\uf900-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
).search


def _read(text: str) -> Json:
    """The document. There is an example in the module's docstring."""
    root: dict[str, Json] = {}  # the document is the value of its key ""
    top: Json = root  # the innermost open collection, and its column
    column = -1
    outer: list[tuple[int, Json]] = []  # the collections around it, and their columns
    key = ""  # the last key of `top`, if that is a mapping
    is_open = True  # the line before ends with the key
    plain = 0  # where the value begins, if it is a plain scalar that may go on in the next line
    at, end = 4 if text.startswith("---\n") else 0, len(text)
    while at < end:
        stop = text.find("\n", at)
        if stop < 0:
            stop = end
        line = text[at:stop]
        indent, inner, name, value, opens, start, reader = _line(line) if stop - at <= _SHORT else _line_once(line)
        if indent < 0:
            at = stop + 1
            continue

        # The collection that the line belongs to.
        if indent > column:
            if not is_open:
                if not plain:
                    raise _Uncertain
                top[-1 if type(top) is list else key], at = _longer_plain(text, plain, column)
                plain = 0
                continue
            if indent > _MAX_COLUMN or (column < 0 and inner == indent and name is None):
                raise _Uncertain
            if inner != indent or name is not None:
                below: Json = {} if inner == indent else []
                top[key] = below
                outer.append((column, top))
                column, top = indent, below
        else:
            if indent < column:
                is_open = False
                while indent < column:
                    column, top = outer.pop()
            if inner == indent:
                if type(top) is list:  # the value of a key at the same column
                    column, top = outer.pop()
                if name is None:
                    raise _Uncertain
            elif type(top) is dict:
                if not is_open:
                    raise _Uncertain
                top[key] = below = []
                outer.append((column, top))
                top = below
            if indent != column:
                raise _Uncertain

        # The value, and its place in the collection.
        is_open = opens
        if reader is None:
            plain = at + start if start else 0
            at = stop + 1
        else:
            plain = 0
            value, at = reader(text, at + start, column if name is None else inner)
        if name is None:
            if inner != indent:
                top.append(value)
            else:
                top[key] = value
        elif inner != indent:
            below = {name: value}
            top.append(below)
            outer.append((column, top))
            column, top, key = inner, below, name
        elif name in top:
            raise _Uncertain
        else:
            top[name] = value
            key = name
    if not root:
        raise _Uncertain
    return root[""]


_MAX_COLUMN: Final = 200


# -- lines ------------------------------------------------------------------------------------------------------------

_Reader: TypeAlias = Callable[[str, int, int], tuple[Json, int]]
"""(the text, where a value begins, the column of the collection that it is in) → the value, and where the next line begins."""

_Line: TypeAlias = tuple[int, int, str | None, Json, bool, int, _Reader | None]
"""What is in a line:

- its column, -1 for a line that is blank or a comment,
- the column of what follows the dash of an item, the same without a dash,
- the key, None without one,
- the value, if the line certainly has all of it,
- whether it ends with the key, without a value,
- where the value begins if it may go on in the next line: a plain scalar, or what
- the reader reads.

    "  - name: v1"   2, 4, "name", "v1", False, 10, None
    "    a: 'b'"     4, 4, "a", "b", False, 0, None
    "    a:"         4, 4, "a", None, True, 0, None
    "    a: |-"      4, 4, "a", None, False, 7, _block
"""

_BLANK: Final = (-1, -1, None, None, False, 0, None)
_SHORT: Final = 100  # characters of a line that is kept


def _line_once(line: str) -> _Line:
    match = _parts(line)
    assert match is not None
    spaces, dash, quoted, rest = match.groups()
    column = len(spaces)
    inner = column if dash is None else column + len(dash)
    key = None if quoted is None else _key(quoted)
    first = rest[:1]
    if first in _NOTHING:
        if key is not None:
            return column, inner, key, None, True, 0, None
        if dash is not None:
            raise _Uncertain
        return _BLANK
    start = len(line) - len(rest)
    reader = _READERS.get(first)
    if reader is None:
        value, ended = _plain(rest)
        return column, inner, key, value, False, 0 if ended else start, None
    if reader is _single_quoted or reader is _double_quoted:
        try:
            return column, inner, key, reader(line, start, 0)[0], False, 0, None
        except _NotEnded:
            pass
    return column, inner, key, None, False, start, reader


_NOTHING: Final = frozenset({"", "#"})
_line: Final = lru_cache(maxsize=4096)(_line_once)

# The indentation, a dash, a key, and the rest.
_parts: Final = re.compile(
    r"""([ ]*+)
        (-[ ]++)?
        (?:([\w./$][\w./$()*%+@=-]{0,255}|"[^"\\]{0,255}"|'[^']{0,255}'):(?:[ ]++|\Z))?
        (.*+)""",
    re.VERBOSE,
).fullmatch


def _key(quoted: str) -> str:
    """A key, which is quoted or plain."""
    first = quoted[0]
    if first in "\"'":
        return quoted[1:-1]
    if first in MEANINGFUL and type(resolve(quoted)) is not str:
        raise _Uncertain
    return quoted


def _plain(text: str) -> tuple[Json, bool]:
    """(the value, whether it ends in this line) of a plain scalar, perhaps with a comment."""
    text, comment, _ = text.partition(" #")
    text = text.rstrip(" ")
    if ": " in text or text[-1] == ":" or text[:2] == "- " or text == "-":
        raise _Uncertain
    if text[0] not in MEANINGFUL:
        return text, comment != ""
    try:
        return as_json(resolve(text)), comment != ""
    except ValueError:
        raise _Uncertain from None


# -- scalars of several lines, and flow collections --------------------------------------------------------------------


def _longer_plain(text: str, start: int, column: int) -> tuple[str, int]:
    """A plain scalar that goes on in lines that are indented more than `column`."""
    match = _plain_lines(column + 1)(text, start)
    if match is None:
        raise _Uncertain
    lines = match[0]
    if ": " in lines or ":\n" in lines or lines[-1] == ":" or " #" in lines:
        raise _Uncertain
    return _line_breaks(_fold, lines.rstrip(" ")), match.end() + 1


@lru_cache(maxsize=_MAX_COLUMN)
def _plain_lines(indent: int) -> Callable[[str, int], re.Match[str] | None]:
    return re.compile(rf"[^\n]*+(?:(?:[ ]*+\n)++[ ]{{{indent},}}+(?![#\n])[^\n]++)+").match


_line_breaks: Final = re.compile(r"(?<![ ])[ ]*+\n[ \n]*+").sub  # each run of spaces is looked at once


def _fold(match: re.Match[str]) -> str:
    """Line breaks with the spaces around them: one is a space, and of several the first does not count."""
    return "\n" * (match[0].count("\n") - 1) or " "


class _NotEnded(_Uncertain):
    """A quoted scalar does not end here."""


def _single_quoted(text: str, start: int, _: int) -> tuple[str, int]:
    match = _single(text, start)
    if match is None:
        raise _NotEnded
    return _folded(match[1]).replace("''", "'"), match.end()


def _double_quoted(text: str, start: int, _: int) -> tuple[str, int]:
    match = _double(text, start)
    if match is None:
        raise _NotEnded
    folded = _folded(match[1])
    return folded if "\\" not in folded else _escapes_and_breaks(_unescape, match[1]), match.end()


def _folded(quoted: str) -> str:
    if "\n" not in quoted:
        return quoted
    if "\n---" in quoted or "\n..." in quoted:
        raise _Uncertain
    return _line_breaks(_fold, quoted)


def _unescape(match: re.Match[str]) -> str:
    text = match[0]
    if text[0] != "\\":
        return _fold(match)
    if text[1] == "\n":  # this line break does not count, those after it do
        return "\n" * (text.count("\n") - 1)
    if text[1] not in _ESCAPES:
        raise _Uncertain
    return _ESCAPES[text[1]]


_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", " ": " "}
_escapes_and_breaks: Final = re.compile(r"\\(?:\n[ \n]*+|[^\n])|(?:(?<![ ])|(?<=\\[ ]))[ ]*+\n[ \n]*+").sub
_AFTER: Final = r"(?:[ ]*+(?:\n|\Z)|[ ]++\#[^\n]*+\n?)"
_single: Final = re.compile(rf"'((?:[^']++|'')*+)'{_AFTER}").match
_double: Final = re.compile(rf'"((?:[^"\\]++|\\[\s\S])*+)"{_AFTER}').match


def _block(text: str, start: int, column: int) -> tuple[str, int]:
    """A block scalar, literal or folded."""
    header = _header(text, start)
    if header is None:
        raise _Uncertain
    style, indicator, chomping, spaces = header.groups()
    at = header.end(3)
    indent = column + int(indicator) if indicator else len(spaces or "")
    if indent <= column:
        raise _Uncertain
    first = text.index("\n", at)
    outside = _line_outside(indent)(text, first)
    end = outside.start() + 1 if outside else len(text)
    lines = text[first:end]
    if " \n" in lines or lines[-1] == " ":  # there may be lines of spaces; those at `indent` and after it count
        content = "\n".join([line[indent:] for line in lines[1:].split("\n")])
    else:
        content = lines.replace("\n" + " " * indent, "\n")[1:]
    ended = content.rstrip("\n")
    if not ended:
        raise _Uncertain
    breaks = content[len(ended) :]
    if style == ">":
        ended = _folded_block(ended)
    return ended + ("" if chomping == "-" else breaks if chomping == "+" else breaks[:1]), end


def _folded_block(text: str) -> str:
    """The text of a folded block scalar. Lines that are indented more would not be folded: they are not understood here."""
    if "\n " in text or text[0] == " ":
        raise _Uncertain
    inner = text.lstrip("\n")
    return text[: len(text) - len(inner)] + _bare_line_breaks(_fold, inner)


_header: Final = re.compile(r"([|>])([1-9]?)([-+]?)[ ]*+\n(?:\n*+([ ]++)(?!\n|\Z))?").match
_bare_line_breaks: Final = re.compile(r"\n+").sub


@lru_cache(maxsize=_MAX_COLUMN)
def _line_outside(indent: int) -> Callable[[str, int], re.Match[str] | None]:
    """Finds a line that is indented less, and is not blank."""
    return re.compile(rf"\n[ ]{{0,{indent - 1}}}[^ \n]").search


def _flow_list(text: str, start: int, _: int) -> tuple[Json, int]:
    """A list of words and quoted text in one line."""
    match = _words(text, start)
    if match is None:
        raise _Uncertain
    return [item[1:-1] if item[0] in "\"'" else _plain(item)[0] for item in _word(match[1] or "")], match.end()


_WORD: Final = r"""[\w./$][\w./$()*%+@=-]*+|"[^"\\\n]*+"|'[^'\n]*+'"""
_words: Final = re.compile(rf"\[[ ]*+((?:{_WORD})(?:[ ]*+,[ ]*+(?:{_WORD}))*+)?[ ]*+\]{_AFTER}").match
_word: Final = re.compile(_WORD).findall


def _empty_mapping(text: str, start: int, _: int) -> tuple[Json, int]:
    match = _empty(text, start)
    if match is None:
        raise _Uncertain
    return {}, match.end()


_empty: Final = re.compile(rf"\{{[ ]*+\}}{_AFTER}").match


def _not_understood(_text: str, _start: int, _column: int) -> tuple[Json, int]:
    raise _Uncertain


_READERS: Final[dict[str, _Reader]] = {
    **dict.fromkeys("?:,]}#&*!%@`", _not_understood),
    "'": _single_quoted,
    '"': _double_quoted,
    "|": _block,
    ">": _block,
    "[": _flow_list,
    "{": _empty_mapping,
}
"""By the first character of a value; any other one begins a plain scalar."""
