"""An operator of widgets: it writes the size of a widget into its status."""

from typing import Any

import kopf

kopf.on.login()(kopf.login_with_kubeconfig)


@kopf.on.create("example.com", "v1", "widgets")
@kopf.on.update("example.com", "v1", "widgets", field="spec.size")
def measure(spec: kopf.Spec, patch: kopf.Patch, **_: Any) -> None:
    patch.status["size"] = spec["size"]
