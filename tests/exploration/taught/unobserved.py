"""A Widget gets a ConfigMap with its size, which is deleted when the Widget is.

With the bug that is left to the event of the deletion: who misses it because the Widget is there again keeps the old ConfigMap.
The twin compares what there is with what has to be.
"""

from __future__ import annotations

import sys

from tests.exploration.taught.kit import Controller, Name
from tests.exploration.taught.owned import CONFIGS, WIDGETS, bug, configs, of_label

BUG = bug(sys.argv)


class Widgets(Controller):
    def handlers(self) -> None:
        self.widgets = self.follow(WIDGETS)
        self.configs = self.follow(CONFIGS, of_label)

    def reconcile(self, name: Name) -> None:
        widget, config = self.widgets.get(*name), self.configs.get(name[0], f"of-{name[1]}")
        path = configs(name[0], f"of-{name[1]}")
        if widget is None:
            if config is not None:
                self.client.delete(path, config["metadata"]["uid"])
            return
        data = {"size": str(widget["spec"]["size"])}
        if config is None:
            metadata = {"name": f"of-{name[1]}", "labels": {"widget": name[1]}}
            self.client.create(configs(name[0]), {"metadata": metadata, "data": data})
        elif not BUG and config["data"] != data:
            self.client.patch(path, {"data": data})


Widgets().main()
