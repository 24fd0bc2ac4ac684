"""What a kubelet does to the pods of a play, one step at a time.

play = GracefulPlay((STATEFUL_SETS, web))
become_ready(play, "default/web-0")
fail(play, "default/web-0")
finish_deletions(play)
"""

from __future__ import annotations

from noxu.go.time import format_time
from noxu.values import Object, copy
from noxu.workloads.objects import PODS, name_of
from noxu.workloads.writes import Delete, Result, Write
from tests.workloads.plays import Play


class GracefulPlay(Play):
    """A play in which a deleted pod stays, with a deletionTimestamp, until `finish_deletions`."""

    def _carry_out(self, write: Write) -> Result:
        if isinstance(write, Delete) and write.kind == PODS and self._refuse(write) is None:
            self.writes.append(write)
            pod = copy(self.objects.get(PODS, name_of(write.value)) or write.value)
            pod["metadata"]["deletionTimestamp"] = format_time(self.now)
            self.objects.put(PODS, pod)
            return None
        return super()._carry_out(write)


def become(play: Play, name: str, phase: str, *, ready: bool = False) -> Object:
    """A phase and the condition Ready of a pod. Its transition time changes with its status."""
    pod = copy(play.get(PODS, name))
    status = pod.setdefault("status", {})
    status["phase"] = phase
    word, before = "True" if ready else "False", (status.get("conditions") or [{}])[0]
    if before.get("status") != word:
        status["conditions"] = [{"type": "Ready", "status": word, "lastTransitionTime": format_time(play.now)}]
    play.objects.put(PODS, pod)
    return pod


def become_ready(play: Play, name: str) -> Object:
    return become(play, name, "Running", ready=True)


def fail(play: Play, name: str) -> Object:
    return become(play, name, "Failed")


def finish_deletions(play: Play) -> bool:
    """Whether a pod was being deleted: it is gone."""
    ending = [pod for pod in play.objects.all(PODS) if pod["metadata"].get("deletionTimestamp")]
    for pod in ending:
        play.objects.remove(PODS, name_of(pod))
    return bool(ending)


def names(play: Play) -> list[str]:
    """The names of all pods that are not being deleted, in order."""
    return sorted(p["metadata"]["name"] for p in play.objects.all(PODS) if not p["metadata"].get("deletionTimestamp"))
