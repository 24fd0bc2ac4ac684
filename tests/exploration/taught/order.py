"""A Widget gets a ConfigMap. With the bug the server makes its name, and a cache that lags behind means that there is none yet."""

from __future__ import annotations

import sys

from tests.exploration.taught.kit import Controller, Name, Refused
from tests.exploration.taught.owned import CONFIGS, WIDGETS, bug, config, configs, is_deleting, of_owner, report

BUG = bug(sys.argv)


class Widgets(Controller):
    def handlers(self) -> None:
        self.widgets = self.follow(WIDGETS)
        self.configs = self.follow(CONFIGS, of_owner)

    def reconcile(self, name: Name) -> None:
        widget = self.widgets.get(*name)
        if widget is None or is_deleting(widget):
            return
        if any(name in of_owner(item) for item in list(self.configs.cache.values())):
            report(self.client, widget, size=widget["spec"]["size"])
            return
        value = config(widget, kept="yes")
        if BUG:
            value["metadata"]["generateName"] = f"{value['metadata'].pop('name')}-"
        try:
            self.client.create(configs(name[0]), value)
        except Refused as error:
            if error.reason != "AlreadyExists":
                raise


Widgets().main()
