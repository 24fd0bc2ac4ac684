"""CRDs to start from, and fixtures for the messages about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from noxu.api.field import FieldError
from noxu.crd import types, update, validation
from noxu.crd.schemas import RuleCheckers
from noxu.crd.types import default
from noxu.values import Object

Build = Callable[..., Object]


@pytest.fixture
def build() -> Build:
    """A CRD as JSON: `schema` is v1's, `version` replaces fields of v1, anything else fields of the spec."""

    def crd(schema: Object | None = None, *, version: Object | None = None, **spec: Any) -> Object:
        holder = {"openAPIV3Schema": {"type": "object"} if schema is None else schema}
        only = {"name": "v1", "served": True, "storage": True, "schema": holder, **(version or {})}
        names = {"plural": "foos", "kind": "Foo"}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"foos.{spec.get('group', 'example.com')}"},
            "spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": [only], **spec},
        }

    return crd


@pytest.fixture
def stored() -> Callable[[Object], Object]:
    """A CRD as it lies in storage, whether it is valid or not."""

    def decoded(crd: Object) -> Object:
        found = types.decode(crd)
        assert not found.error
        value = update.prepare_for_create(default(found.value))
        return {**value, "metadata": {**value["metadata"], "uid": "u", "resourceVersion": "1"}}

    return decoded


@pytest.fixture
def establish() -> Callable[[Object], Object]:
    def established(crd: Object) -> Object:
        condition = {"type": "Established", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        return {**crd, "status": {**crd["status"], "conditions": [condition]}}

    return established


@pytest.fixture
def messages() -> Callable[..., list[str]]:
    """What creating a CRD (as JSON) is answered with."""

    def texts(crd: Object, checkers: RuleCheckers | None = None) -> list[str]:
        found = types.decode(crd)
        assert not found.error, found.error
        errors: list[FieldError] = validation.validate(
            update.prepare_for_create(default(found.value)), checkers=checkers
        )
        return [str(error) for error in errors]

    return texts


@pytest.fixture
def update_messages(stored: Callable[[Object], Object]) -> Callable[..., list[str]]:
    """What replacing the stored CRD `old` by `new` (as JSON) is answered with."""

    def texts(new: Object, old: Object) -> list[str]:
        found = types.decode(new)
        assert not found.error, found.error
        value = default(found.value)
        kept = {name: old["metadata"][name] for name in ("name", "uid", "resourceVersion")}
        value = {**value, "metadata": {**kept, **value["metadata"]}}
        return [str(error) for error in validation.validate_update(update.prepare_for_update(value, old), old)]

    return texts
