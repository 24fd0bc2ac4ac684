"""Every message that docs/troubleshooting.md quotes exists: each constant part of it is in the source, or its row says whose it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

ROOT: Final = Path(__file__).parents[2]
TEXT: Final = (ROOT / "docs/troubleshooting.md").read_text()
_CELL: Final = re.compile(r"(?<!\\)\|")
_CODE: Final = re.compile(r"`([^`]+)`")
# `"one " f"two"` over two lines, and quotes in a text, are read as Python reads them.
_ADJACENT: Final = re.compile(r"""(?<!\\)(["'])\s*\n\s*f?\1""")
SHORTEST: Final = 9
"""A part of a message that is shorter, such as `: ` between two values, identifies nothing."""


class Row(NamedTuple):
    """A row of a table: the messages in its first column, and whose they are (empty: the server's)."""

    messages: tuple[str, ...]
    of: str


def rows() -> Iterator[Row]:
    head: list[str] = []
    for line in TEXT.splitlines():
        cells = [cell.strip().replace(r"\|", "|") for cell in _CELL.split(line)[1:-1]]
        if not cells or set(cells) == {"---"}:
            head = head if cells else []
        elif not head:
            head = cells
        else:
            assert len(cells) == len(head), line
            row = dict(zip(head, cells, strict=True))
            yield Row(tuple(_CODE.findall(row["message"])), row.get("of", ""))


@cache
def source() -> str:
    """The text of the program. `{…}` in it is where a message varies."""
    files = sorted(path for folder in ("apiserver", "storage") for path in (ROOT / folder).rglob("*.py"))
    text = "\n".join(path.read_text() for path in files)
    return _ADJACENT.sub("", text).replace('\\"', '"').replace("{{", "{").replace("}}", "}")


def constant_parts(message: str) -> list[str]:
    """`cannot listen on …: another server is using it` has two. Marks at their ends may come from other texts."""
    parts = [part.strip(" :;,'") for part in re.split(r"…|\"", message)]
    return [part for part in parts if len(part) >= SHORTEST]


SERVERS: Final = [message for row in rows() if not row.of for message in row.messages]


@pytest.mark.parametrize("message", SERVERS)
def test_a_message_of_the_program_is_in_its_source(message: str) -> None:
    parts = constant_parts(message)
    assert parts
    assert [part for part in parts if part not in source()] == []


def test_other_messages_say_whose_they_are() -> None:
    others = TEXT.partition("\n## Messages of kubectl and other clients\n")[2]
    assert others.count("\n| `") == sum(bool(row.of) for row in rows()) >= 8


def test_every_row_quotes_a_message() -> None:
    assert [row for row in rows() if not row.messages] == []
    assert len(SERVERS) >= 25


def test_a_message_that_does_not_exist_is_found() -> None:
    assert [part for part in constant_parts("the server is … on strike today") if part not in source()]
