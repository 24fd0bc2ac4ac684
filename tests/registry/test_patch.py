"""Patches applied to objects, and how errors quote the result."""

from __future__ import annotations

import json
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.kinds.core import CONFIG_MAP
from noxu.kinds.meta import SCALE
from noxu.registry.patch import ObjectPatch, read_configuration
from noxu.registry.resource import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH

OLD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "labels": {"b": "1", "a": "2"}}}


def change(media_type: str, body: Any, struct: Any = None, field_validation: str = "Warn") -> ObjectPatch:
    sent = body if isinstance(body, str) else json.dumps(body)
    return ObjectPatch(media_type, sent.encode(), struct, field_validation=field_validation)


CHANGED: list[tuple[str, str, Any, Any]] = [
    ("a JSON patch", JSON_PATCH, [{"op": "add", "path": "/data", "value": {"k": "v"}}], {"data": {"k": "v"}}),
    ("a merge patch", MERGE_PATCH, {"data": {"k": "v", "gone": None}}, {"data": {"k": "v"}}),
    ("a strategic merge patch", STRATEGIC_MERGE_PATCH, {"data": {"k": "v"}}, {"data": {"k": "v"}}),
]


@pytest.mark.parametrize(
    ("media_type", "body", "expected"), [row[1:] for row in CHANGED], ids=[row[0] for row in CHANGED]
)
def test_a_patch_changes_a_copy(media_type: str, body: Any, expected: Any) -> None:
    before = json.dumps(OLD)
    assert change(media_type, body, CONFIG_MAP).apply(OLD).value == OLD | expected
    assert json.dumps(OLD) == before


@pytest.mark.parametrize(
    ("media_type", "body", "expected"), [row[1:] for row in CHANGED], ids=[row[0] for row in CHANGED]
)
def test_a_patch_can_be_applied_again_although_its_first_result_was_changed(
    media_type: str, body: Any, expected: Any
) -> None:
    """A write restarts if another writer was faster."""
    patch = change(media_type, body, CONFIG_MAP)
    patch.apply(OLD).value["data"]["k"] = "another"
    assert patch.text(OLD)
    assert patch.apply(OLD).value == OLD | expected


def test_the_quoted_object_has_its_resource_version_after_the_uid() -> None:
    old = {"kind": "ConfigMap", "metadata": {"name": "c", "uid": "u", "labels": {}, "resourceVersion": "7"}}
    assert '"name":"c","uid":"u","resourceVersion":"7","labels":{}' in change(MERGE_PATCH, {}, CONFIG_MAP).text(old)
    assert '"labels":{},"name":"c","resourceVersion":"7","uid":"u"' in change(MERGE_PATCH, {}).text(old)


CUSTOM = {"apiVersion": "g/v1", "kind": "Thing", "metadata": {"name": "a"}}
SCALE_OBJECT = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {}}
FLOAT64 = "json: cannot unmarshal number {} into Go value of type float64"
BEYOND_FLOAT64: list[tuple[str, str, str, Any, Any, str, str]] = [
    ("in a list of a merge patch", MERGE_PATCH, '{"spec":{"b":2,"a":[1e309]}}', CUSTOM, None, FLOAT64.format("1e309"), '"spec":{"a":[1e309],"b":2}'),
    ("in a JSON patch", JSON_PATCH, '[{"op":"add","path":"/spec","value":{"a":-1e999}}]', CUSTOM, None, FLOAT64.format("-1e999"), '"spec":{"a":-1e999}'),
    ("copied by a JSON patch", JSON_PATCH, '[{"op":"add","path":"/a","value":1e309},{"op":"move","from":"/a","path":"/b"}]', CUSTOM, None, FLOAT64.format("1e309"), '"b":1e309'),
    ("the first of several", MERGE_PATCH, '{"b":2e309,"a":1e309}', CUSTOM, None, FLOAT64.format("1e309"), '"a":1e309,"apiVersion"'),
    ("in the metadata", MERGE_PATCH, '{"metadata":{"generation":1e309}}', CUSTOM, None, FLOAT64.format("1e309"), '"generation":1e309'),
    ("as the kind", MERGE_PATCH, '{"kind":1e309}', CUSTOM, None, "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string", '"kind":1e309'),
    ("in a string of a built-in kind", MERGE_PATCH, '{"data":{"k":1e309}}', OLD, CONFIG_MAP, "json: cannot unmarshal number into Go struct field ConfigMap.data of type string", '"data":{"k":1e309}'),
    ("in an integer of a built-in kind", MERGE_PATCH, '{"spec":{"replicas":1e309}}', SCALE_OBJECT, SCALE, "json: cannot unmarshal number 1e309 into Go struct field ScaleSpec.spec.replicas of type int32", '"replicas":1e309'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("media_type", "body", "old", "struct", "why", "quoted"),
    [row[1:] for row in BEYOND_FLOAT64],
    ids=[row[0] for row in BEYOND_FLOAT64],
)
def test_a_number_that_no_float64_holds_is_refused_if_the_patched_object_has_it(
    media_type: str, body: str, old: Any, struct: Any, why: str, quoted: str
) -> None:
    with pytest.raises(ApiError) as refused:
        change(media_type, body, struct, "Ignore").apply(old)
    [cause] = refused.value.status["details"]["causes"]
    assert refused.value.status["code"] == 422
    assert cause["message"].endswith(f'": {why}')
    assert json.dumps(quoted)[1:-1] in cause["message"]


UNUSED = [
    ("removed again", JSON_PATCH, '[{"op":"add","path":"/a","value":1e309},{"op":"remove","path":"/a"}]', CUSTOM, None),
    ("overwritten", JSON_PATCH, '[{"op":"replace","path":"/kind","value":1e309},{"op":"replace","path":"/kind","value":"Thing"}]', CUSTOM, None),
    ("in an unknown field of an operation", JSON_PATCH, '[{"op":"test","path":"/kind","value":"Thing","x":1e309}]', CUSTOM, None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("media_type", "body", "old", "struct"), [row[1:] for row in UNUSED], ids=[row[0] for row in UNUSED]
)
def test_a_number_that_no_float64_holds_is_ignored_if_the_patched_object_does_not_have_it(
    media_type: str, body: str, old: Any, struct: Any
) -> None:
    assert change(media_type, body, struct, "Ignore").apply(old).value == old


def test_a_patched_object_must_have_a_version_and_a_kind() -> None:
    with pytest.raises(ApiError) as refused:
        change(MERGE_PATCH, {"kind": None}).apply(OLD)
    assert refused.value.status["code"] == 422
    assert "Object 'Kind' is missing in" in refused.value.message


MALFORMED: list[tuple[str, str, str, str]] = [
    ("a JSON patch that is no list", JSON_PATCH, "{}", "cannot unmarshal object"),
    ("a merge patch that is no object", MERGE_PATCH, "[]", "cannot unmarshal array"),
    ("a merge patch that is no JSON", MERGE_PATCH, "{", "invalid JSON patch"),
]


@pytest.mark.parametrize(
    ("media_type", "body", "why"), [row[1:] for row in MALFORMED], ids=[row[0] for row in MALFORMED]
)
def test_malformed_patches_are_bad_requests(media_type: str, body: str, why: str) -> None:
    with pytest.raises(ApiError) as refused:
        change(media_type, body).apply(OLD)
    assert refused.value.status["code"] == 400
    assert why in refused.value.message


REPEATED = '{"data": {"k": "1", "k": "2"}}'


@pytest.mark.parametrize(("validation", "reported"), [("Warn", 1), ("Strict", 1), ("Ignore", 0)])
def test_repeated_keys_are_reported_unless_they_are_ignored(validation: str, reported: int) -> None:
    assert len(change(MERGE_PATCH, REPEATED, field_validation=validation).apply(OLD).duplicates) == reported


# -- how errors quote the result

SENT = {"z": {"y": 1, "x": 2}, "a": 3}
QUOTED: list[tuple[str, str, Any, Any, str]] = [
    # case, media type, patch, table, the quoted data
    ("what a JSON patch brings stays as it was sent", JSON_PATCH,
     [{"op": "add", "path": "/data", "value": SENT}], None, '{"z":{"y":1,"x":2},"a":3}'),
    ("what a later operation goes through is sorted", JSON_PATCH,
     [{"op": "add", "path": "/data", "value": SENT}, {"op": "add", "path": "/data/b", "value": 4}], None,
     '{"a":3,"b":4,"z":{"y":1,"x":2}}'),
    ("what a merge patch brings is sorted", MERGE_PATCH, {"data": SENT}, None, '{"a":3,"z":{"x":2,"y":1}}'),
    ("in lists, too", MERGE_PATCH, {"data": [SENT]}, None, '[{"a":3,"z":{"x":2,"y":1}}]'),
    ("of built-in kinds likewise", MERGE_PATCH, {"data": [SENT]}, CONFIG_MAP, '[{"a":3,"z":{"x":2,"y":1}}]'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("media_type", "body", "struct", "expected"), [row[1:] for row in QUOTED], ids=[row[0] for row in QUOTED]
)
def test_errors_quote_the_patched_object(media_type: str, body: Any, struct: Any, expected: str) -> None:
    text = change(media_type, body, struct).text(OLD)
    assert f'"data":{expected}' in text


def test_custom_resources_are_quoted_with_sorted_keys_and_built_in_kinds_unchanged() -> None:
    patch: Any = [{"op": "add", "path": "/data", "value": {}}]
    assert '"labels":{"a":"2","b":"1"},"name":"c"' in change(JSON_PATCH, patch).text(OLD)
    assert '"name":"c","labels":{"b":"1","a":"2"}' in change(JSON_PATCH, patch, CONFIG_MAP).text(OLD)


def test_of_a_strategic_merge_patch_the_patch_itself_is_quoted() -> None:
    assert change(STRATEGIC_MERGE_PATCH, {"data": {"k": 1}}, CONFIG_MAP).text(OLD) == "map[data:map[k:1]]"


# -- configurations


def test_configurations_are_yaml() -> None:
    assert read_configuration(b"a: 1\nb: [x]\n").value == {"a": 1, "b": ["x"]}


def test_repeated_keys_of_a_configuration_are_kept_until_it_is_applied() -> None:
    assert read_configuration(b"a: 1\na: 2\n").duplicates
