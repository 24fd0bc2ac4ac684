"""Comma-separated values as Go's encoding/csv reads them, with records of any number of fields.

Empty lines are skipped, `\\r\\n` ends a line like `\\n`, spaces belong to their field. A quote begins a quoted field only at
the beginning of the field; there two quotes are one, and line ends are part of the field.
"""

from __future__ import annotations

from typing import Final

BARE_QUOTE: Final = 'bare " in non-quoted field'
QUOTE: Final = 'extraneous or missing " in quoted-field'


def read(text: str) -> list[list[str]]:
    """The records of a text. Raises ValueError with Go's message."""
    lines = text.replace("\r\n", "\n").split("\n")
    records, at = [], 0
    while at < len(lines):
        if lines[at]:
            record, at = _record(lines, at)
            records.append(record)
        at += 1
    return records


def _record(lines: list[str], start: int) -> tuple[list[str], int]:
    """(The record that begins in a line, the index of its last line.)"""
    fields: list[str] = []
    at, column = start, 0
    while True:
        line = lines[at]
        if not line.startswith('"', column):
            end = line.find(",", column)
            field = line[column:] if end < 0 else line[column:end]
            if '"' in field:
                raise _error(start, at, column + field.index('"'), BARE_QUOTE)
        else:
            field, at, end = _quoted(lines, start, at, column + 1)
        fields.append(field)
        if end < 0:
            return fields, at
        column = end + 1


def _quoted(lines: list[str], start: int, at: int, column: int) -> tuple[str, int, int]:
    """(A quoted field, the index of the line in which it ends, the column of the comma after it, or -1.)"""
    parts: list[str] = []
    while True:
        line = lines[at]
        quote = line.find('"', column)
        if quote < 0:
            if at + 1 == len(lines):
                raise _error(start, at, len(line), QUOTE)
            parts.append(line[column:] + "\n")
            at, column = at + 1, 0
            continue
        parts.append(line[column:quote])
        after = line[quote + 1 : quote + 2]
        if not after:
            return "".join(parts), at, -1
        if after == ",":
            return "".join(parts), at, quote + 1
        if after != '"':
            raise _error(start, at, quote, QUOTE)
        parts.append('"')
        column = quote + 2


def _error(start: int, at: int, column: int, why: str) -> ValueError:
    """Go's ParseError, which counts from 1."""
    where = f"parse error on line {at + 1}, column {column + 1}: {why}"
    return ValueError(where if start == at else f"record on line {start + 1}; {where}")
