"""The text of an expression, and errors printed with their lines as cel-go prints them.

Positions are code points, lines end at `\\n`. Below an error stands its line, and below that a caret under the column;
a wide character takes a wide dot or a wide caret (common/error.go):

    ERROR: <input>:1:6: undeclared reference to 'sel' (in container '')
     | 1 + sel.x
     | ....^
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

MAX_SHOWN_ERRORS: Final = 100  # common.Errors reports no more
MAX_SNIPPET: Final = 16384  # bytes; longer lines are not printed
NO_LOCATION: Final = -1  # the offset of an error without a location (common.NoLocation)
BEFORE_TEXT: Final = -2  # the offset of a missing expression: cel-go reports it at column 0 of line 1


class Problem(NamedTuple):
    """An error in an expression; `offset` is in code points."""

    offset: int
    message: str


class CompileError(Exception):
    """An expression does not compile. The message is what cel-go's Issues print."""


def compile_error(text: str, problems: Sequence[Problem]) -> CompileError:
    return CompileError(format_problems(text, problems))


def format_problems(text: str, problems: Sequence[Problem]) -> str:
    """All problems, sorted by location, each with its line."""
    line_starts = [0]
    newline = text.find("\n")
    while newline >= 0:
        line_starts.append(newline + 1)
        newline = text.find("\n", newline + 1)
    located = [
        (*_location(line_starts, problem.offset if text else min(problem.offset, BEFORE_TEXT)), problem.message)
        for problem in problems[:MAX_SHOWN_ERRORS]
    ]
    located.sort(key=lambda row: row[:2])
    shown = [_format(text, line_starts, *row) for row in located]
    if len(problems) > MAX_SHOWN_ERRORS:
        shown.append(f"{len(problems) - MAX_SHOWN_ERRORS} more errors were truncated")
    return "\n".join(shown)


def _location(line_starts: list[int], offset: int) -> tuple[int, int]:
    """Line (from 1) and column (from 0)."""
    if offset < 0:
        return (-1, -1) if offset == NO_LOCATION else (1, -1)
    line = bisect_right(line_starts, offset)
    return line, offset - line_starts[line - 1]


def _format(text: str, line_starts: list[int], line: int, column: int, message: str) -> str:
    head = f"ERROR: <input>:{line}:{column + 1}: {message}"
    if line < 0 or not text:
        return head
    end = line_starts[line] - 1 if line < len(line_starts) else len(text)
    snippet = text[line_starts[line - 1] : end]
    if len(snippet) * 4 > MAX_SNIPPET and len(snippet.encode()) > MAX_SNIPPET:
        return head
    snippet = snippet.replace("\t", " ")
    dots = "".join("." if char < "\x80" else "．" for char in snippet[: max(column, 0)])
    caret = "＾" if snippet[max(column, 0) :][:1] >= "\x80" else "^"
    return f"{head}\n | {snippet}\n | {dots}{caret}"
