"""JSON patches, merge patches and apply configurations in request bodies, and how malformed ones are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noxu.api import codec, json_patches
from noxu.api.codec import MAX_BODY
from noxu.api.errors import ApiError
from noxu.api.json_patches import json_patch, merge_patch, read_apply, read_patch, refuse_repeated_keys
from noxu.values import Json
from tests.rows import rows

PATCHES_REFUSED = [
    ("no JSON", "json", b"{", True, 400, "invalid JSON patch"),
    ("something after it", "merge", b"{} x", True, 400, "invalid JSON patch"),
    ("an object", "json", b"{}", True, 400, "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
    ("an object, without validation", "json", b"{}", False, 400, "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
    ("a list of numbers", "json", b"[1]", True, 400, "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
    ("a list of numbers, without validation", "json", b"[1]", False, 400, "json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
    ("a name of a wrong type", "json", b'[{"op":1}]', True, 400, "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"),
    ("a number that does not fit", "json", b'[{"op":"add","path":"/x","value":1e400}]', True, 400,
     "error decoding patch: json: cannot unmarshal number 1e400 into Go struct field jsonPatchOp.value of type float64"),
    ("too many operations", "json", b"[" + b"{}," * 10_000 + b"{}]", True, 413,
     "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"),
    ("a list", "merge", b"[]", True, 400, "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ("a text", "merge", b'"x"', True, 400, "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}"),
    ("a text, without validation", "merge", b'"x"', False, 400, "Invalid JSON Patch"),
    ("null", "merge", b"null", True, 400, "Invalid JSON Patch"),
    ("a number that does not fit in a merge", "merge", b'{"a":1e400}', True, 400,
     "error decoding patch: json: cannot unmarshal number 1e400 into Go value of type float64"),
]  # fmt: skip


@rows(
    ("form", "body", "strict", "code", "message"),
    [row[1:] for row in PATCHES_REFUSED],
    ids=[row[0] for row in PATCHES_REFUSED],
)
def test_malformed_patches_are_refused(form: str, body: bytes, strict: bool, code: int, message: str) -> None:
    with pytest.raises(ApiError) as raised:
        (json_patch if form == "json" else merge_patch)(read_patch(body), strict=strict)
    assert (raised.value.code, raised.value.message) == (code, message)


@rows(
    ("body", "operations", "strict_errors"),
    [
        (b"null", [], []),
        (b" [ ] ", [], []),
        (b"[null]", [{}], []),
        (b'[{"op":null}]', [{"op": None}], []),
        (b'[{"op":"test","path":"/a","value":1.0}]', [{"op": "test", "path": "/a", "value": 1.0}], []),
        (b'[{"op":"test","foo":1}]', [{"op": "test", "foo": 1}], ['json patch unknown field "[0].foo"']),
        (b'[{"op":"a","op":"b"}]', [{"op": "b"}], ['json patch duplicate field "[0].op"']),
        (b'[{},{"value":{"a":1,"a":2}}]', [{}, {"value": {"a": 2}}], ['json patch duplicate field "[1].value.a"']),
        (b'[{"x":{"a":1,"a":2}}]', [{"x": {"a": 2}}], ['json patch unknown field "[0].x"']),
    ],
)
def test_a_json_patch_is_decoded(body: bytes, operations: Json, strict_errors: list[str]) -> None:
    patch = read_patch(body)
    assert json_patch(patch, strict=True) == (operations, strict_errors)
    assert json_patch(patch, strict=False) == (operations, [])


VALUES = st.sampled_from(["a", "/a", 1, None, True, {"op": 1}, []])
OPERATIONS = st.lists(
    st.dictionaries(st.sampled_from(["op", "path", "from", "value", "Op", "x"]), VALUES) | VALUES, max_size=2
)


@given(OPERATIONS | VALUES)
def test_plain_operations_are_decoded_like_others(operations: Json) -> None:
    """The fast path, which looks at nothing but names and types, makes no difference."""

    def outcome() -> object:
        try:
            return json_patch(read_patch(codec.encode(operations, sort_keys=False)), strict=True)
        except ApiError as error:
            return error.message

    fast = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_patches, "_are_plain", lambda operations: False)
        assert outcome() == fast


def test_a_merge_patch_is_decoded() -> None:
    patch = read_patch(b'{"spec":{"a":1,"a":null}}')
    assert merge_patch(patch, strict=True) == ({"spec": {"a": None}}, ['duplicate field "spec.a"'])
    assert merge_patch(patch, strict=False) == ({"spec": {"a": None}}, ())
    assert merge_patch(read_patch(b"[1]"), strict=False).value == [1]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"a: [", "error encoding patch: yaml: line 1: did not find expected node content"),
        (b" {", "error decoding patch: error converting YAML to JSON: yaml: line 1: did not find expected node content"),
        (b"a: .nan", "error encoding patch: json: unsupported value: NaN"),
        (b"[]", "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (b"x", "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go value of type map[string]interface {}"),
        (b"- " * 9_000 + b"[" * 1_001 + b"]" * 1_001, "error decoding patch: error unmarshaling JSON: while decoding JSON: invalid character '[' exceeded max depth"),
    ],
)  # fmt: skip
def test_malformed_apply_configurations_are_refused(body: bytes, message: str) -> None:
    with pytest.raises(ApiError) as raised:
        read_apply(body)
    assert (raised.value.code, raised.value.message) == (400, message)


def test_an_apply_configuration_is_an_object() -> None:
    assert read_apply(b"a: 1\nb: y").value == {"a": 1, "b": True}
    assert read_apply(b'{"a":{"b":1}}').value == {"a": {"b": 1}}
    assert read_apply(b"").value == read_apply(b"null").value == {}


def test_repeated_keys_in_an_apply_configuration_have_an_error_of_their_own() -> None:
    applied = read_apply(b"a: 1\na: 2\n")
    assert list(applied.duplicates) == ['line 2: key "a" already set in map']
    assert refuse_repeated_keys(applied.strict).message == (
        "error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:\n"
        '  line 2: key "a" already set in map'
    )


@pytest.mark.parametrize("read", [read_patch, read_apply])
def test_patches_have_the_same_limit_as_objects(read: object) -> None:
    with pytest.raises(ApiError, match="limit is 3145728"):
        read(b" " * (MAX_BODY + 1))  # type: ignore[operator]
