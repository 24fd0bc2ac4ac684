"""Masks what is secret in what is recorded: the data of Secrets, tokens, credentials.

    {"kind": "Secret", "data": {"password": "aHVudGVyMg=="}}   ->   {"kind": "Secret", "data": {"password": "bWFza2Vk"}}

A masked value is still one that a server accepts (base64 of `masked`), so that a recording can be replayed. Names of keys stay.
What a custom resource has of secrets is not known, and stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from noxu.values import Json

MASKED: Final = "masked"
MASKED_BASE64: Final = "bWFza2Vk"
_OF_SECRETS: Final[Mapping[str, str]] = {"data": MASKED_BASE64, "stringData": MASKED}
"""The fields with the values of a Secret, and what their values become."""
_WITH_TOKENS: Final = frozenset({"TokenRequest", "TokenReview"})
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
SECRETS: Final = "secrets"
"""The plural, whose requests and objects are about Secrets even where no kind says so: patches, items of lists."""


def masked(value: Json, *, is_secret: bool = False) -> Json:
    """A value without its secrets: the same one if it has none. `is_secret`: it is, or is about, a Secret."""
    if isinstance(value, list):
        return [_masked_operation(item) if is_secret else masked(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("kind")
    is_secret = is_secret or kind in ("Secret", "SecretList")
    if kind in _WITH_TOKENS:
        return {name: _without_token(item) for name, item in value.items()}
    return {name: _field(name, item, is_secret=is_secret) for name, item in value.items()}


def _field(name: str, value: Json, *, is_secret: bool) -> Json:
    if not is_secret:
        return masked(value)
    if name == LAST_APPLIED:  # the whole object once more, as text
        return MASKED
    if name in _OF_SECRETS and isinstance(value, dict):
        return {key: None if item is None else _OF_SECRETS[name] for key, item in value.items()}
    return masked(value, is_secret=True)


def _masked_operation(item: Json) -> Json:
    """An operation of a JSON patch of a Secret, or an item of a list in one."""
    if not isinstance(item, dict) or "op" not in item or not isinstance(path := item.get("path"), str):
        return masked(item, is_secret=True)
    _, _, field = path.partition("/")
    name, _, key = field.partition("/")
    annotation = LAST_APPLIED.replace("/", "~1")
    if "value" not in item:
        return item
    if name in _OF_SECRETS and key:
        return {**item, "value": _OF_SECRETS[name]}
    if path.endswith(annotation):
        return {**item, "value": MASKED}
    return {**item, "value": _field(name, item["value"], is_secret=True)}


def _without_token(value: Json) -> Json:
    """`spec` or `status` of a request for a token, or of its review."""
    if not isinstance(value, dict) or "token" not in value:
        return value
    return {**value, "token": MASKED}
