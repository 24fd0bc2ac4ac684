"""Masks what is secret in what is recorded: the data of Secrets, tokens, credentials.

    {"kind": "Secret", "data": {"password": "aHVudGVyMg=="}}   ->   {"kind": "Secret", "data": {"password": "bWFza2Vk"}}

A masked value is still one that a server accepts (base64 of `masked`), so that a recording can be replayed. Names of keys stay.
What a custom resource has of secrets is not known, and stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from noxu.apply.merging import ANNOTATION
from noxu.values import Json, Object

MASKED: Final = "masked"
MASKED_BASE64: Final = "bWFza2Vk"
_OF_SECRETS: Final[Mapping[str, str]] = {"data": MASKED_BASE64, "stringData": MASKED}
"""The fields with the values of a Secret, and what their values become."""
_OF_JSON: Final[Mapping[str, str]] = {"data": "e30=", "stringData": "{}"}
"""What those become that have to be JSON objects: the keys of types for registries of images."""
_JSON_KEYS: Final = (".dockercfg", ".dockerconfigjson")
_WITH_TOKENS: Final = frozenset({"TokenRequest", "TokenReview"})
_OF_PLURALS: Final[Mapping[str, str]] = {"secrets": "Secret", "tokenreviews": "TokenReview"}
"""What requests about a resource have where no kind says it: patches, items of lists, bodies without a kind."""


def is_secret(resource: str) -> bool:
    """Whether what is sent to a resource has secrets: `secrets`, `tokenreviews.authentication.k8s.io`."""
    return _kind_of(resource) != ""


def _kind_of(resource: str) -> str:
    return _OF_PLURALS.get(resource.partition(".")[0], "")


def masked(value: Json, *, resource: str = "") -> Json:
    """A value without its secrets: the same one if it has none. `resource`: what it is about, where it does not say so."""
    kind = _kind_of(resource)
    if kind in _WITH_TOKENS and isinstance(value, dict):
        return _without_tokens(value)
    return _masked(value, is_secret=kind != "")


def _masked(value: Json, *, is_secret: bool = False) -> Json:
    """`is_secret`: it is, or is about, a Secret."""
    if isinstance(value, list):
        return [_masked_operation(item) if is_secret else _masked(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("kind")
    is_secret = is_secret or kind in ("Secret", "SecretList")
    if kind in _WITH_TOKENS:
        return _without_tokens(value)
    return {name: _field(name, item, is_secret=is_secret) for name, item in value.items()}


def _field(name: str, value: Json, *, is_secret: bool) -> Json:
    if not is_secret:
        return _masked(value)
    if name == ANNOTATION:  # the whole object once more, as text
        return MASKED
    if name in _OF_SECRETS and isinstance(value, dict):
        return {key: None if item is None else _mask(name, key) for key, item in value.items()}
    return _masked(value, is_secret=True)


def _mask(field: str, key: str) -> str:
    return (_OF_JSON if key in _JSON_KEYS else _OF_SECRETS)[field]


def _masked_operation(item: Json) -> Json:
    """An operation of a JSON patch of a Secret, or an item of a list in one."""
    if not isinstance(item, dict) or "op" not in item or not isinstance(path := item.get("path"), str):
        return _masked(item, is_secret=True)
    _, _, field = path.partition("/")
    name, _, key = field.partition("/")
    annotation = ANNOTATION.replace("/", "~1")
    if "value" not in item:
        return item
    if name in _OF_SECRETS and key:
        return {**item, "value": _mask(name, key)}
    if path.endswith(annotation):
        return {**item, "value": MASKED}
    return {**item, "value": _field(name, item["value"], is_secret=True)}


def _without_tokens(value: Object) -> Object:
    """A request for a token, or its review."""
    return {name: _without_token(item) for name, item in value.items()}


def _without_token(value: Json) -> Json:
    """Its `spec` or `status`."""
    if not isinstance(value, dict) or "token" not in value:
        return value
    return {**value, "token": MASKED}
