"""What the taught controllers have in common: the keys of owners, and the paths of what they write."""

from __future__ import annotations

from typing import Any

from tests.exploration.taught.kit import Client, Name, owner

WIDGETS = "/apis/example.com/v1/widgets"
CONFIGS = "/api/v1/configmaps"
SECRETS = "/api/v1/secrets"


def configs(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps" + (f"/{name}" if name else "")


def widget_path(widget: Any, part: str = "") -> str:
    metadata = widget["metadata"]
    return f"/apis/example.com/v1/namespaces/{metadata['namespace']}/widgets/{metadata['name']}{part}"


def of_owner(item: Any) -> list[Name]:
    """The Widgets that own an object."""
    return [
        (item["metadata"].get("namespace", ""), reference["name"])
        for reference in item["metadata"].get("ownerReferences") or ()
        if reference["kind"] == "Widget"
    ]


def of_label(item: Any) -> list[Name]:
    """The Widget that an object names in a label: what is not collected with its owner."""
    name = (item["metadata"].get("labels") or {}).get("widget")
    return [(item["metadata"].get("namespace", ""), name)] if name else []


def config(widget: Any, name: str = "", **data: str) -> dict[str, Any]:
    """A ConfigMap that is owned by the Widget."""
    metadata = {"name": name or widget["metadata"]["name"], "ownerReferences": [owner(widget)]}
    return {"metadata": metadata, "data": data}


def report(client: Client, widget: Any, **status: Any) -> None:
    """Write the status, if it is another one."""
    if widget.get("status") != status:
        client.patch(widget_path(widget, "/status"), {"status": status})


def is_deleting(value: Any) -> bool:
    return bool(value["metadata"].get("deletionTimestamp"))


def bug(arguments: list[str]) -> str:
    """The bug that is asked for: `--bug` or `--bug=NAME`; "" for the twin without one."""
    for argument in arguments:
        if argument.startswith("--bug"):
            return argument.partition("=")[2] or "bug"
    return ""
