"""Objects in other representations: Table, PartialObjectMetadata and PartialObjectMetadataList of meta.k8s.io.

They are requested by `as=…` in an Accept header (upstream's pkg/endpoints/handlers/response.go, and for custom resources
apiextensions' tableconvertor). A table has column definitions and a row per object; a row has a cell per column, and
under `object` null, the object's metadata, or the object itself (`includeObject`).

The cell of a custom resource is the first value that the column's JSONPath finds. A column of type string prints any
value; the other types print values of their own kind, and null for others. If a path does not parse, its column and all
that follow are left out (as upstream does, which only logs it).

There is no clock: a cell may be an `Age`, which is completed by the parameter `now`. Lists are converted row by row (`row`),
so that the server can pause in long ones.

A `Summary` of an object is its metadata, and the cells of its row in a table, as JSON.

It is valid as long as the object is, except for ages, which are inserted when it is sent. The cells ["a",<age>] of a
custom resource are the pieces

    ["a","  and  "]

between which the text of an `Age` belongs; `Ages` makes it. From them and the metadata, `row_of_summary` makes what
`row` does.

Ages are for people (upstream's k8s.io/apimachinery/pkg/util/duration), with two or three significant figures: `42s`, `5m`,
`5m30s`, `3h5m`, `26h`, `3d4h`, `200d`, `6y325d`, `11y`; `<invalid>` for a time two seconds or more in the future, `<unknown>`
without a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.api import field as fields
from noxu.api.errors import ApiError, bad_request, plain_error
from noxu.api.meta import MANAGED_FIELDS_ENTRY, OBJECT_META, OWNER_REFERENCE
from noxu.go.text import compact_json, float_json, plain
from noxu.go.time import unix_nanos
from noxu.tables import jsonpath
from noxu.tables.jsonpath import MAX_OF_ROW, CellBudget, Spent
from noxu.values import MIN_INT64, Json, Object

UNKNOWN: Final = "<unknown>"
INVALID: Final = "<invalid>"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_SECOND: Final = 10**9
_MAX_DURATION: Final = 2**63 - 1  # the limit of Go's time.Since, 292 years
_ZERO_TIME: Final = unix_nanos("0001-01-01T00:00:00Z")


class Age(NamedTuple):
    """A text with the age of a time, which only the time of the request completes: `2 (5m ago)`."""

    time: str
    before: str = ""
    after: str = ""

    def at(self, now: datetime) -> str:
        """The text at a time."""
        return f"{self.before}{since(self.time, now)}{self.after}"


def since(text: str, now: datetime) -> str:
    """The age of an RFC 3339 time in a date cell. `""` and `null` are unknown, other text that Go cannot parse is invalid."""
    if text in ("", "null", "0001-01-01T00:00:00Z"):
        return UNKNOWN
    if len(text) == 20 and text[4] == text[7] == "-" and text[10] == "T" and text[13] == ":" and text[19] == "Z":
        try:
            return human((now - datetime.fromisoformat(text)) // _MICROSECOND * 1000)
        except ValueError:
            pass
    try:
        moment = unix_nanos(text)
    except ValueError:
        return INVALID
    if moment == _ZERO_TIME:
        return UNKNOWN
    return human((now - _EPOCH) // _MICROSECOND * 1000 - moment)


def human(nanoseconds: int) -> str:
    """A duration as text. Up to two seconds below zero are tolerated, because clocks may differ."""
    nanoseconds = min(nanoseconds, _MAX_DURATION)
    if nanoseconds <= -2 * _SECOND:
        return INVALID
    seconds = max(nanoseconds, 0) // _SECOND
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


Cells = Callable[[Object], list[Json | Age]]

GROUP: Final = "meta.k8s.io"
VERSIONS: Final = ("v1", "v1beta1")
INCLUDE: Final = ("None", "Metadata", "Object")
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
UNSTRUCTURED: Final = "*unstructured.Unstructured"


class Conversion(NamedTuple):
    """The requested representation: `kind` is Table, PartialObjectMetadata or PartialObjectMetadataList of meta.k8s.io."""

    kind: str
    version: str

    @property
    def api_version(self) -> str:
        return f"{GROUP}/{self.version}"


def _own_weight(size: int) -> int:
    return size


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a kind's tables."""

    definitions: list[Object]
    cells: Cells
    no_rows: list[Json] | None = field(default_factory=list)
    """The `rows` of an empty list; some of upstream's printers leave them null."""
    go_type: str = UNSTRUCTURED
    """The Go type of the objects in upstream's errors."""
    conditions: Callable[[Object], list[Json]] | None = None
    """The conditions of an object's row; rows without conditions do not mention them."""
    cells_of_list: Callable[[Iterable[Object]], Cells] | None = None
    """The cells of rows in a list, if they depend on all objects of the list."""
    weigh: Callable[[int], int] = _own_weight
    """How many bytes have to be processed for the row of an object of that many."""

    def cells_at(self, value: Object, now: datetime) -> list[Json]:
        """The cells of an object's row at a time."""
        return [cell.at(now) if type(cell) is Age else cell for cell in self.cells(value)]

    def of_list(self, items: Iterable[Object]) -> Columns:
        """The columns for a list of these items."""
        return self if self.cells_of_list is None else replace(self, cells=self.cells_of_list(items))


# -- columns ----------------------------------------------------------------------------------------------------------

NAME: Final = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a "
    "client to request the generation of an appropriate name automatically. Name is primarily intended for creation "
    "idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
CREATED: Final = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to "
    "be set in happens-before order across separate operations. Clients may not set this value. It is represented in "
    "RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)


def definition(name: str, kind: str, description: str, *, form: str = "", priority: int = 0) -> Object:
    """A TableColumnDefinition; kubectl shows priorities above 0 with `-o wide` only."""
    return {"name": name, "type": kind, "format": form, "description": description, "priority": priority}


NAME_COLUMN: Final = definition("Name", "string", NAME, form="name")
_AGE_COLUMN: Final[Object] = {
    "name": "Age",
    "type": "date",
    "description": CREATED,
    "jsonPath": ".metadata.creationTimestamp",
}


def custom_columns(printer_columns: Sequence[Object] | None) -> Columns:
    """The columns of a custom resource: the name, then `additionalPrinterColumns`, or the age if there are none."""
    return _columns(printer_columns or (_AGE_COLUMN,))


def scale_columns() -> Columns:
    """The columns of a custom resource's /scale."""
    return _columns(
        (
            {
                "name": "Desired",
                "type": "integer",
                "description": "How many replicas there should be.",
                "jsonPath": ".spec.replicas",
            },
            {
                "name": "Available",
                "type": "integer",
                "description": "How many replicas there are.",
                "jsonPath": ".status.replicas",
            },
            _AGE_COLUMN,
        ),
        go_type="*v1.Scale",
    )


def _columns(printer_columns: Sequence[Object], go_type: str = UNSTRUCTURED) -> Columns:
    definitions = [NAME_COLUMN]
    readers: list[tuple[jsonpath.Path, Reader]] = []
    for column in printer_columns:
        path = column["jsonPath"]
        try:
            readers.append((jsonpath.parse(path), READERS[column["type"]]))
        except jsonpath.PathError:
            break
        description = column.get("description") or f"Custom resource definition column (in JSONPath format): {path}"
        definitions.append(
            definition(
                column["name"],
                column["type"],
                description,
                form=column.get("format", ""),
                priority=column.get("priority", 0),
            )
        )

    def cells(value: Object) -> list[Json | Age]:
        out: list[Json | Age] = [value["metadata"].get("name", "")]
        budget = jsonpath.CURRENT.get() or CellBudget()
        budget.begin_row()
        for path, read in readers:
            out.append(None if budget.is_spent else _cell(path, read, value, budget))
        return out

    degrees = [path.degree for path, _ in readers if path.degree]

    def weigh(size: int) -> int:
        looked_at: int = sum(min(size**degree, MAX_OF_ROW) for degree in degrees)
        return size + min(looked_at, MAX_OF_ROW) // _VALUES_PER_BYTE

    return Columns(definitions, cells, go_type=go_type, weigh=weigh if degrees else _own_weight)


_VALUES_PER_BYTE: Final = 4  # that are looked at in the time in which a byte of JSON is decoded


def _cell(path: jsonpath.Path, read: Reader, value: Object, budget: CellBudget) -> Json | Age:
    """A cell, null if the path finds nothing or the budget does not suffice."""
    results = path.find(value, budget)
    if not results:
        return None
    cell = read(results[0])
    if isinstance(cell, str):
        try:
            budget.take_cell(cell)
        except Spent:
            return None
    return cell


# -- cells ------------------------------------------------------------------------------------------------------------

Reader = Callable[[Json], Json | Age]


def _string(value: Json) -> Json:
    if type(value) is str:
        return value
    if value is None:
        return "<no value>"
    return compact_json(value) if isinstance(value, (dict, list)) else plain(value)


def _integer(value: Json) -> Json:
    """Floats are truncated; one that does not fit an int64 becomes the smallest integer, as on amd64."""
    if type(value) is float:
        return int(value) if -(2.0**63) <= value < 2.0**63 else MIN_INT64
    return value if type(value) is int else None


def _number(value: Json) -> Json:
    """A float64; a whole one that fits 64 bits becomes the integer that Go writes."""
    if type(value) is int:
        value = float(value)
    if type(value) is not float:
        return None
    text = float_json(value)
    return int(text) if value.is_integer() and MIN_INT64 <= value < 2.0**64 and text != "-0" else value


def _boolean(value: Json) -> Json:
    return value if type(value) is bool else None


def _date(value: Json) -> Age | None:
    return Age(value) if type(value) is str else None


READERS: Final[dict[str, Reader]] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}
"""By a column's type: the function from the value at its path to the cell."""


# -- metadata ---------------------------------------------------------------------------------------------------------

_OBJECT_META: Final = tuple(OBJECT_META.fields)
_ORDERED: Final = {
    "ownerReferences": tuple(OWNER_REFERENCE.fields),
    "managedFields": tuple(MANAGED_FIELDS_ENTRY.fields),
}


def partial(value: Object, version: str) -> Object:
    """An object as PartialObjectMetadata: its metadata in the order of declaration, without empty fields."""
    stored = value["metadata"]
    metadata: Object = {}
    for name in _OBJECT_META:
        field = stored.get(name)
        if not field and (field is None or name != "deletionGracePeriodSeconds"):
            continue
        order = _ORDERED.get(name)
        metadata[name] = (
            field if order is None else [{key: item[key] for key in order if key in item} for item in field]
        )
    return {"kind": "PartialObjectMetadata", "apiVersion": f"{GROUP}/{version}", "metadata": metadata}


def partial_list(items: Iterable[Object], metadata: Object, version: str) -> Object:
    """A list's items as PartialObjectMetadataList. `metadata` is the list's. Without items, `items` is null."""
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": f"{GROUP}/{version}",
        "metadata": list_meta(metadata),
        "items": [partial(item, version) for item in items] or None,
    }


def list_meta(metadata: Object) -> Object:
    """The metadata of a converted list."""
    return {key: metadata[key] for key in ("resourceVersion", "continue", "remainingItemCount") if metadata.get(key)}


# -- tables -----------------------------------------------------------------------------------------------------------


def include_object(text: str) -> str:
    """The query parameter `includeObject`, one of INCLUDE. Raises ApiError."""
    if text and text not in INCLUDE:
        error = fields.invalid("includeObject", text, "must be 'Metadata', 'Object', 'None', or empty")
        raise bad_request(f"Unable to convert to Table as requested: {error}")
    return text or "Metadata"


def row(columns: Columns, value: Object, version: str, include: str, now: datetime) -> Object:
    """One TableRow. The bookmark that ends a watch's initial events keeps its metadata, by which clients recognize it."""
    shown: Json = None
    if include == "Object":
        shown = value
    elif include == "Metadata" or ends_initial_events(value):
        shown = partial(value, version)
    conditions = [] if columns.conditions is None else columns.conditions(value)
    return (
        {"cells": columns.cells_at(value, now)} | ({"conditions": conditions} if conditions else {}) | {"object": shown}
    )


def ends_initial_events(value: Object) -> bool:
    """Whether an object has the annotation of the bookmark that ends the initial events of a watch."""
    return bool((value["metadata"].get("annotations") or {}).get(INITIAL_EVENTS_END) == "true")


def table(columns: Columns, rows: list[Json], metadata: Object, version: str, *, headers: bool = True) -> Object:
    """A Table of rows. `metadata` is the list's, or the one object's. In a watch only the first event has `headers`."""
    return {
        "kind": "Table",
        "apiVersion": f"{GROUP}/{version}",
        "metadata": list_meta(metadata),
        "columnDefinitions": columns.definitions if headers else None,
        "rows": rows or columns.no_rows,
    }


# -- conversion -------------------------------------------------------------------------------------------------------


def convert(
    value: Object, to: Conversion, columns: Columns, now: datetime, *, include: str = "Metadata", headers: bool = True
) -> Object:
    """One object (or a watch event's object) in the requested representation. A Status is not converted. Raises ApiError."""
    if value.get("kind") == "Status" and value.get("apiVersion") == "v1":
        return value
    if to.kind == "Table":
        rows = [row(columns, value, to.version, include, now)]
        metadata = {"resourceVersion": value["metadata"].get("resourceVersion")}
        return table(columns, rows, metadata, to.version, headers=headers)
    if to.kind == "PartialObjectMetadata":
        return partial(value, to.version)
    if columns.go_type == UNSTRUCTURED:
        raise plain_error("content is not a list")
    message = f"you requested PartialObjectMetadataList, but the requested object is not a list ({columns.go_type})"
    raise ApiError(406, message, "NotAcceptable")


def convert_list(
    items: Iterable[Object],
    metadata: Object,
    to: Conversion,
    columns: Columns,
    now: datetime,
    include: str = "Metadata",
) -> Object:
    """A list in the requested representation; `metadata` is the list's. Raises ApiError."""
    if to.kind == "Table":
        rows = [row(columns, item, to.version, include, now) for item in items]
        return table(columns, rows, metadata, to.version)
    if to.kind == "PartialObjectMetadataList":
        return partial_list(items, metadata, to.version)
    message = f"you requested PartialObjectMetadata, but the requested object is a list ({columns.go_type}List)"
    raise ApiError(406, message, "NotAcceptable")


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
        text = self._texts.get(age)
        if text is None:
            text = self._texts[age] = codec.encode(age.at(self._now), sort_keys=False)[1:-1]
        return text


def metadata(summary: Summary, version: str) -> bytes:
    """A PartialObjectMetadata."""
    return b"%b%b}" % (_HEADS[version], summary.metadata)


def row_of_summary(summary: Summary, version: str, ages: Ages, include: str, body: bytes = b"") -> bytes:
    """A TableRow. `include` is one of `table.INCLUDE`; for Object, `body` is the object's JSON."""
    first, *rest = summary.pieces
    parts = [b'{"cells":', first]
    for age, piece in zip(summary.ages, rest, strict=True):
        parts += ages.text(age), piece
    if include == "Object":
        parts += summary.conditions, b',"object":', body, b"}"
    elif include == "Metadata" or summary.ends_initial_events:
        parts += summary.conditions, b',"object":', _HEADS[version], summary.metadata, b"}}"
    else:
        parts += summary.conditions, b',"object":null}'
    return b"".join(parts)
