"""A Widget gets a ConfigMap, and a status. Its bugs are about errors of the server:

gives-up    what was refused is not tried again
not-found   any error of a GET means that the object is not there: it is created once more
hot-loop    it tries again at once, as long as it is refused
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

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
        if self.existing(name) is None:
            self.create(name, config(widget, size="1"))
        report(self.client, widget, size=widget["spec"]["size"])

    def existing(self, name: Name) -> Any:
        if BUG != "not-found":
            return self.configs.get(*name)
        listed = []
        with contextlib.suppress(Refused):
            listed = self.client.ask("GET", configs(name[0]))["items"]
        return next((item for item in listed if name in of_owner(item)), None)

    def create(self, name: Name, value: Any) -> None:
        if BUG == "not-found":
            value["metadata"]["generateName"] = f"{value['metadata'].pop('name')}-"
        while True:
            try:
                self.client.create(configs(name[0]), value)
                return
            except Refused as error:
                if error.reason == "AlreadyExists":
                    return
                if BUG == "gives-up":
                    sys.stderr.write(f"{name}: {error}\n")
                    return
                if BUG != "hot-loop":
                    raise


Widgets().main()
