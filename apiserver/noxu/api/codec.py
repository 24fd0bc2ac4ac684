"""Bytes to values and back: request bodies, stored bytes, responses.

Reading: `orjson` decodes nearly everything; where its result may differ from Go's, `go.json` decodes again, exactly as
Go does. orjson refuses what Go refuses (NaN, byte order marks, numbers beyond float64, control characters) and more (bad
UTF-8, lone surrogates, more than 1024 levels), but it does not report repeated keys, and accepts integers beyond int64.
Counting colons finds repeated keys, because only one of several equal keys is in the decoded value:

    body    {"a": 1, "b": ":", "a": 2}      4 colons
    value   {"a": 2, "b": ":"}              3 colons when it is encoded: read again by `go.json`

Writing: the bytes of encoding/json. orjson writes the same, except for HTML characters and some floats.

Errors are upstream's, word for word. Decoding is slow for large bodies: callers decode more than some 100 KB, above all
YAML, in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Final, NamedTuple

import orjson

from noxu.api.errors import ApiError, bad_request, too_large
from noxu.api.meta import GroupVersionKind, parse_api_version
from noxu.cpu_budget import require_imported
from noxu.expressions import expression
from noxu.go import json as go_json
from noxu.go import yaml_writer
from noxu.go.json import JsonSyntaxError, string_of
from noxu.go.structs import json_type
from noxu.go.text import compact_json, quote
from noxu.values import Json

MAX_BODY: Final = 3 * 1024 * 1024  # upstream's MaxRequestBodyBytes
JSON: Final = "application/json"
YAML: Final = "application/yaml"

_SORTED: Final = orjson.OPT_SORT_KEYS
_MAX_EXACT_DIGITS: Final = 18  # an integer of more digits may be beyond int64
_ZEROS: Final = b"0" * (_MAX_EXACT_DIGITS + 1)
_FOURTH_OF_ZEROS: Final = b"0" * ((_MAX_EXACT_DIGITS + 1) // 4)
_AS_ZEROS: Final = bytes.maketrans(b"123456789", b"0" * 9)
_zeros: Final = expression(b"0*")
_minus_zero_in_yaml: Final = expression(rb"(?<![^\s:,\[{])-[0._]+(?:[eE][-+]?[0-9]+)?(?![^\s,\]}])")
_minus_zero: Final = expression(rb"[:,\[][ \t\r\n]*-0[ \t\r\n]*[,}\]]")


class Decoded(NamedTuple):
    """A value, and the messages about repeated keys.

    `duplicates` is for warnings (`duplicate field "spec.a"`, or YAML's `line 7: key "a" already set in map`). `strict`
    is for errors, where YAML's messages are one text of several lines.
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
    """Decode JSON as sigs.k8s.io/json does. Raises ValueError with Go's message."""
    value = decode_fast(body)
    if value is not UNCERTAIN:
        return Decoded(value)
    document = go_json.read(body)
    if document.error:
        raise ValueError(document.error)
    return Decoded(document.value, duplicate_field_messages(document.duplicates))


def duplicate_field_messages(paths: Sequence[str]) -> list[str]:
    """sigs.k8s.io/json's messages about repeated keys."""
    return [f"duplicate field {quote(path)}" for path in paths]


UNCERTAIN: Final = object()
_SMALL: Final = 64 * 1024  # bytes; encoding again takes up to a hundred times as much memory for a moment


def decode_fast(body: bytes) -> Json:
    """The value of a JSON body if orjson certainly decodes it as Go does, else UNCERTAIN."""
    return _decode_fast(body)[0]


def _decode_fast(body: bytes) -> tuple[Json, bytes]:
    """(What `decode_fast` returns, the value's JSON if it was encoded for that)."""
    try:
        value, written = orjson.loads(body), b""
    except ValueError:
        return UNCERTAIN, b""
    try:
        if len(body) <= _SMALL:
            written = orjson.dumps(value, option=orjson.OPT_STRICT_INTEGER)
    except TypeError:  # an integer beyond 2**53, or too deep
        pass
    if written and body.startswith(written):
        return value, written  # nothing follows but white space, so no key is repeated
    if not written and _may_be_beyond_int64(body):
        return UNCERTAIN, b""
    colons = written.count(b":") if written else _count_colons(value)
    if colons != body.count(b":") or (_BACKSLASH in body and _escaped_colon.search(body)):
        return UNCERTAIN, b""
    return value, written


def _count_colons(value: Json) -> int:
    """The number of colons in the value's JSON."""
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


_BACKSLASH: Final = 0x5C  # a number is found in bytes ten times as fast as a text of one byte
_escaped_colon: Final = expression(rb"\\u003[aA]")


def decode_stored(data: bytes) -> Json:
    """Decode what `encode` has written."""
    try:
        value = orjson.loads(data)
    except ValueError:
        return go_json.read(data).value
    return go_json.read(data).value if _may_be_beyond_int64(data) else value


def _may_be_beyond_int64(text: bytes) -> bool:
    """Whether there is an integer of more than 18 digits, or a string that looks like one.

    All digits become 0, so that one search finds a run of 19. The character before it distinguishes an integer from the
    digits of a fraction, an exponent or a string:

        {"a": 12345678901234567890}     the run follows a space, that a colon: an integer
        {"a": 0.1234567890123456789}    the run follows a point

    Four of its digits follow each other in every fourth byte, where a search takes a third of the time.
    """
    if text[::4].translate(_AS_ZEROS).find(_FOURTH_OF_ZEROS) < 0:
        return False
    digits = text.translate(_AS_ZEROS)
    at = digits.find(_ZEROS)
    while at >= 0:
        before = at - 1
        while before >= 0 and text[before] in b" \t\r\n-":
            before -= 1
        if before < 0 or text[before] in b":,[":
            return True
        run = _zeros.match(digits, at)
        at = digits.find(_ZEROS, run.end() if run else at + 1)
    return False


def decode_literals(body: bytes, media_type: str = JSON) -> Json:
    """Decode JSON that was decoded before, with numbers as they were sent (see `go.json.read`), for errors.

    Of YAML, they are those of the JSON that upstream converts it to.
    """
    if media_type == YAML:
        value: Json = _yaml().read_literals(body)
        return value
    return go_json.read(body, literals=True).value


def has_minus_zero(body: bytes) -> bool:
    """Whether a JSON text may have the number -0, which is an integer unless it is for a float64."""
    return b"-0" in body and _minus_zero.search(body) is not None


def decode_yaml(body: bytes) -> Decoded:
    """Decode YAML as sigs.k8s.io/yaml converts it to JSON. Raises ValueError with go-yaml's message.

    A MiB takes about a second: run large bodies in a thread. JSON in a YAML body is decoded as fast as JSON.
    """
    if body.startswith(b"{") and not _may_differ_in_yaml(body):
        value, written = _decode_fast(body)
        if value is UNCERTAIN and not body.translate(None, _PRINTABLE):
            value = _read_deep(body)
        if value is not UNCERTAIN and _same_in_yaml(body, value, written):
            return Decoded(value)
    require_imported("noxu.go.yaml", "read")
    document = _yaml().read(body)
    return Decoded(document.value, document.duplicates, yaml=True)


def _yaml() -> ModuleType:
    """18 ms to import, and most servers never read YAML."""
    from noxu.go import yaml

    return yaml


def _may_differ_in_yaml(body: bytes) -> bool:
    r"""Whether a JSON text has bytes that YAML may read differently: tabs, \u, \/, or anything but printable ASCII.

    Other control characters do not occur in JSON.
    """
    if not body.isascii() or any(map(body.__contains__, b"\t\r\x7f")):
        return True
    return _BACKSLASH in body and (b"\\u" in body or b"\\/" in body)


def _read_deep(body: bytes) -> Json:
    """The value of JSON that is too deep for orjson, else UNCERTAIN. libyaml takes quadratic time for depth."""
    if body.count(b"{") + body.count(b"[") <= _DEEP:
        return UNCERTAIN
    try:
        document = go_json.read(body)
    except JsonSyntaxError as error:
        if str(error).endswith("exceeded max depth") and b"\n" not in body:
            raise ValueError(f"yaml: exceeded max depth of {go_json.MAX_DEPTH}") from None
        return UNCERTAIN
    return UNCERTAIN if document.error or document.duplicates else document.value


def _same_in_yaml(body: bytes, value: Json, written: bytes) -> bool:
    """Whether YAML reads a JSON text as the same value. `written` is the value's JSON, empty if it is not known.

    YAML reads 1.0 as an integer, and allows neither space before a colon nor keys of more than 1024 characters.
    """
    try:
        written = written or orjson.dumps(value)
    except TypeError:  # too deep
        written = _encode_in_python(value, sort_keys=False)
    if not body.startswith(written) and written.count(b'":') != body.count(b'":'):
        return False
    if _may_have_go_floats(written):
        return False
    if body[::_TEXT_STEP].translate(_TEXT).find(_LONG_TEXT[::_TEXT_STEP]) < 0:
        return True  # a long text is a long one in every eighth byte, too
    pieces = body.split(b'"')
    return not any(
        len(piece) >= len(_LONG_TEXT) and pieces[n].startswith(b":") for n, piece in enumerate(pieces[:-1], 1)
    )


_DEEP: Final = 1000
_PRINTABLE: Final = bytes(range(0x20, 0x7F)) + b"\n"
_LONG_TEXT: Final = b"x" * 1000
_TEXT_STEP: Final = 8
_TEXT: Final = b"x" * 34 + b'"' + b"x" * 221  # maps every byte but the quotation mark to x


# Writing

_HTML: Final = {b"<": rb"\u003c", b">": rb"\u003e", b"&": rb"\u0026"}
_LESS, _GREATER, _AMPERSAND, _SEPARATOR = b"<>&\xe2"  # U+2028 and U+2029 begin with the last one
_FOR_FLOATS: Final = bytes.maketrans(b"+-123456789,[", b"00000000000::")
_float: Final = expression(rb":00*[.e]0*(?=[:}\]e])")  # in JSON translated by _FOR_FLOATS; `:0+` is found more slowly
_go_float: Final = expression(rb"[:,\[]-?[0-9]+(?:\.0[,}\]]|(?:\.[0-9]+)?e)")  # 1.0 and 1e16


def _may_have_go_floats(written: bytes) -> bool:
    """Whether orjson may have written a float in another form than Go does: `1.0` is `1` in Go, `1e16` is written out.

    Strings may look like floats, too. After the translation, every digit is 0 and every value follows a colon, so that
    few candidates have to be looked at closely:

        {"a":[1.5,1.0],"b":"x:1.0,"}
        {"a"::0.0:0.0]:"b":"x:0.0:"}
             ^--- ^---        ^---      1.5 is written alike in Go; 1.0 is not; the string merely looks like it
    """
    translated = written.translate(_FOR_FLOATS)
    if not _float.search(translated):
        return False
    return any(_go_float.match(written, match.start()) for match in _float.finditer(translated))


def encode(value: Json, *, sort_keys: bool) -> bytes:
    """The value as encoding/json writes it, on one line without a line end."""
    written = _encode_fast(value, _SORTED if sort_keys else 0)
    return escape_html(written) if written is not None else _encode_in_python(value, sort_keys=sort_keys)


def encode_exact(value: Json) -> bytes | None:
    """What `encode` writes with sorted keys, for an object that has no floats, which are not searched for.

    Its parts may be `Encoded`. None if the object has to be encoded by `encode`, without such parts.
    """
    try:
        return escape_html(b"%b" % orjson.dumps(value, option=_SORTED))
    except TypeError:
        return None


Encoded: Final = orjson.Fragment
"""A part of an object that is JSON already, as `encode` has written it."""


def encode_unescaped(value: Json) -> bytes:
    """The value as encoding/json/v2 writes it: `<`, `>`, `&`, U+2028 and U+2029 are as they are. Keys keep their order."""
    written = _encode_fast(value, 0)
    return written if written is not None else _encode_in_python(value, sort_keys=False, escape_html=False)


def encode_for_page(value: Json) -> bytes:
    """JSON for a web page: floats are written in any form that JavaScript reads, keys keep their order.

    Its parts may be `Encoded`. Raises TypeError for what the fast encoder cannot write, such as integers beyond 64 bits.
    """
    return orjson.dumps(value)


def _encode_fast(value: Json, option: int) -> bytes | None:
    """None if orjson may write something else than Go: whole floats, floats with an exponent, great depth.

    The result is a copy: what orjson returns keeps the buffer that it has written into, 8 KB for 600 bytes.
    """
    try:
        written = b"%b" % orjson.dumps(value, option=option)
    except TypeError:
        return None
    if _may_have_go_floats(written) or isinstance(value, float):
        return None
    return written


def escape_html(written: bytes) -> bytes:
    """JSON with the escapes of encoding/json. These characters occur in strings only, so all of them are replaced."""
    if _LESS in written or _GREATER in written or _AMPERSAND in written:
        for char, escaped in _HTML.items():
            written = written.replace(char, escaped)
    if _SEPARATOR in written:
        written = written.replace(b"\xe2\x80\xa8", rb"\u2028").replace(b"\xe2\x80\xa9", rb"\u2029")
    return written


def _encode_in_python(value: Json, *, sort_keys: bool, escape_html: bool = True) -> bytes:
    text = compact_json(value, sort_keys=sort_keys, escape_html=escape_html)
    return string_of(text.encode("utf-8", "surrogatepass")).encode()


def pretty(value: Json, *, sort_keys: bool) -> bytes:
    """The value as Go's MarshalIndent writes it, with two spaces per level and without a line end.

    If it needs too much indentation, it is compact.
    """
    option = _SORTED if sort_keys else 0
    written = _encode_fast(value, option)
    if written is not None:
        if _has_too_much_indentation(value, len(written)):
            return escape_html(written)
        return escape_html(orjson.dumps(value, option=option | orjson.OPT_INDENT_2))
    written = _encode_in_python(value, sort_keys=sort_keys)
    return written if _has_too_much_indentation(value, len(written)) else _indent(written)


MAX_INDENTATION: Final = 1 << 20
"""Spaces of indentation that any value may have; a larger one may have INDENTATION_RATIO times its compact size."""
INDENTATION_RATIO: Final = 16
_ALWAYS_INDENTED: Final = 1024  # bytes: not even a chain of objects this long has more than MAX_INDENTATION


def _has_too_much_indentation(value: Json, size: int) -> bool:
    """Whether indenting multiplies a value of `size` bytes: at level 250, each item of two bytes has 500 spaces before it."""
    return size > _ALWAYS_INDENTED and needs_indentation(value, MAX_INDENTATION + INDENTATION_RATIO * size)


def needs_indentation(value: Json, most: int) -> bool:
    """Whether a value indented by two spaces per level has more than `most` spaces of indentation."""
    todo = [(value, 0)] if isinstance(value, (dict, list)) else []
    while todo:
        container, depth = todo.pop()
        most -= 2 * (depth + 1) * len(container) + 2 * depth
        if most < 0:
            return True
        members = container.values() if isinstance(container, dict) else container
        todo += [(member, depth + 1) for member in members if isinstance(member, (dict, list))]
    return False


_token: Final = expression(rb'([{\[])([}\]])?|([}\]])|(,)|(:)|("(?:[^"\\]++|\\.)*+"|[^{}\[\],:"]++)')


def _indent(written: bytes) -> bytes:
    """encoding/json's Indent of compact JSON.

    `{"a":[1,{}]}` consists of the tokens { "a" : [ 1 , {} ] }; an empty container is one token.
    """
    out: list[bytes] = []
    depth = 0
    for token in _token.finditer(written):
        opening, empty, closing, comma, colon, _ = token.groups()
        if opening and empty:
            out.append(token[0])
        elif opening:
            depth += 1
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
    """The value as sigs.k8s.io/yaml writes it: keys sorted, with a line end.

    If it needs too much indentation, it is compact JSON, which is YAML, too.
    """
    written = encode(value, sort_keys=True)
    if _has_too_much_indentation(value, len(written)):
        return written + b"\n"
    return yaml_writer.write(value)


# Objects in requests


def read_object(
    body: bytes, media_type: str, expected: GroupVersionKind, *, strict: bool = True, typed: bool = False
) -> Decoded:
    """Decode the object in a request body; `media_type` is JSON or YAML, `expected` the kind of the URL's resource.

    Raises ApiError: 413 for a body that is too large, 400 for one that is not an object or has no kind. With `typed` (a
    built-in kind), kind and apiVersion may be missing; the value gets them. Whether they are right is not checked here.
    `strict` collects repeated keys, for fieldValidation Strict and Warn.
    """
    check_size(body)
    literal = typed and media_type == JSON and has_minus_zero(body)
    if media_type == JSON and not literal and (value := decode_fast(body)) is not UNCERTAIN and _has_identity(value):
        return Decoded(value)
    try:
        parsed = _parse(body, media_type)
        if typed and media_type == JSON and (literal or parsed.error):
            parsed = _parse_literals(body)  # the fields have types
        elif typed and media_type == YAML and _minus_zero_in_yaml.search(body):
            parsed = parsed._replace(value=decode_literals(body, YAML))
        sent = _identity_of(parsed)
    except ValueError as error:
        raise unrecognized(expected.kind, str(error), body) from None
    sent = with_defaults(sent, expected)
    if parsed.error:
        raise cannot_be_handled(sent, expected.kind, parsed.error)
    value = {} if parsed.value is None else parsed.value
    if not typed and not value.get("kind"):
        if strict:
            raise unrecognized(expected.kind, f"Object 'Kind' is missing in '{string_of(body)}'", body)
        text = encode(parsed.value, sort_keys=True) if media_type == YAML else body.strip(b" \t\r\n")
        raise cannot_be_handled(sent, expected.kind, f"Object 'Kind' is missing in '{string_of(text)}'")
    if typed:
        if not sent.version:
            raise cannot_be_handled(sent, expected.kind, f"Object 'apiVersion' is missing in '{string_of(body)}'")
        value |= {"apiVersion": sent.api_version, "kind": sent.kind}
    return Decoded(value, parsed.duplicates if strict else (), media_type == YAML)


def identify(body: bytes, expected: GroupVersionKind) -> tuple[GroupVersionKind, Json]:
    """(the kind of an object that a webhook sent, the object); what it does not say is taken from `expected`.

    As upstream, a body that does not begin like a JSON object is read as YAML. Raises ValueError, with Go's message
    unless the body is too long to be read in Python.
    """
    if (value := decode_fast(body)) is not UNCERTAIN and _has_identity(value):
        return GroupVersionKind(*parse_api_version(value["apiVersion"]), value["kind"]), value
    if len(body) > _MAX_READ_IN_PYTHON:
        parsed = _parse_quickly(body)
    else:
        parsed = _parse(body, JSON if body.lstrip(b" \t\r\n").startswith(b"{") else YAML)
    sent = with_defaults(_identity_of(parsed), expected)
    if parsed.error:
        raise ValueError(parsed.error)
    return sent, parsed.value


def read_kind(body: bytes, media_type: str, expected: GroupVersionKind) -> tuple[GroupVersionKind, Json]:
    """(the kind of an object in a request body, the value); what the body does not say is taken from `expected`.

    null is an object without fields. The value may be null or have no fields of `expected`; a number that no float64
    holds is null. Raises ValueError with Go's message.
    """
    parsed = _parse(body, media_type)
    return with_defaults(_identity_of(parsed), expected), parsed.value


def unidentified(value: Json, text: Callable[[], str], *, typed: bool) -> str:
    """Why a JSON value is not an object of some kind, "" if it is; `text` gives the value's JSON for the message.

    With `typed` (built-in kinds), kind and apiVersion may be missing.
    """
    if _has_identity(value):
        return ""
    try:
        sent = _identity_of(_Parsed(value, [], list(value.items()) if type(value) is dict else []))
    except ValueError as error:
        return str(error)
    return "" if typed or sent.kind else f"Object 'Kind' is missing in '{text()}'"


_MAX_READ_IN_PYTHON: Final = 64 * 1024  # bytes of a webhook's answer


def decode_answer(body: bytes, *, raw_numbers: bool = False) -> Json:
    """Decode JSON that a webhook sent. Raises ValueError, with Go's message unless it is too long to be read in Python.

    A number that no float64 holds is null, or with `raw_numbers` a RawNumber.
    """
    if len(body) > _MAX_READ_IN_PYTHON:
        try:
            return orjson.loads(body)
        except ValueError as error:
            if "limit" not in str(error):  # of depth, which is a tenth of Go's
                raise
    return go_json.read(body, raw_numbers=raw_numbers).value


def _parse_quickly(body: bytes) -> _Parsed:
    try:
        value = decode_answer(body)
    except ValueError as error:
        raise ValueError(f"{_NO_KIND}: {error}") from None
    return _Parsed(value, (), list(value.items()) if type(value) is dict else [])


def check_size(body: bytes) -> None:
    """Raises ApiError 413 for a body that is too large."""
    if len(body) > MAX_BODY:
        raise too_large(f"limit is {MAX_BODY}")


def cannot_be_handled(sent: GroupVersionKind, kind: str, why: str) -> ApiError:
    """The error for an object of the kind `sent` that cannot be decoded as `kind`; `why` may be the `strict_decoding_error`."""
    text = f"{sent.kind} in version {quote(sent.version)} cannot be handled as a {kind}: {why}"
    return bad_request(text)


def strict_decoding_error(messages: Sequence[str]) -> str:
    """Upstream's message about unknown and repeated fields."""
    return f"strict decoding error: {', '.join(messages)}"


def unrecognized(kind: str, why: str, body: bytes) -> ApiError:
    """The error for a body that does not say what it is, or is no object."""
    return bad_request(f"the object provided is unrecognized (must be of type {kind}): {why} ({_excerpt(body)})")


def _excerpt(body: bytes) -> str:
    """The beginning of a body: text if it may be a JSON object, else hexadecimal."""
    if not body:
        return "<empty>"
    shown = body[:_EXCERPT]
    text = string_of(shown) if body.startswith(b"{") else shown.hex()
    return f"{text} ..." if len(body) > _EXCERPT else text


_EXCERPT: Final = 30


class _Parsed(NamedTuple):
    """`members` are the root's, repetitions included; `error` is about a number that no float64 holds."""

    value: Json
    duplicates: Sequence[str]
    members: Sequence[tuple[str, Json]]
    error: str = ""


def _parse(body: bytes, media_type: str) -> _Parsed:
    try:
        if media_type == YAML:
            value, duplicates, _ = decode_yaml(body)
            return _Parsed(value, duplicates, list(value.items()) if type(value) is dict else [])
        document = go_json.read(body)
    except JsonSyntaxError as error:
        raise ValueError(f"{_NO_KIND}: {error}") from None
    return _Parsed(document.value, duplicate_field_messages(document.duplicates), document.members, document.error)


def _parse_literals(body: bytes) -> _Parsed:
    document = go_json.read(body, literals=True)
    return _Parsed(document.value, duplicate_field_messages(document.duplicates), document.members)


def _has_identity(value: Json) -> bool:
    """Whether a value is an object whose kind and apiVersion are certainly what `_identity_of` would find."""
    if type(value) is not dict:
        return False
    kind, api_version = value.get("kind"), value.get("apiVersion")
    if type(kind) is not str or type(api_version) is not str or not kind:
        return False
    if api_version.count("/") > 1 or api_version.startswith("/") or api_version.endswith("/"):
        return False
    for name in value:
        if len(name) in _IDENTITY_LENGTHS and name not in _COMMON_NAMES and name.casefold() in _IDENTITY:
            return False
    return True


_NO_KIND: Final = "couldn't get version/kind; json parse error"
_TYPE_META: Final = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)
_IDENTITY: Final = {"apiversion": "apiVersion", "kind": "kind"}


def _identity_of(parsed: _Parsed) -> GroupVersionKind:
    """The kind that an object claims. Upstream ignores the case of member names here, and nowhere else."""
    value = parsed.value
    if value is not None and type(value) is not dict:
        raise ValueError(f"{_NO_KIND}: json: cannot unmarshal {json_type(value)} into Go value of type {_TYPE_META}")
    identity = {"apiVersion": "", "kind": ""}
    for name, item in parsed.members:
        field = _IDENTITY.get(name.casefold()) if len(name) in _IDENTITY_LENGTHS else None
        if field is None or item is None:
            continue
        if type(item) is not str:
            why = f"json: cannot unmarshal {json_type(item)} into Go struct field .{field} of type string"
            raise ValueError(f"{_NO_KIND}: {why}")
        identity[field] = item
    return GroupVersionKind(*parse_api_version(identity["apiVersion"]), identity["kind"])


_IDENTITY_LENGTHS: Final = frozenset(map(len, _IDENTITY))
_COMMON_NAMES: Final = frozenset({"apiVersion", "kind", "spec", "data"})


def with_defaults(sent: GroupVersionKind, expected: GroupVersionKind) -> GroupVersionKind:
    """The kind that an object claims, completed by `expected` (upstream's gvkWithDefaults)."""
    group, version, kind = sent
    if not version and group in ("", expected.group):
        group, version = expected.group, expected.version
    return GroupVersionKind(group, version, kind or expected.kind)
