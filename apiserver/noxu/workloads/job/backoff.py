"""How long a Job waits before it replaces failed pods: 10 s, doubled with each further failure, at most 10 min (backoff_utils.go).

The failures since the last success count: those of the whole Job, or those of an index with `backoffLimitPerIndex`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from noxu.values import Object
from noxu.workloads.pods import condition, moment

FIRST_DELAY: Final = 10.0  # seconds
LONGEST_DELAY: Final = 600.0  # seconds


class Backoff(NamedTuple):
    """The failures after the last success, and the time of the last one."""

    failures: int = 0
    last: datetime | None = None

    def after(self, succeeded: Sequence[Object], failed: Sequence[Object]) -> Backoff:
        """With pods that have finished since then."""
        failures = sorted(map(finished_at, failed))
        if succeeded:
            last_success = max(map(finished_at, succeeded))
            failures = [time for time in failures if time > last_success]
            return Backoff(len(failures), failures[-1] if failures else None)
        return Backoff(self.failures + len(failures), failures[-1]) if failures else self

    def remaining(self, now: datetime) -> float:
        """The seconds until pods may be replaced."""
        if not self.failures or self.last is None:
            return 0.0
        delay: float = min(FIRST_DELAY * 2 ** min(self.failures - 1, 20), LONGEST_DELAY)
        return max(0.0, delay - (now - self.last).total_seconds())


def finished_at(pod: Object) -> datetime:
    """When a pod ended, by the first of these that is known.

    The time at which its last container ended; that at which it became unready; that of its deletion; that of its creation.
    """
    metadata = pod["metadata"]
    ended = _last_end(pod)
    if ended is not None:
        return ended
    ready = condition(pod, "Ready")
    if ready is not None and ready.get("status") == "False" and ready.get("lastTransitionTime"):
        return moment(ready["lastTransitionTime"])
    if metadata.get("deletionTimestamp"):
        grace = metadata.get("deletionGracePeriodSeconds") or 0
        return moment(metadata["deletionTimestamp"]) - timedelta(seconds=grace)
    return moment(metadata["creationTimestamp"])


def _last_end(pod: Object) -> datetime | None:
    """None, unless all containers have ended; sidecars, which end last, are among them."""
    status, sidecars = pod.get("status") or {}, _sidecars(pod)
    containers = list(status.get("containerStatuses") or ())
    containers += [found for found in status.get("initContainerStatuses") or () if found["name"] in sidecars]
    ends = [((found.get("state") or {}).get("terminated") or {}).get("finishedAt", "") for found in containers]
    return max(map(moment, ends)) if ends and all(ends) else None


def _sidecars(pod: Object) -> set[str]:
    containers = (pod.get("spec") or {}).get("initContainers") or ()
    return {container["name"] for container in containers if container.get("restartPolicy") == "Always"}
