"""A definition of Widgets, for tests that need a kind of their own and vary its schema at most."""

from __future__ import annotations

from noxu.values import Object


def version(schema: Object | None = None) -> Object:
    """v1, the storage version. Its objects may be anything, unless there is a schema."""
    return {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema or {"type": "object"}}}


def widgets(*versions: Object, group: str = "example.com", scope: str = "Namespaced") -> Object:
    """A definition of Widgets, with `version()` unless others are given."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": list(versions or [version()]),
        },
    }
