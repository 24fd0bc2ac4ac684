"""Deletes Jobs that ended `ttlSecondsAfterFinished` seconds ago, with their pods (pkg/controller/ttlafterfinished)."""

from __future__ import annotations

from datetime import datetime

from noxu.values import Object
from noxu.workloads.engine import WorkloadController
from noxu.workloads.objects import JOBS, Objects
from noxu.workloads.pods import condition, is_terminating, moment
from noxu.workloads.writes import Delete, NamespacedName, Steps, stored


class TtlAfterFinishedController(WorkloadController):
    name = "ttl-after-finished-controller"
    kind = JOBS
    workers = 5  # --concurrent-ttl-after-finished-syncs

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        return ttl_steps(objects, key, now)


def ttl_steps(objects: Objects, key: NamespacedName, now: datetime) -> Steps:
    job = objects.get(JOBS, key)
    if job is None or is_terminating(job):
        return None
    ended, seconds = finish_time(job), job["spec"].get("ttlSecondsAfterFinished")
    if ended is None or seconds is None:
        return None
    left = float(seconds - (now - ended).total_seconds())
    if left > 0:
        return left
    [result] = yield [Delete(JOBS, job, propagation="Foreground")]
    stored(result)
    return None


def finish_time(job: Object) -> datetime | None:
    """None if it has not ended."""
    for kind in ("Complete", "Failed"):
        found = condition(job, kind)
        if found is not None and found["status"] == "True":
            return moment(found["lastTransitionTime"])
    return None
