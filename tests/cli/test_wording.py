"""Messages in plain words: which field they are about, and nothing of Go."""

from __future__ import annotations

import pytest

from noxu.apiserver.commands.wording import Said, plain

MESSAGES: list[tuple[str, list[Said]]] = [
    ("name or generateName is required", [Said("name or generateName is required")]),
    ('ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string', [Said("must be a string, not a number", "data")]),
    ("json: cannot unmarshal string into Go struct field Pod.spec.containers of type []v1.Container", [Said("must be a list, not a string", "spec.containers")]),
    ("json: cannot unmarshal array into Go struct field Deployment.spec.template of type v1.PodTemplateSpec", [Said("must not be a list", "spec.template")]),
    ("json: cannot unmarshal string into Go struct field Deployment.spec.template of type v1.PodTemplateSpec", [Said("must be an object, not a string", "spec.template")]),
    ("json: cannot unmarshal bool into Go struct field Deployment.spec.replicas of type int32", [Said("must be an integer, not a boolean", "spec.replicas")]),
    ("json: cannot unmarshal number 1.5 into Go struct field Deployment.spec.replicas of type int32", [Said("must be an integer, not number 1.5", "spec.replicas")]),
    ("json: cannot unmarshal object into Go value of type string", [Said("must be a string, not an object")]),
    ("json: cannot unmarshal number into Go value of type v1.ObjectMeta", [Said("must be an object, not a number", "metadata")]),
    ("yaml: line 3: did not find expected key", [Said("not valid YAML: did not find expected key")]),
    ("yaml: unknown anchor 'a' referenced", [Said("not valid YAML: unknown anchor 'a' referenced")]),
    ("unexpected end of JSON input", [Said("not valid JSON: unexpected end of JSON input")]),
    ("invalid character '}' after object key", [Said("not valid JSON: invalid character '}' after object key")]),
    ('unknown field "spec.a"', [Said("unknown field", "spec.a")]),
    ('duplicate field "spec.a"', [Said("the key is repeated; its last value counts", "spec.a")]),
    ('line 6: key "size" already set in map', [Said('the key "size" is repeated; its last value counts', line=6)]),
    ('Widget in version "v1" cannot be handled as a Widget: strict decoding error: yaml: unmarshal errors:\n  line 6: key "size" already set in map\n  line 7: key "a" already set in map, unknown field "spec.b"', [Said('the key "size" is repeated; its last value counts', line=6), Said('the key "a" is repeated; its last value counts', line=7), Said("unknown field", "spec.b")]),
    ("value: <nil> is not allowed", [Said("value: null is not allowed")]),
]  # fmt: skip


@pytest.mark.parametrize(("message", "said"), MESSAGES, ids=[row[0][:60] for row in MESSAGES])
def test_a_message_in_plain_words(message: str, said: list[Said]) -> None:
    assert plain(message) == said
