"""The text of an expression, and errors shown in it as cel-go shows them.

Positions are code points, lines end at `\\n`. An error prints its line below it with a caret under the column; wide
characters get a wide dot and a wide caret (common/error.go).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

MAX_SHOWN_ERRORS: Final = 100  # common.Errors reports no more
MAX_SNIPPET: Final = 16384  # bytes of a line that is still shown
NOWHERE: Final = -1  # the offset of an error that belongs to no place (common.NoLocation)
BEFORE: Final = -2  # the offset of what stands for an expression that is missing: it is told to be before the text


class Problem(NamedTuple):
    """One thing wrong with an expression; `offset` is in code points."""

    offset: int
    message: str


class CompileError(Exception):
    """An expression that does not compile. The text is what cel-go's Issues print."""


def failure(text: str, problems: Sequence[Problem]) -> CompileError:
    return CompileError(show(text, problems))


def show(text: str, problems: Sequence[Problem]) -> str:
    """All problems, sorted by place, each with its line."""
    starts = [0]
    newline = text.find("\n")
    while newline >= 0:
        starts.append(newline + 1)
        newline = text.find("\n", newline + 1)
    placed = [
        (*_place(starts, one.offset if text else min(one.offset, BEFORE)), one.message)
        for one in problems[:MAX_SHOWN_ERRORS]
    ]
    placed.sort(key=lambda one: one[:2])
    shown = [_show(text, starts, *one) for one in placed]
    if len(problems) > MAX_SHOWN_ERRORS:
        shown.append(f"{len(problems) - MAX_SHOWN_ERRORS} more errors were truncated")
    return "\n".join(shown)


def _place(starts: list[int], offset: int) -> tuple[int, int]:
    """Line (from 1) and column (from 0)."""
    if offset < 0:
        return (-1, -1) if offset == NOWHERE else (1, -1)
    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1]


def _show(text: str, starts: list[int], line: int, column: int, message: str) -> str:
    head = f"ERROR: <input>:{line}:{column + 1}: {message}"
    if line < 0 or not text:
        return head
    end = starts[line] - 1 if line < len(starts) else len(text)
    snippet = text[starts[line - 1] : end]
    if len(snippet) * 4 > MAX_SNIPPET and len(snippet.encode()) > MAX_SNIPPET:
        return head
    snippet = snippet.replace("\t", " ")
    dots = "".join("." if char < "\x80" else "．" for char in snippet[: max(column, 0)])
    caret = "＾" if snippet[max(column, 0) :][:1] >= "\x80" else "^"
    return f"{head}\n | {snippet}\n | {dots}{caret}"
