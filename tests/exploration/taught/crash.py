"""A Widget gets a ConfigMap and then a Secret. With the bug it takes its own ConfigMap as proof that it has made both."""

from __future__ import annotations

import sys
from typing import Any

from tests.exploration.taught.kit import Controller, Name, owner

BUG = "--bug" in sys.argv


class Widgets(Controller):
    def handlers(self) -> None:
        self.widgets = self.follow("/apis/example.com/v1/widgets")
        self.configs = self.follow("/api/v1/configmaps", of_owner)
        self.secrets = self.follow("/api/v1/secrets", of_owner)

    def reconcile(self, name: Name) -> None:
        widget = self.widgets.get(*name)
        if widget is None or widget["metadata"].get("deletionTimestamp"):
            return
        base = f"/api/v1/namespaces/{name[0]}"
        metadata = {"name": name[1], "ownerReferences": [owner(widget)]}
        if self.configs.get(*name) is None:
            self.client.create(
                f"{base}/configmaps", {"metadata": metadata, "data": {"size": str(widget["spec"]["size"])}}
            )
        elif BUG:
            return
        if self.secrets.get(*name) is None:
            self.client.create(f"{base}/secrets", {"metadata": metadata, "stringData": {"key": "k"}})
        status = {"ready": True, "size": widget["spec"]["size"]}
        if widget.get("status") != status:
            self.client.patch(f"/apis/example.com/v1/namespaces/{name[0]}/widgets/{name[1]}/status", {"status": status})


def of_owner(item: Any) -> list[Name]:
    return [
        (item["metadata"].get("namespace", ""), reference["name"])
        for reference in item["metadata"].get("ownerReferences") or ()
        if reference["kind"] == "Widget"
    ]


Widgets().main()
