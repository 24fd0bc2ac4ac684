"""The kind of these tests: Widgets with a size, a rule, a status and columns."""

from __future__ import annotations

from typing import Final

from noxu.values import Object
from tests.definitions import version, widgets

SCHEMA: Final[Object] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "minimum": 1, "default": 1},
                "limit": {"type": "integer"},
            },
            "x-kubernetes-validations": [
                {"rule": "!has(self.limit) || self.size <= self.limit", "message": "size exceeds the limit"}
            ],
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
WIDGETS: Final[Object] = widgets(
    {
        **version(SCHEMA),
        "subresources": {"status": {}},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
    }
)
PATH: Final = "/apis/example.com/v1/namespaces/default/widgets"


def widget(name: str, **spec: object) -> Object:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}
