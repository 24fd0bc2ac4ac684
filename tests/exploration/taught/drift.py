"""A Widget gets a ConfigMap. With the bug `unwatched` nothing is done when that goes away; with `field` it has to be there only."""

from __future__ import annotations

import sys

from tests.exploration.taught.kit import Controller, Name
from tests.exploration.taught.owned import CONFIGS, WIDGETS, bug, config, configs, is_deleting, of_owner

BUG = bug(sys.argv)


class Widgets(Controller):
    def handlers(self) -> None:
        self.widgets = self.follow(WIDGETS)
        self.configs = None if BUG == "unwatched" else self.follow(CONFIGS, of_owner)

    def reconcile(self, name: Name) -> None:
        widget = self.widgets.get(*name)
        if widget is None or is_deleting(widget):
            return
        wanted = config(widget, size=str(widget["spec"]["size"]))
        there = self.client.get(configs(*name)) if self.configs is None else self.configs.get(*name)
        if there is None:
            self.client.create(configs(name[0]), wanted)
        elif there.get("data") != wanted["data"] and BUG != "field":
            self.client.patch(configs(*name), {"data": wanted["data"]})


Widgets().main()
