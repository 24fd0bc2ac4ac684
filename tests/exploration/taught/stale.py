"""A Widget gets a ConfigMap that outlives no Widget: it is deleted before the finalizer goes.

With the bug it is deleted by its name, also if another one has that name by now. The twin deletes only what belongs to the Widget that it has seen.
"""

from __future__ import annotations

import sys
from typing import Any

from tests.exploration.taught.kit import Controller, Name
from tests.exploration.taught.owned import CONFIGS, WIDGETS, bug, configs, is_deleting, of_label, widget_path

BUG = bug(sys.argv)
FINALIZER = "example.com/data"


class Widgets(Controller):
    def handlers(self) -> None:
        self.widgets = self.follow(WIDGETS)
        self.configs = self.follow(CONFIGS, of_label)

    def reconcile(self, name: Name) -> None:
        widget = self.widgets.get(*name)
        if widget is None:
            return
        data, uid = self.configs.get(name[0], f"data-{name[1]}"), widget["metadata"]["uid"]
        finalizers = widget["metadata"].get("finalizers") or []
        if not is_deleting(widget):
            if FINALIZER not in finalizers:
                self.finalizers(widget, [*finalizers, FINALIZER])
            if data is None:
                labels = {"widget": name[1], "of": uid}
                value = {"metadata": {"name": f"data-{name[1]}", "labels": labels}, "data": {"kept": "yes"}}
                self.client.create(configs(name[0]), value)
        elif FINALIZER in finalizers:
            path = configs(name[0], f"data-{name[1]}")
            if BUG:
                self.client.delete(path)
            elif data is not None and data["metadata"]["labels"]["of"] == uid:
                self.client.delete(path, data["metadata"]["uid"])
            self.finalizers(widget, [each for each in finalizers if each != FINALIZER])

    def finalizers(self, widget: Any, wanted: list[str]) -> None:
        """Nothing happens to another Widget that has the name by now: its uid is another one."""
        metadata = widget["metadata"]
        meant = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"], "finalizers": wanted}
        self.client.patch(widget_path(widget), {"metadata": meant})


Widgets().main()
