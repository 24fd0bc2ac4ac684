"""A Widget gets a Deployment, and tells whether it is ready. With the bug it does not look again once that has failed."""

from __future__ import annotations

import sys
from typing import Any

from tests.exploration.taught.kit import Controller, Name, owner
from tests.exploration.taught.owned import WIDGETS, bug, is_deleting, of_owner, report

BUG = bug(sys.argv)
DEPLOYMENTS = "/apis/apps/v1/deployments"


class Widgets(Controller):
    def handlers(self) -> None:
        self.widgets = self.follow(WIDGETS)
        self.deployments = self.follow(DEPLOYMENTS, of_owner)

    def reconcile(self, name: Name) -> None:
        widget = self.widgets.get(*name)
        if widget is None or is_deleting(widget):
            return
        phase = widget.get("status", {}).get("phase")
        if BUG and phase == "Failed":
            return
        deployment = self.deployments.get(*name)
        if deployment is None:
            self.client.create(f"/apis/apps/v1/namespaces/{name[0]}/deployments", of(widget))
            return
        is_available = deployment.get("status", {}).get("availableReplicas", 0) >= widget["spec"]["size"]
        if is_available:
            report(self.client, widget, phase="Ready")
        elif phase == "Ready":
            report(self.client, widget, phase="Failed")


def of(widget: Any) -> dict[str, Any]:
    labels = {"widget": widget["metadata"]["name"]}
    container = {"name": "main", "image": "example.com/main:1"}
    return {
        "metadata": {"name": widget["metadata"]["name"], "ownerReferences": [owner(widget)]},
        "spec": {
            "replicas": widget["spec"]["size"],
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


Widgets().main()
