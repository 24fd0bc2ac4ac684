"""The summary of an object: its metadata, and the cells of its row in a table, as JSON.

It holds for as long as the object does, except for ages, which are inserted when it is sent. The cells ["a",<age>] of a
custom resource are the pieces

    ["a","  and  "]

between which the text of an `Age` belongs; `Ages` makes it. From them and the metadata, `row` makes what `table.row` does.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.tables.duration import Age
from noxu.tables.table import GROUP, VERSIONS, Columns, ends_initial_events, partial
from noxu.values import Object


class Summary(NamedTuple):
    """What tables and lists of metadata show of an object."""

    pieces: tuple[bytes, ...]
    """The cells, a list; after each piece but the last an age is inserted."""
    ages: tuple[Age, ...]
    conditions: bytes
    """The conditions of the row with their name and a comma before it, or empty."""
    metadata: bytes
    ends_initial_events: bool


_HEADS: Final = {
    version: b'{"kind":"PartialObjectMetadata","apiVersion":"%b/%b","metadata":' % (GROUP.encode(), version.encode())
    for version in VERSIONS
}


def summarize(value: Object, columns: Columns) -> Summary:
    """The summary of an object in these columns, which do not depend on other objects."""
    pieces, ages = _cells(columns, value)
    conditions = columns.conditions(value) if columns.conditions is not None else []
    return Summary(
        pieces,
        ages,
        b',"conditions":' + codec.encode(conditions, sort_keys=False) if conditions else b"",
        codec.encode(partial(value, VERSIONS[0])["metadata"], sort_keys=False),
        ends_initial_events(value),
    )


def _cells(columns: Columns, value: Object) -> tuple[tuple[bytes, ...], tuple[Age, ...]]:
    pieces, ages, piece = [], [], b"["
    for n, cell in enumerate(columns.cells(value)):
        if n:
            piece += b","
        if type(cell) is Age:
            pieces.append(piece + b'"')
            ages.append(cell)
            piece = b'"'
        else:
            piece += codec.encode(cell, sort_keys=False)
    return (*pieces, piece + b"]"), tuple(ages)


class Ages:
    """The texts of ages at one time, as the inside of JSON strings. Objects that were created together share them."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._texts: dict[Age, bytes] = {}

    def text(self, age: Age) -> bytes:
        found = self._texts.get(age)
        if found is None:
            found = self._texts[age] = codec.encode(age.at(self._now), sort_keys=False)[1:-1]
        return found


def metadata(summary: Summary, version: str) -> bytes:
    """A PartialObjectMetadata."""
    return b"%b%b}" % (_HEADS[version], summary.metadata)


def row(summary: Summary, version: str, ages: Ages, include: str, body: bytes = b"") -> bytes:
    """A TableRow. `include` is one of `table.INCLUDE`; for Object, `body` is the object's JSON."""
    first, *others = summary.pieces
    parts = [b'{"cells":', first]
    for age, piece in zip(summary.ages, others, strict=True):
        parts += ages.text(age), piece
    if include == "Object":
        parts += summary.conditions, b',"object":', body, b"}"
    elif include == "Metadata" or summary.ends_initial_events:
        parts += summary.conditions, b',"object":', _HEADS[version], summary.metadata, b"}}"
    else:
        parts += summary.conditions, b',"object":null}'
    return b"".join(parts)
