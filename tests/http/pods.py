"""Pods, budgets and nodes for tests: created, bound, and taken away."""

from __future__ import annotations

from typing import Any, Final

from tests.http.conftest import Reply, Things

CORE: Final = "/api/v1/namespaces/default"
PODS: Final = f"{CORE}/pods"
BUDGETS: Final = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
MERGE: Final = "merge-patch+json"


class Pods:
    """The objects that tests about Pods need. `api` asks for anything else."""

    def __init__(self, api: Things) -> None:
        self.api = api

    def clear(self) -> None:
        """Delete Pods and budgets; nodes remain."""
        for item in self.api.ask("GET", PODS).body["items"]:
            path = f"{PODS}/{item['metadata']['name']}"
            self.api.ask("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
            self.api.ask("DELETE", path, {"gracePeriodSeconds": 0})
        self.api.ask("DELETE", BUDGETS)

    def create(self, name: str = "p", *, metadata: Any = None, containers: Any = ("c",), **spec: Any) -> Any:
        """A Pod with containers of these names, or with these."""
        named = [{"name": each} if isinstance(each, str) else each for each in containers]
        listed = [{"image": "i", **each} for each in named]
        body = {"metadata": {"name": name, **(metadata or {})}, "spec": {"containers": listed, **spec}}
        reply = self.api.ask("POST", PODS, body)
        assert reply.code == 201, reply
        return reply.body

    def run(self, name: str = "p", *, ready: bool = True, phase: str = "Running", **more: Any) -> Any:
        """A Pod on a node, with the label app=a, whose status a kubelet has written."""
        self.create(name, metadata={"labels": {"app": "a"}}, nodeName="n", **more)
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        return self.set_status(f"{PODS}/{name}", phase=phase, conditions=conditions)

    def set_status(self, path: str, **status: Any) -> Any:
        reply = self.api.ask("PATCH", f"{path}/status", {"status": status}, MERGE)
        assert reply.code == 200, reply
        return reply.body

    def get(self, name: str = "p") -> Reply:
        return self.api.ask("GET", f"{PODS}/{name}")

    def budget(self, name: str = "b", *, selector: Any = None, spec: Any = None, **status: Any) -> Any:
        """A PodDisruptionBudget for app=a; `status` is observed unless it says otherwise."""
        chosen = {"matchLabels": {"app": "a"}} if selector is None else selector
        body = {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": chosen, **(spec or {})}}
        reply = self.api.ask("POST", BUDGETS, body)
        assert reply.code == 201, reply
        counts = {"currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0, "disruptionsAllowed": 0}
        return self.set_status(f"{BUDGETS}/{name}", **{**counts, "observedGeneration": 1, **status})


def condition(pod: Any, kind: str) -> Any:
    """A condition of a Pod without its times."""
    found = [each for each in pod["status"].get("conditions", ()) if each["type"] == kind]
    return [{name: each[name] for name in each if not name.endswith("Time")} for each in found]
