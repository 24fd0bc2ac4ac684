"""The values in Secrets are not shown; everything else is."""

from __future__ import annotations

from typing import Any

from noxu.apply.merging import ANNOTATION as NOTE
from noxu.control.masked import masked
from noxu.values import Object
from tests.rows import rows


def secret(**fields: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, **fields}


@rows(
    "value, shown",
    [
        (secret(data={"k": "c2VjcmV0"}), secret(data={"k": "(8 characters, masked)"})),
        (secret(stringData={"k": "secret"}), secret(stringData={"k": "(6 characters, masked)"})),
        (
            secret(metadata={"annotations": {NOTE: "{}", "a": "b"}}),
            secret(metadata={"annotations": {NOTE: "(2 characters, masked)", "a": "b"}}),
        ),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}},
            {"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}},
        ),
        (
            {"apiVersion": "example.com/v1", "kind": "Secret", "data": {"k": "v"}},
            {"apiVersion": "example.com/v1", "kind": "Secret", "data": {"k": "v"}},
        ),
    ],
)
def test_what_is_secret_is_masked(value: Object, shown: Object) -> None:
    assert masked(value) == shown


def test_a_secret_itself_is_left_as_it_is() -> None:
    value = secret(data={"k": "v"})
    masked(value)
    assert value == secret(data={"k": "v"})
