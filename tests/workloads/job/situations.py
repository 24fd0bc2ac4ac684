"""Jobs and their pods, as tests of the controller of Jobs set them up."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from noxu.go.time import format_time
from noxu.values import Object
from noxu.workloads.job.backoff import Backoff
from noxu.workloads.job.job_pods import COMPLETION_INDEX, TRACKING
from noxu.workloads.job.jobs import Backoffs, job_steps
from noxu.workloads.objects import JOBS, PODS, Objects
from noxu.workloads.ownership import owner_reference
from noxu.workloads.writes import NamespacedName, Steps
from tests.workloads.plays import NOW, Play

JOB_UID = "job-uid"
LONG_AGO = NOW - timedelta(hours=1)


def job(**spec: Any) -> Object:
    """A Job `x`; a field that is None is absent. `status` and `deleted` are not of the spec."""
    status, deleted = spec.pop("status", {}), spec.pop("deleted", False)
    labels = {"batch.kubernetes.io/controller-uid": JOB_UID}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c"}], "restartPolicy": "Never"}}
    spec = {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "selector": {"matchLabels": labels},
        "template": template,
        **spec,
    }
    metadata: Object = {"name": "x", "namespace": "default", "uid": JOB_UID, "labels": labels}
    if deleted:
        metadata |= {"deletionTimestamp": format_time(NOW), "finalizers": ["foregroundDeletion"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {name: value for name, value in spec.items() if value is not None},
        "status": status,
    }


def pod(
    phase: str = "Running",
    *,
    index: object = None,
    ready: bool = False,
    counted: bool = False,
    terminating: bool = False,
    created: datetime = LONG_AGO,
    annotations: dict[str, str] | None = None,
    **status: Any,
) -> Object:
    """A pod of the Job `x`. `counted`: it has lost the finalizer."""
    made = {} if index is None else {COMPLETION_INDEX: str(index)}
    metadata: Object = {
        "generateName": "x-",
        "namespace": "default",
        "labels": {"batch.kubernetes.io/controller-uid": JOB_UID},
        "annotations": made | (annotations or {}),
        "ownerReferences": [owner_reference(job())],
        "creationTimestamp": format_time(created),
    }
    if not counted:
        metadata["finalizers"] = [TRACKING]
    if terminating:
        metadata |= {"deletionTimestamp": format_time(created), "deletionGracePeriodSeconds": 0}
    conditions = [{"type": "Ready", "status": "True"}] if ready else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "c"}]},
        "status": {"phase": phase, "conditions": conditions, **status},
    }


class JobPlay(Play):
    """A play with one Job, its pods and what the controller remembers."""

    def __init__(self, of: Object, *pods: Object, backoff: Backoff | None = None, **more: Any) -> None:
        super().__init__((JOBS, of), *((PODS, found) for found in pods), **more)
        self.backoffs: Backoffs = {} if backoff is None else {JOB_UID: backoff}

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        return job_steps(objects, key, now, self.backoffs)

    def sync(self, times: int = 1) -> float | None:
        again = None
        for _ in range(times):
            again = self.run(self.steps, "default/x")
        return again

    def change(self, **spec: Any) -> None:
        """Change the spec of the Job."""
        found = self.get(JOBS, "default/x")
        self.add(JOBS, {**found, "spec": {**found["spec"], **spec}})

    def end_pods(self, phase: str, **status: Any) -> None:
        """All active pods end now."""
        ended = format_time(self.now)
        terminated = {"exitCode": 0 if phase == "Succeeded" else 1, "finishedAt": ended}
        for found in self.pods:
            if found["status"]["phase"] not in ("Succeeded", "Failed"):
                containers = [{"name": "c", "state": {"terminated": terminated}}]
                self.add(PODS, {**found, "status": {"phase": phase, "containerStatuses": containers, **status}})

    @property
    def pods(self) -> list[Object]:
        """A pod that the controller has just made is pending."""
        return [{"status": {"phase": "Pending"}, **found} for found in self.objects.within(PODS, "default")]

    @property
    def status(self) -> Object:
        status: Object = self.get(JOBS, "default/x")["status"]
        return status

    @property
    def conditions(self) -> list[tuple[str, str, str]]:
        """Types of the conditions, with `!` if they are false, reasons and messages."""
        return [
            (
                f"{'' if found['status'] == 'True' else '!'}{found['type']}",
                found.get("reason", ""),
                found.get("message", ""),
            )
            for found in self.status.get("conditions") or ()
        ]

    def indexes_of(self, *phases: str) -> list[str]:
        """The completion indexes of pods in some phases."""
        found = (pod for pod in self.pods if pod["status"]["phase"] in phases)
        return sorted(pod["metadata"]["annotations"].get(COMPLETION_INDEX, "") for pod in found)
