"""Bytes to objects and back: request bodies, stored bytes, answers.

Reading: `orjson` reads what is clean; at any doubt `gojson` reads again, exactly as Go does. orjson refuses whatever Go
refuses (NaN, byte order marks, numbers beyond float64, control characters) and more (bad UTF-8, lone surrogates, more
than 1024 levels), but it says nothing of repeated keys and knows integers beyond int64. Both show when the value is
written again: a repeated key is lost then, and with it a colon.

Writing: what encoding/json would write. orjson writes the same but for HTML characters and some floats.

Refusals are upstream's, word for word; each function says which. What is big is slow: callers decode bodies beyond
some 100 KB, above all YAML, in a thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Final, NamedTuple

import orjson

from apiserver.api import gojson
from apiserver.api.errors import ApiError, bad_request, too_large
from apiserver.api.gojson import JsonSyntaxError, string_of
from apiserver.api.gotext import compact_json, quote
from apiserver.api.meta import GroupVersionKind, parse_api_version
from apiserver.api.structs import JSON as JSON_VALUE
from apiserver.api.structs import STRING, Field, List, Struct, decode, json_type
from apiserver.api.types import Json

MAX_BODY: Final = 3 * 1024 * 1024  # upstream's MaxRequestBodyBytes
MAX_JSON_PATCH_OPERATIONS: Final = 10_000
JSON: Final = "application/json"
YAML: Final = "application/yaml"

_SORTED: Final = orjson.OPT_SORT_KEYS
_MAX_EXACT_DIGITS: Final = 18  # an integer of more digits may be beyond int64
_ZEROS: Final = b"0" * (_MAX_EXACT_DIGITS + 1)
_AS_ZEROS: Final = bytes.maketrans(b"123456789", b"0" * 9)
_zeros: Final = re.compile(b"0*").match


class Decoded(NamedTuple):
    """A value, and what a strict decoder has to say of repeated keys.

    `duplicates` is for warnings (`duplicate field "spec.a"`, or YAML's `line 7: key "a" already set in map`), `strict`
    for refusals, where YAML's complaints are one text of several lines.
    """

    value: Json
    duplicates: Sequence[str] = ()
    yaml: bool = False

    @property
    def strict(self) -> Sequence[str]:
        if not self.yaml or not self.duplicates:
            return self.duplicates
        return ["yaml: unmarshal errors:\n  " + "\n  ".join(self.duplicates)]


def decode_json(body: bytes) -> Decoded:
    """Read JSON as sigs.k8s.io/json does; raises ValueError with Go's message."""
    value = _read_clean(body)
    if value is not _DOUBT:
        return Decoded(value)
    document = gojson.read(body)
    if document.error:
        raise ValueError(document.error)
    return Decoded(document.value, _told(document.duplicates))


def _told(duplicates: Sequence[str]) -> list[str]:
    return [f"duplicate field {quote(path)}" for path in duplicates]


_DOUBT: Final = object()
_SMALL: Final = 64 * 1024  # writing takes up to a hundred times as much memory as the body for a moment


def _read_clean(body: bytes) -> Json:
    """The value of a body that orjson reads as Go does, _DOUBT if that is not sure."""
    try:
        value = orjson.loads(body)
    except ValueError:
        return _DOUBT
    try:
        colons = orjson.dumps(value, option=orjson.OPT_STRICT_INTEGER).count(b":") if len(body) <= _SMALL else -1
    except TypeError:  # an integer beyond 2**53, or too deep
        colons = -1
    if colons < 0:
        if _may_be_beyond_int64(body):
            return _DOUBT
        colons = _count_colons(value)
    if colons != body.count(b":") or (b"\\" in body and _escaped_colon(body)):
        return _DOUBT
    return value


def _count_colons(value: Json) -> int:
    """How many colons there would be if the value were written."""
    colons = 0
    todo = [value]
    while todo:
        item = todo.pop()
        if type(item) is dict:
            colons += len(item) + "".join(item).count(":")
            item = item.values()
        elif type(item) is str:
            item = [item]
        elif type(item) is not list:
            continue
        colons += "".join([part for part in item if type(part) is str]).count(":")
        todo += [part for part in item if part and (type(part) is dict or type(part) is list)]
    return colons


_escaped_colon: Final = re.compile(rb"\\u003[aA]").search


def decode_stored(data: bytes) -> Json:
    """Read what `encode` wrote."""
    try:
        value = orjson.loads(data)
    except ValueError:
        return gojson.read(data).value
    return gojson.read(data).value if _may_be_beyond_int64(data) else value


def _may_be_beyond_int64(text: bytes) -> bool:
    """Is there an integer with so many digits, and not only a text or a fraction? (Or a text that looks like one.)"""
    digits = text.translate(_AS_ZEROS)
    at = digits.find(_ZEROS)
    while at >= 0:
        before = at - 1
        while before >= 0 and text[before] in b" \t\r\n-":
            before -= 1
        if before < 0 or text[before] in b":,[":
            return True
        run = _zeros(digits, at)
        at = digits.find(_ZEROS, run.end() if run else at + 1)
    return False


def decode_yaml(body: bytes) -> Decoded:
    """Read YAML as sigs.k8s.io/yaml turns it into JSON; raises ValueError with go-yaml's message.

    A MiB takes about a second: run what is big in a thread. JSON in a YAML body is read as fast as JSON.
    """
    if body.startswith(b"{") and not _odd_in_yaml(body):
        value = _read_clean(body)
        if value is _DOUBT:
            value = _read_deep(body)
        if value is not _DOUBT and _same_in_yaml(body, value):
            return Decoded(value)
    from apiserver.api import goyaml  # most servers never read YAML

    document = goyaml.read(body)
    return Decoded(document.value, document.duplicates, yaml=True)


def _odd_in_yaml(body: bytes) -> bool:
    r"""Is there anything in the bytes of a JSON text that YAML may read otherwise: tabs, \u, \/, what is not printable?"""
    return bool(body.translate(None, _PRINTABLE)) or b"\\u" in body or b"\\/" in body


def _read_deep(body: bytes) -> Json:
    """JSON that only its depth keeps from orjson. libyaml's time is quadratic in it."""
    if body.count(b"{") + body.count(b"[") <= _DEEP:
        return _DOUBT
    try:
        document = gojson.read(body)
    except JsonSyntaxError as error:
        if str(error).endswith("exceeded max depth") and b"\n" not in body:
            raise ValueError(f"yaml: exceeded max depth of {gojson.MAX_DEPTH}") from None
        return _DOUBT
    return _DOUBT if document.error or document.duplicates else document.value


def _same_in_yaml(body: bytes, value: Json) -> bool:
    """YAML makes an integer of 1.0, and allows neither space before a colon nor keys of more than 1024 characters."""
    try:
        written = orjson.dumps(value)
    except TypeError:  # too deep
        written = _encode_exactly(value, sort_keys=False)
    if written.count(b'":') != body.count(b'":') or _written_otherwise(written):
        return False
    if _LONG_TEXT not in body.translate(_TEXT):
        return True
    pieces = body.split(b'"')
    return not any(
        len(piece) >= len(_LONG_TEXT) and pieces[n].startswith(b":") for n, piece in enumerate(pieces[:-1], 1)
    )


_DEEP: Final = 1000
_PRINTABLE: Final = bytes(range(0x20, 0x7F)) + b"\n"
_LONG_TEXT: Final = b"x" * 1000
_TEXT: Final = b"x" * 34 + b'"' + b"x" * 221  # everything but quotation marks is text


# Writing

_HTML: Final = {b"<": rb"\u003c", b">": rb"\u003e", b"&": rb"\u0026"}
_FOR_FLOATS: Final = bytes.maketrans(b"+-123456789,[", b"00000000000::")
_float: Final = re.compile(rb":0+[.e]0*(?=[:}\]e])")  # in JSON translated by _FOR_FLOATS
_odd_float: Final = re.compile(rb"[:,\[]-?[0-9]+(?:\.0[,}\]]|(?:\.[0-9]+)?e)").match  # 1.0 and 1e16


def _written_otherwise(written: bytes) -> bool:
    """Might there be a float that Go writes in another form than orjson did?"""
    translated = written.translate(_FOR_FLOATS)
    if not _float.search(translated):
        return False
    return any(_odd_float(written, found.start()) for found in _float.finditer(translated))


def encode(value: Json, *, sort_keys: bool) -> bytes:
    """What encoding/json writes, in one line and without a line end."""
    written = _encode_fast(value, _SORTED if sort_keys else 0)
    return written if written is not None else _encode_exactly(value, sort_keys=sort_keys)


def _encode_fast(value: Json, option: int) -> bytes | None:
    """None where orjson writes something else than Go: whole floats, floats with an exponent, great depth."""
    try:
        written = orjson.dumps(value, option=option)
    except TypeError:
        return None
    if _written_otherwise(written) or isinstance(value, float):
        return None
    return _escape(written)


def _escape(written: bytes) -> bytes:
    for char, escaped in _HTML.items():
        if char in written:
            written = written.replace(char, escaped)
    if b"\xe2" in written:  # U+2028 and U+2029
        written = written.replace(b"\xe2\x80\xa8", rb"\u2028").replace(b"\xe2\x80\xa9", rb"\u2029")
    return written


def _encode_exactly(value: Json, *, sort_keys: bool) -> bytes:
    text = compact_json(value, sort_keys=sort_keys)
    return string_of(text.encode("utf-8", "surrogatepass")).encode()


def pretty(value: Json, *, sort_keys: bool) -> bytes:
    """What Go's MarshalIndent writes with two spaces, without a line end."""
    option = _SORTED if sort_keys else 0
    written = _encode_fast(value, option)
    if written is not None:
        return _escape(orjson.dumps(value, option=option | orjson.OPT_INDENT_2))
    return _indent(_encode_exactly(value, sort_keys=sort_keys))


_token: Final = re.compile(rb'([{\[])([}\]])?|([}\]])|(,)|(:)|("(?:[^"\\]++|\\.)*+"|[^{}\[\],:"]++)').finditer


MAX_INDENTED: Final = 1000  # levels; with 10,000 of them 200 MB of spaces would be written


def _indent(written: bytes) -> bytes:
    """encoding/json's Indent of compact JSON; what is too deep stays compact."""
    out: list[bytes] = []
    depth = 0
    for token in _token(written):
        opening, empty, closing, comma, colon, _ = token.groups()
        if opening and empty:
            out.append(token[0])
        elif opening:
            depth += 1
            if depth > MAX_INDENTED:
                return written
            out += (opening, b"\n", b"  " * depth)
        elif closing:
            depth -= 1
            out += (b"\n", b"  " * depth, closing)
        elif comma:
            out += (b",\n", b"  " * depth)
        else:
            out.append(b": " if colon else token[0])
    return b"".join(out)


def to_yaml(value: Json) -> bytes:
    """What sigs.k8s.io/yaml writes: keys sorted, with a line end."""
    from apiserver.api import goyaml_writer  # most servers never write YAML

    return goyaml_writer.write(value)


# Objects in requests


def read_object(
    body: bytes, media_type: str, expected: GroupVersionKind, *, strict: bool = True, typed: bool = False
) -> Decoded:
    """Read the object that a request brings; `media_type` is JSON or YAML, `expected` the kind that the URL stands for.

    Raises ApiError: 413 for what is too big, 400 for what is no object or, unless it is `typed` (a built-in kind, whose
    kind and apiVersion may be left out), has no kind. Whether kind and apiVersion are right is not checked here.
    `strict` is for fieldValidation Strict and Warn; without it repeated keys are nobody's business.
    """
    check_size(body)
    if media_type == JSON and (value := _read_clean(body)) is not _DOUBT and _names_itself(value):
        return Decoded(value)
    try:
        parsed = _parse(body, media_type)
        sent = _interpret(parsed)
    except ValueError as error:
        raise _unrecognized(expected.kind, str(error), body) from None
    sent = _with_defaults(sent, expected)
    if parsed.error:
        raise cannot_be_handled(sent, expected.kind, parsed.error)
    value = {} if parsed.value is None else parsed.value
    if not typed and not value.get("kind"):
        if strict:
            raise _unrecognized(expected.kind, f"Object 'Kind' is missing in '{string_of(body)}'", body)
        text = encode(parsed.value, sort_keys=True) if media_type == YAML else body.strip(b" \t\r\n")
        raise cannot_be_handled(sent, expected.kind, f"Object 'Kind' is missing in '{string_of(text)}'")
    return Decoded(value, parsed.duplicates if strict else (), media_type == YAML)


def identify(body: bytes, expected: GroupVersionKind) -> tuple[GroupVersionKind, Json]:
    """What a webhook sent, and what that says it is; what it leaves out it is taken to be as `expected`.

    Upstream takes for YAML what does not begin like a JSON object. Raises ValueError in Go's words, but for what is
    too long to be looked at so closely.
    """
    if (value := _read_clean(body)) is not _DOUBT and _names_itself(value):
        return GroupVersionKind(*parse_api_version(value["apiVersion"]), value["kind"]), value
    if len(body) > _CLOSELY_READ:
        parsed = _parse_quickly(body)
    else:
        parsed = _parse(body, JSON if body.lstrip(b" \t\r\n").startswith(b"{") else YAML)
    sent = _with_defaults(_interpret(parsed), expected)
    if parsed.error:
        raise ValueError(parsed.error)
    return sent, parsed.value


def unidentified(value: Json, text: Callable[[], str], *, typed: bool) -> str:
    """What keeps a JSON value, written as `text`, from being an object of some kind; an empty text if nothing does.

    `typed`: built-in kinds may leave out which they are.
    """
    if _names_itself(value):
        return ""
    try:
        sent = _interpret(_Parsed(value, [], list(value.items()) if type(value) is dict else []))
    except ValueError as error:
        return str(error)
    return "" if typed or sent.kind else f"Object 'Kind' is missing in '{text()}'"


_CLOSELY_READ: Final = 64 * 1024  # bytes of an odd answer


def decode_answer(body: bytes) -> Json:
    """A JSON text that a webhook sent. Raises ValueError, in Go's words unless it is too long for that."""
    if len(body) > _CLOSELY_READ:
        try:
            return orjson.loads(body)
        except ValueError as error:
            if "limit" not in str(error):  # of depth, which is a tenth of Go's
                raise
    return gojson.read(body).value


def _parse_quickly(body: bytes) -> _Parsed:
    try:
        value = decode_answer(body)
    except ValueError as error:
        raise ValueError(f"{_NO_KIND}: {error}") from None
    return _Parsed(value, (), list(value.items()) if type(value) is dict else [])


def check_size(body: bytes) -> None:
    """Raises ApiError."""
    if len(body) > MAX_BODY:
        raise too_large(f"limit is {MAX_BODY}")


def cannot_be_handled(sent: GroupVersionKind, kind: str, why: str) -> ApiError:
    """An object that says what it is, but cannot be decoded as `kind`; `why` may be the `strict_decoding_error`."""
    text = f"{sent.kind} in version {quote(sent.version)} cannot be handled as a {kind}: {why}"
    return bad_request(text)


def strict_decoding_error(complaints: Sequence[str]) -> str:
    return f"strict decoding error: {', '.join(complaints)}"


def _unrecognized(kind: str, why: str, body: bytes) -> ApiError:
    return bad_request(f"the object provided is unrecognized (must be of type {kind}): {why} ({_excerpt(body)})")


def _excerpt(body: bytes) -> str:
    """Enough of a body to know it by: text if it may be a JSON object, else hexadecimal."""
    if not body:
        return "<empty>"
    shown = body[:_EXCERPT]
    text = string_of(shown) if body.startswith(b"{") else shown.hex()
    return f"{text} ..." if len(body) > _EXCERPT else text


_EXCERPT: Final = 30


class _Parsed(NamedTuple):
    """`members` are the root's, with repetitions; `error` tells of a number that no float64 holds."""

    value: Json
    duplicates: Sequence[str]
    members: Sequence[tuple[str, Json]]
    error: str = ""


def _parse(body: bytes, media_type: str) -> _Parsed:
    try:
        if media_type == YAML:
            value, duplicates, _ = decode_yaml(body)
            return _Parsed(value, duplicates, list(value.items()) if type(value) is dict else [])
        document = gojson.read(body)
    except JsonSyntaxError as error:
        raise ValueError(f"{_NO_KIND}: {error}") from None
    return _Parsed(document.value, _told(document.duplicates), document.members, document.error)


def _names_itself(value: Json) -> bool:
    """Is this an object with a kind and an apiVersion, so that `_interpret` has nothing to add?"""
    if type(value) is not dict:
        return False
    kind, api_version = value.get("kind"), value.get("apiVersion")
    if type(kind) is not str or type(api_version) is not str or not kind or api_version.count("/") > 1:
        return False
    for name in value:
        if len(name) in _IDENTITY_LENGTHS and name not in _EVERYDAY and name.casefold() in _IDENTITY:
            return False
    return True


_NO_KIND: Final = "couldn't get version/kind; json parse error"
_TYPE_META: Final = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)
_IDENTITY: Final = {"apiversion": "apiVersion", "kind": "kind"}


def _interpret(parsed: _Parsed) -> GroupVersionKind:
    """What the object says it is. Upstream looks without regard to case here, though nowhere else."""
    value = parsed.value
    if value is not None and type(value) is not dict:
        raise ValueError(f"{_NO_KIND}: json: cannot unmarshal {json_type(value)} into Go value of type {_TYPE_META}")
    found = {"apiVersion": "", "kind": ""}
    for name, item in parsed.members:
        field = _IDENTITY.get(name.casefold()) if len(name) in _IDENTITY_LENGTHS else None
        if field is None or item is None:
            continue
        if type(item) is not str:
            what = f"json: cannot unmarshal {json_type(item)} into Go struct field .{field} of type string"
            raise ValueError(f"{_NO_KIND}: {what}")
        found[field] = item
    return GroupVersionKind(*parse_api_version(found["apiVersion"]), found["kind"])


_IDENTITY_LENGTHS: Final = frozenset(map(len, _IDENTITY))
_EVERYDAY: Final = frozenset({"apiVersion", "kind", "spec", "data"})


def _with_defaults(sent: GroupVersionKind, expected: GroupVersionKind) -> GroupVersionKind:
    group, version, kind = sent
    if not version and group in ("", expected.group):
        group, version = expected.group, expected.version
    return GroupVersionKind(group, version, kind or expected.kind)


# Patches in requests


class PatchBody(NamedTuple):
    """A JSON text that is a patch of some kind. `duplicates` are paths."""

    value: Json
    error: str
    duplicates: Sequence[str]


class Patch(NamedTuple):
    """A patch that can be applied, and what a strict decoder has to say of it."""

    value: Json
    strict: Sequence[str]


def read_patch(body: bytes) -> PatchBody:
    """The body of a JSON or merge patch; raises ApiError.

    This happens before the object is looked up, what `json_patch` and `merge_patch` do happens after it.
    """
    check_size(body)
    value = _read_clean(body)
    if value is not _DOUBT:
        return PatchBody(value, "", ())
    try:
        document = gojson.read(body)
    except JsonSyntaxError:
        raise bad_request("invalid JSON patch") from None
    return PatchBody(document.value, document.error, document.duplicates)


_JSON_PATCH_OP: Final = Struct("jsonPatchOp", package="handlers").define(
    Field("op", STRING), Field("path", STRING), Field("from", STRING), Field("value", JSON_VALUE)
)


def json_patch(patch: PatchBody, *, strict: bool) -> Patch:
    """The operations of a JSON patch, as they were sent; raises ApiError.

    Without `strict` (fieldValidation=Ignore) only the operations' being objects is checked.
    """
    operations = [] if patch.value is None else patch.value
    complaints: list[str] = []
    if strict:
        decoded = decode(List(_JSON_PATCH_OP), operations)
        error = decoded.error or patch.error.replace("Go value", "Go struct field jsonPatchOp.value")
        if error:
            raise bad_request(f"error decoding patch: {error}")
        known = [path for path in patch.duplicates if _operation_field(path) in _JSON_PATCH_OP.fields]
        complaints = [f"json patch {told}" for told in _told(known)]
        complaints += [f"json patch unknown field {quote(path)}" for path in decoded.unknown]
    elif type(operations) is not list:
        raise bad_request(_no_go_value(operations, "jsonpatch.Patch"))
    for operation in operations:
        if operation is not None and type(operation) is not dict:
            raise bad_request(_no_go_value(operation, "jsonpatch.Operation"))
    if len(operations) > MAX_JSON_PATCH_OPERATIONS:
        limit = f"is {MAX_JSON_PATCH_OPERATIONS}, got {len(operations)}"
        raise too_large(f"The allowed maximum operations in a JSON patch {limit}")
    return Patch([operation or {} for operation in operations], complaints)


def merge_patch(patch: PatchBody, *, strict: bool) -> Patch:
    """A merge patch: an object, or without `strict` also a list; raises ApiError."""
    if strict and (patch.error or type(patch.value) not in (dict, NoneType)):
        raise bad_request(f"error decoding patch: {patch.error or _no_go_value(patch.value, _GO_MAP)}")
    if type(patch.value) not in (dict, list):
        raise bad_request("Invalid JSON Patch")
    return Patch(patch.value, _told(patch.duplicates) if strict else ())


def read_apply(body: bytes) -> Decoded:
    """The body of a server-side apply, an object in YAML or JSON; raises ApiError. Null is empty."""
    check_size(body)
    try:
        decoded = decode_yaml(body)
    except JsonSyntaxError as error:
        raise bad_request(f"error decoding patch: {_NO_OBJECT}: {error}") from None
    except ValueError as error:
        if body.lstrip().startswith(b"{"):
            raise bad_request(f"error decoding patch: error converting YAML to JSON: {error}") from None
        raise bad_request(f"error encoding patch: {error}") from None
    if decoded.value is None:
        return Decoded({}, (), decoded.yaml)
    if type(decoded.value) is not dict:
        raise bad_request(f"error decoding patch: {_NO_OBJECT}: {_no_go_value(decoded.value, _GO_MAP)}")
    return decoded


def refuse_repeated_keys(applied: Decoded) -> ApiError:
    """What fieldValidation=Strict says to an apply whose `duplicates` are not empty."""
    return bad_request(f"error strict decoding patch: error converting YAML to JSON: {applied.strict[0]}")


_GO_MAP: Final = "map[string]interface {}"
_NO_OBJECT: Final = "error unmarshaling JSON: while decoding JSON"


def _no_go_value(value: Json, go: str) -> str:
    return f"json: cannot unmarshal {json_type(value)} into Go value of type {go}"


def _operation_field(path: str) -> str:
    """`[0].value.a` is in the field `value`."""
    return path.partition(".")[2].partition(".")[0].partition("[")[0]
