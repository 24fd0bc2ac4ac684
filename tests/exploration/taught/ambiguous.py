"""A Widget gets a ConfigMap. With the bug the server makes its name, and a creation without an answer is repeated.

With `--bug=counter` the Widget counts how often it was set up, and adds one more when the answer is lost.
"""

from __future__ import annotations

import http.client
import sys
from typing import Any

from tests.exploration.taught.kit import Controller, Name, Refused
from tests.exploration.taught.owned import CONFIGS, WIDGETS, bug, config, configs, is_deleting, of_owner, widget_path

BUG = bug(sys.argv)
ATTEMPTS = 3


class Widgets(Controller):
    def handlers(self) -> None:
        self.widgets = self.follow(WIDGETS)
        self.configs = self.follow(CONFIGS, of_owner)

    def reconcile(self, name: Name) -> None:
        widget = self.widgets.get(*name)
        if widget is None or is_deleting(widget):
            return
        if BUG == "counter":
            self.count(widget)
        elif not any(name in of_owner(item) for item in list(self.configs.cache.values())):
            value = config(widget, size="1")
            if BUG:
                value["metadata"]["generateName"] = f"{value['metadata'].pop('name')}-"
            self.create(name, value)

    def create(self, name: Name, value: Any) -> None:
        for attempt in range(ATTEMPTS):
            try:
                self.client.create(configs(name[0]), value)
                return
            except Refused as error:
                if error.reason == "AlreadyExists":
                    return
                raise
            except (OSError, http.client.HTTPException):
                if attempt == ATTEMPTS - 1:
                    raise

    def count(self, widget: Any) -> None:
        if widget.get("status", {}).get("done"):
            return
        for attempt in range(ATTEMPTS):
            newest = self.client.get(widget_path(widget))
            count = newest.get("status", {}).get("count", 0) + 1
            try:
                self.client.patch(widget_path(widget, "/status"), {"status": {"count": count, "done": True}})
                return
            except (OSError, http.client.HTTPException):
                if attempt == ATTEMPTS - 1:
                    raise


Widgets().main()
