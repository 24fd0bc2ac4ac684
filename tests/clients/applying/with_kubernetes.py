"""Server-side apply with the dynamic client of `kubernetes`."""

from __future__ import annotations

import sys
from typing import Any

from kubernetes import config, dynamic
from kubernetes.dynamic.exceptions import ConflictError


def conflict(call: Any, *arguments: Any) -> str:
    """The message of the conflict, or an empty string if the call succeeds."""
    try:
        call(*arguments)
    except ConflictError as error:
        return str(error.body)
    return ""


def owners(applied: Any) -> list[str]:
    return sorted(f"{entry.operation} {entry.manager}" for entry in applied.metadata.managedFields)


def custom_resources(client: Any, namespace: str) -> None:
    widgets = client.resources.get(api_version="example.com/v1", kind="Widget")

    def apply(spec: dict[str, Any], manager: str, **options: Any) -> Any:
        body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec}
        return widgets.server_side_apply(body=body, namespace=namespace, field_manager=manager, **options)

    assert owners(apply({"size": 1, "colour": "red"}, "one")) == ["Apply one"]
    assert 'conflict with \\"one\\": .spec.size' in conflict(apply, {"size": 2}, "two")
    assert owners(apply({"size": 2}, "two", force_conflicts=True)) == ["Apply one", "Apply two"]
    assert apply({"size": 2}, "one").spec.to_dict() == {"size": 2}


def built_in_kinds(client: Any, namespace: str) -> None:
    maps = client.resources.get(api_version="v1", kind="ConfigMap")
    for manager, data in {"one": {"a": "1"}, "two": {"b": "2"}}.items():
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}
        applied = maps.server_side_apply(body=body, namespace=namespace, field_manager=manager)
    assert applied.data.to_dict() == {"a": "1", "b": "2"}


if __name__ == "__main__":
    client = dynamic.DynamicClient(config.new_client_from_config(sys.argv[1]))
    custom_resources(client, sys.argv[2])
    built_in_kinds(client, sys.argv[2])
