"""Server-side apply with `lightkube`."""

from __future__ import annotations

import sys
from typing import Any

import lightkube
from lightkube.core.exceptions import ApiError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap

Widget = create_namespaced_resource("example.com", "v1", "Widget", "widgets")


def widget(**spec: Any) -> Any:
    return Widget(apiVersion="example.com/v1", kind="Widget", metadata=ObjectMeta(name="a"), spec=spec)


def conflict(call: Any, *arguments: Any, **options: Any) -> str:
    """The message of the conflict, or an empty string if the call succeeds."""
    try:
        call(*arguments, **options)
    except ApiError as error:
        return str(error)
    return ""


def owners(applied: Any) -> list[str]:
    return sorted(f"{entry.operation} {entry.manager}" for entry in applied.metadata.managedFields)


def custom_resources(client: Any) -> None:
    created = client.apply(widget(size=1, colour="red"))
    assert owners(created) == ["Apply me"]
    assert client.apply(widget(size=1, colour="red")).metadata.resourceVersion == created.metadata.resourceVersion
    assert 'conflict with "me": .spec.size' in conflict(client.apply, widget(size=2), field_manager="other")
    forced = client.apply(widget(size=2), field_manager="other", force=True)
    assert forced.spec == {"size": 2, "colour": "red"}
    assert owners(forced) == ["Apply me", "Apply other"]
    assert client.apply(widget(size=2)).spec == {"size": 2}
    status = Widget.Status(
        apiVersion="example.com/v1", kind="Widget", metadata=ObjectMeta(name="a"), status={"size": 2}
    )
    assert client.apply(status).status == {"size": 2}


def built_in_kinds(client: Any) -> None:
    first = ConfigMap(metadata=ObjectMeta(name="c"), data={"a": "1"})
    assert owners(client.apply(first)) == ["Apply me"]
    second = ConfigMap(metadata=ObjectMeta(name="c"), data={"b": "2"})
    assert client.apply(second, field_manager="other").data == {"a": "1", "b": "2"}
    assert client.apply(ConfigMap(metadata=ObjectMeta(name="c"))).data == {"b": "2"}


if __name__ == "__main__":
    client = lightkube.Client(
        lightkube.KubeConfig.from_file(sys.argv[1]), namespace=sys.argv[2], field_manager="me", trust_env=False
    )
    custom_resources(client)
    built_in_kinds(client)
