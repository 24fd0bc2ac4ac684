"""Patches and apply configurations in request bodies: decoded, checked, and with upstream's refusals.

Reading a JSON or merge patch has two halves, as upstream: `read_patch` parses the body before the object is looked up;
`json_patch` and `merge_patch` check it afterwards.

`difference` is the difference of two JSON values as a JSON patch (RFC 6902), for people to read. Items of lists are compared
by position, after equal ones at both ends have been set aside. Nothing recurses: clients choose the depth of values.

    old    {"a": [1, 2, 3], "b": "x"}
    new    {"a": [1, 3], "c": "y"}
    patch  remove /b, add /c "y", remove /a/1
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Final, NamedTuple

from noxu.api.codec import (
    UNCERTAIN,
    Decoded,
    check_size,
    decode_fast,
    decode_yaml,
    duplicate_field_messages,
)
from noxu.api.errors import ApiError, bad_request, too_large
from noxu.go import json as go_json
from noxu.go.json import JsonSyntaxError, OverriddenKey
from noxu.go.structs import JSON as JSON_VALUE
from noxu.go.structs import STRING, Field, List, Mismatch, Scalar, Struct, decode, json_type
from noxu.go.text import quote
from noxu.values import Json, Object, equal

MAX_JSON_PATCH_OPERATIONS: Final = 10_000


class PatchBody(NamedTuple):
    """A parsed JSON body. `error` is about a number that no float64 holds, which is a RawNumber.

    `duplicates` are the paths of repeated keys.

    With `duplicates`, a JSON patch has OverriddenKeys (`go.json`): upstream's library copies values as they are written.
    """

    value: Json
    error: str
    duplicates: Sequence[str]


class Patch(NamedTuple):
    """A patch that can be applied, and the errors of strict decoding (unknown and repeated fields)."""

    value: Json
    strict: Sequence[str]


def read_patch(body: bytes, *, strict: bool = True, keep_repetitions: bool = False) -> PatchBody:
    """Parse the body of a JSON or merge patch; the repetitions are kept for a JSON patch. Raises ApiError.

    Numbers that no float64 holds are RawNumbers. With fieldValidation=Ignore (not `strict`) they are no errors of the patch:
    only the patched object is decoded, in which they may not occur.
    """
    check_size(body)
    value = decode_fast(body)
    if value is not UNCERTAIN:
        return PatchBody(value, "", ())
    try:
        document = go_json.read(body, raw_numbers=True, keep_repetitions=strict and keep_repetitions)
    except JsonSyntaxError:
        raise bad_request("invalid JSON patch") from None
    return PatchBody(document.value, document.error, document.duplicates)


def _any(value: Json) -> Json:
    """A value of any type. Raises Mismatch for the first number in it that no float64 holds."""
    number = go_json.first_raw_number(value)
    if number is not None:
        raise Mismatch(f"number {number.literal}", "float64")
    return value


_JSON_PATCH_OP: Final = Struct("jsonPatchOp", package="handlers").define(
    Field("op", STRING), Field("path", STRING), Field("from", STRING), Field("value", Scalar(JSON_VALUE.go, _any, None))
)


def json_patch(patch: PatchBody, *, strict: bool) -> Patch:
    """The operations of a JSON patch, unchanged. Raises ApiError.

    Without `strict` (fieldValidation=Ignore) operations are only required to be objects.
    """
    operations = [] if patch.value is None else patch.value
    if patch.duplicates and type(operations) is list:
        operations = [_without_overridden(operation) for operation in operations]
    strict_errors: list[str] = []
    if strict and not (_are_plain(operations) and not patch.error and not patch.duplicates):
        decoded = decode(List(_JSON_PATCH_OP), operations)
        if decoded.error:
            raise bad_request(f"error decoding patch: {decoded.error}")
        repeated = [path for path in patch.duplicates if _operation_field(path) in _JSON_PATCH_OP.fields]
        strict_errors = [f"json patch {message}" for message in duplicate_field_messages(repeated)]
        strict_errors += [f"json patch unknown field {quote(path)}" for path in decoded.unknown]
    elif type(operations) is not list:  # plain ones are a list of objects
        raise bad_request(_no_go_value(operations, "jsonpatch.Patch"))
    for operation in operations:
        if operation is not None and type(operation) is not dict:
            raise bad_request(_no_go_value(operation, "jsonpatch.Operation"))
    if len(operations) > MAX_JSON_PATCH_OPERATIONS:
        limit = f"is {MAX_JSON_PATCH_OPERATIONS}, got {len(operations)}"
        raise too_large(f"The allowed maximum operations in a JSON patch {limit}")
    return Patch([operation or {} for operation in operations], strict_errors)


def _without_overridden(operation: Json) -> Json:
    """The operation with the last of several equal keys. Those within its value are kept."""
    if type(operation) is not dict:
        return operation
    return {name: item for name, item in operation.items() if type(name) is not OverriddenKey}


def _are_plain(operations: Json) -> bool:
    """The fast path of decoding operations: whether each is an object of known fields, with texts besides its value."""
    if type(operations) is not list:
        return False
    for operation in operations:
        if type(operation) is not dict:
            return False
        for name, item in operation.items():
            if name != "value" and (name not in _JSON_PATCH_OP.fields or type(item) is not str):
                return False
    return True


def merge_patch(patch: PatchBody, *, strict: bool) -> Patch:
    """A merge patch: an object, or without `strict` also a list. Raises ApiError."""
    if strict and (patch.error or type(patch.value) not in (dict, NoneType)):
        raise bad_request(f"error decoding patch: {patch.error or _no_go_value(patch.value, _GO_MAP)}")
    if type(patch.value) not in (dict, list):
        raise bad_request("Invalid JSON Patch")
    return Patch(patch.value, duplicate_field_messages(patch.duplicates) if strict else ())


def read_apply(body: bytes) -> Decoded:
    """The body of a server-side apply, an object in YAML or JSON; null is an empty object. Raises ApiError."""
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


def refuse_repeated_keys(complaints: Sequence[str]) -> ApiError:
    """The error of fieldValidation=Strict for an apply configuration with these `Decoded.strict`."""
    return bad_request(f"error strict decoding patch: error converting YAML to JSON: {complaints[0]}")


_GO_MAP: Final = "map[string]interface {}"
_NO_OBJECT: Final = "error unmarshaling JSON: while decoding JSON"


def _no_go_value(value: Json, go: str) -> str:
    return f"json: cannot unmarshal {json_type(value)} into Go value of type {go}"


def _operation_field(path: str) -> str:
    """The field of an operation that a path leads into: `value` for `[0].value.a`."""
    return path.partition(".")[2].partition(".")[0].partition("[")[0]


def pointer(above: str, step: str | int) -> str:
    """The JSON pointer (RFC 6901) of a member or an item."""
    return f"{above}/{step}" if isinstance(step, int) else f"{above}/{step.replace('~', '~0').replace('/', '~1')}"


def steps(path: str) -> list[str]:
    """The member names and positions of a JSON pointer."""
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def field_path(steps: Sequence[str]) -> str:
    """The steps of a JSON pointer as a field path: `spec.ports[0].name`."""
    path = ""
    for step in steps:
        path += f"[{step}]" if step.isdigit() else f".{step}" if path else step
    return path


def difference(old: Json, new: Json, path: str = "") -> list[Object]:
    """A JSON patch of add, remove and replace operations that changes `old` to `new`."""
    patch: list[Object] = []
    todo = [(path, old, new)]
    while todo:
        where, before, after = todo.pop()
        if isinstance(before, dict) and isinstance(after, dict):
            todo += _members(where, before, after, patch)
        elif isinstance(before, list) and isinstance(after, list):
            todo += _items(where, before, after, patch)
        elif not equal(before, after):
            patch.append({"op": "replace", "path": where, "value": after})
    return patch


def _members(where: str, before: Object, after: Object, patch: list[Object]) -> list[tuple[str, Json, Json]]:
    """The members of both; those of one side only are added to the patch."""
    patch += [{"op": "remove", "path": pointer(where, name)} for name in before if name not in after]
    both = []
    for name, value in after.items():
        if name in before:
            both.append((pointer(where, name), before[name], value))
        else:
            patch.append({"op": "add", "path": pointer(where, name), "value": value})
    return both[::-1]


def _items(where: str, before: list[Json], after: list[Json], patch: list[Object]) -> list[tuple[str, Json, Json]]:
    """The items at equal positions that may differ; surplus items of one side are added to the patch.

    [1, 2, 3] and [1, 3]: one equal item at the start, one at the end; of the middles [2] and [] nothing is common, so 2
    is removed. Removals go backwards, so that they do not move the positions of those that follow.
    """
    shorter = min(len(before), len(after))
    start = 0
    while start < shorter and equal(before[start], after[start]):
        start += 1
    end = 0
    while end < shorter - start and equal(before[-1 - end], after[-1 - end]):
        end += 1
    middle = shorter - end
    removed, added = reversed(range(middle, len(before) - end)), range(middle, len(after) - end)
    patch += [{"op": "remove", "path": pointer(where, n)} for n in removed]
    patch += [{"op": "add", "path": pointer(where, n), "value": after[n]} for n in added]
    return [(pointer(where, n), before[n], after[n]) for n in reversed(range(start, middle))]
