"""A Widget gets a ConfigMap and then a Secret. With the bug it takes its own ConfigMap as proof that it has made both."""

from __future__ import annotations

import sys

from tests.exploration.taught.kit import Controller, Name, owner
from tests.exploration.taught.owned import (
    CONFIGS,
    SECRETS,
    WIDGETS,
    bug,
    config,
    configs,
    is_deleting,
    of_owner,
    report,
)

BUG = bug(sys.argv)


class Widgets(Controller):
    def handlers(self) -> None:
        self.widgets = self.follow(WIDGETS)
        self.configs = self.follow(CONFIGS, of_owner)
        self.secrets = self.follow(SECRETS, of_owner)

    def reconcile(self, name: Name) -> None:
        widget = self.widgets.get(*name)
        if widget is None or is_deleting(widget):
            return
        size = widget["spec"]["size"]
        if self.configs.get(*name) is None:
            self.client.create(configs(name[0]), config(widget, size=str(size)))
        elif BUG:
            return
        if self.secrets.get(*name) is None:
            metadata = {"name": name[1], "ownerReferences": [owner(widget)]}
            self.client.create(
                f"/api/v1/namespaces/{name[0]}/secrets", {"metadata": metadata, "stringData": {"k": "v"}}
            )
        report(self.client, widget, ready=True, size=size)


Widgets().main()
