"""A Widget that is paused gets a ConfigMap that says so. With the bug that stays when the Widget goes on."""

from __future__ import annotations

import sys

from tests.exploration.taught.kit import Controller, Name
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
        note, is_paused = self.configs.get(name[0], f"{name[1]}-paused"), widget["spec"].get("paused", False)
        if is_paused and note is None:
            self.client.create(configs(name[0]), config(widget, f"{name[1]}-paused", paused="yes"))
        elif not is_paused and note is not None and not BUG:
            self.client.delete(configs(name[0], f"{name[1]}-paused"), note["metadata"]["uid"])
        report(self.client, widget, size=widget["spec"]["size"])


Widgets().main()
