"""One look at a Deployment: its ReplicaSets are created, scaled and deleted, and then its status is written.

    roll        RollingUpdate: the new ReplicaSet grows, or the old ones shrink (rolling.go)
    recreate    Recreate: the new ReplicaSet comes when all old pods are gone (recreate.go)
    resize      a Deployment that is paused, or was scaled: its ReplicaSets grow or shrink in proportion (sync.go)

A `Rollout` holds what is known of the Deployment and its ReplicaSets during the look. What changes of the Deployment, its
revision and its conditions, is written once, by `finish`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from datetime import datetime

from noxu.api.errors import ApiError
from noxu.values import Object
from noxu.workloads.deployment import revisions, sizes
from noxu.workloads.deployment.status import (
    PROGRESSING,
    counted,
    has_deadline,
    is_complete,
    new_condition,
    seconds_left,
    with_new,
    with_pause,
    with_progress,
)
from noxu.workloads.objects import DEPLOYMENTS, PODS, REPLICA_SETS, Objects, name_of
from noxu.workloads.pods import FINISHED, condition, phase
from noxu.workloads.writes import (
    NORMAL,
    WARNING,
    Create,
    Delete,
    NewEvent,
    Replace,
    Result,
    Write,
    done,
    done_or_gone,
    is_namespace_ending,
    stored,
    with_status,
)

Doing = Generator[Sequence[Write], Sequence[Result], bool]
"""Steps that say whether anything was done."""


class Rollout:
    """`deployment` has the changes that `finish` writes; `new` is the ReplicaSet of its template, None: there is none yet."""

    def __init__(self, objects: Objects, deployment: Object, owned: Sequence[Object], now: datetime) -> None:
        """`owned`: its ReplicaSets."""
        self.objects, self.now = objects, now
        self.stored = self.deployment = deployment
        self.new = revisions.find_new(deployment, owned)
        self.old = [found for found in owned if found is not self.new]
        self.events: list[NewEvent] = []

    @property
    def all(self) -> list[Object]:
        return [*self.old, *([self.new] if self.new else ())]

    # -- what the controller does

    def observe(self) -> Doing:
        """Note the revision of the new ReplicaSet, if there is one (getAllReplicaSetsAndSyncRevision)."""
        if self.new is None:
            return False
        deployment = self.deployment
        wanted = revisions.with_revision(deployment, self.new, revisions.next_revision(self.old))
        seconds = deployment["spec"].get("minReadySeconds", 0)
        if wanted["spec"].get("minReadySeconds", 0) != seconds:
            wanted = {**wanted, "spec": {**wanted["spec"], "minReadySeconds": seconds}}
        is_changed = wanted != self.new
        if is_changed:
            [result] = yield [Replace(REPLICA_SETS, wanted)]
            self.new = stored(result) or wanted
        self._note_revision(revisions.annotations_of(self.new).get(revisions.REVISION))
        if condition(self.deployment, PROGRESSING) is None:
            name = self.new["metadata"]["name"]
            self._note_progress("True", "FoundNewReplicaSet", f'Found new replica set "{name}"')
        return is_changed

    def pause(self) -> None:
        """Note that the Deployment is paused, or not any more."""
        self.deployment = with_status(self.deployment, with_pause(self.deployment, self.now))

    def is_scaled(self) -> bool:
        """Whether the Deployment has another size than at the time of the last look (isScalingEvent)."""
        noted = (sizes.annotated(found, sizes.DESIRED) for found in sizes.active(self.all))
        return any(desired is not None and desired != sizes.wanted(self.deployment) for desired in noted)

    def resize(self) -> Doing:
        scaled = yield from self._resize()
        if self.deployment["spec"].get("paused"):
            yield from self._clean_up()
        return scaled

    def _resize(self) -> Doing:
        deployment, wanted = self.deployment, sizes.wanted(self.deployment)
        only = sizes.only_active_or_newest(self.new, self.old)
        if only is not None:
            return (yield from self._scale({only["metadata"]["name"]: wanted}))
        with_pods = sizes.active(self.all)
        if sizes.is_saturated(deployment, self.new):
            return (yield from self._scale({found["metadata"]["name"]: 0 for found in sizes.active(self.old)}))
        if sizes.rolls(deployment) and with_pods:
            return (yield from self._scale(sizes.proportional(deployment, with_pods), annotates=True))
        return False

    def roll(self) -> Doing:
        if self.new is None:
            return (yield from self._create())
        deployment, new = self.deployment, self.new
        size = sizes.new_size(deployment, sizes.wanted(new), self.old)
        if (yield from self._scale({new["metadata"]["name"]: size})):
            return True
        if (yield from self._scale(sizes.shrunk(deployment, new, self.old))):
            return True
        return (yield from self._clean_up_after())

    def recreate(self) -> Doing:
        if (yield from self._scale({found["metadata"]["name"]: 0 for found in sizes.active(self.old)})):
            return True
        if old_pods_run(self.objects, self.old):
            return False
        if self.new is None:
            return (yield from self._create())
        yield from self._scale({self.new["metadata"]["name"]: sizes.wanted(self.deployment)})
        return (yield from self._clean_up_after())

    def finish(self, *, progresses: bool) -> Generator[Sequence[Write], Sequence[Result], float | None]:
        """Write the status, and the Events. `progresses`: whether the roll-out has a deadline now.

        The seconds until it is exceeded.
        """
        deployment, new, old, now = self.deployment, self.new, self.old, self.now
        status = counted(deployment, new, old, now)
        if progresses:
            status = with_progress(deployment, status, new, old, now)
        value = with_status(deployment, status)
        writes: list[Write] = [*self.events]
        if value != self.stored:
            writes.append(Replace(DEPLOYMENTS, value, "status"))
        self.events = []
        if writes:
            done((yield writes))
        return seconds_left(value, status, now) if progresses else None

    # -- ReplicaSets

    def _scale(self, wanted: dict[str, int], *, annotates: bool = False) -> Doing:
        """Give ReplicaSets other sizes, by their names. `annotates`: write also what only the annotations say."""
        scaled = False
        for found in self.all:
            before, size = sizes.wanted(found), wanted.get(found["metadata"]["name"])
            if size is None or (size == before and not annotates):
                continue
            value = revisions.with_sizes(found, size, self.deployment)
            if value == found:
                continue
            [result] = yield [Replace(REPLICA_SETS, value)]
            self._replace(found, stored(result) or value)
            if size != before:
                scaled = True
                self._say_scaled(found["metadata"]["name"], before, size)
        return scaled

    def _replace(self, before: Object, after: Object) -> None:
        if before is self.new:
            self.new = after
        else:
            self.old = [after if found is before else found for found in self.old]

    def _create(self) -> Doing:
        """The ReplicaSet of the template. False: it was not created, and this look ends."""
        deployment = self.deployment
        collisions = (deployment.get("status") or {}).get("collisionCount")
        revision = revisions.next_revision(self.old)
        value = revisions.new_replica_set(deployment, collisions)
        value = revisions.with_sizes(value, sizes.new_size(deployment, 0, self.old), deployment)
        value = revisions.with_revision(deployment, value, revision)
        [result] = yield [Create(REPLICA_SETS, value)]
        if isinstance(result, ApiError):
            yield from self._note_failure(value, result)
            return False
        self.new = result or value
        name = self.new["metadata"]["name"]
        if size := sizes.wanted(value):
            self._say_scaled(name, 0, size)
        self._note_revision(str(revision))
        self._note_progress("True", "NewReplicaSetCreated", f'Created new replica set "{name}"')
        return True

    def _note_failure(self, value: Object, error: ApiError) -> Doing:
        """A name that another template has makes another hash, at the next look. Raises what else has failed."""
        status = self.deployment.get("status") or {}
        name = value["metadata"]["name"]
        if error.reason == "AlreadyExists" and self.objects.get(REPLICA_SETS, name_of(value)) is not None:
            collided = {**status, "collisionCount": status.get("collisionCount", 0) + 1}
            self.deployment = with_status(self.deployment, collided)
            return True
        if is_namespace_ending(error):
            return True  # whatever is created fails
        message = f'Failed to create new replica set "{name}": {error}'
        self._note_progress("False", "ReplicaSetCreateError", message)
        writes: list[Write] = [NewEvent(self.stored, WARNING, "ReplicaSetCreateError", message)]
        if self.deployment != self.stored:
            writes.append(Replace(DEPLOYMENTS, self.deployment, "status"))
        yield writes
        raise error

    def _clean_up_after(self) -> Doing:
        """Delete what revisionHistoryLimit does not keep, if the roll-out is complete."""
        if is_complete(self.deployment, self.deployment.get("status") or {}):
            yield from self._clean_up()
        return False

    def _clean_up(self) -> Doing:
        gone = revisions.superfluous(self.deployment, self.old)
        if not gone:
            return False
        done_or_gone((yield [Delete(REPLICA_SETS, found) for found in gone]))
        return True

    # -- notes

    def _say_scaled(self, name: str, before: int, size: int) -> None:
        way = "up" if size > before else "down"
        message = f"Scaled {way} replica set {name} from {before} to {size}"
        self.events.append(NewEvent(self.stored, NORMAL, "ScalingReplicaSet", message))

    def _note_revision(self, revision: str | None) -> None:
        annotations = revisions.annotations_of(self.deployment)
        if revision is not None and annotations.get(revisions.REVISION) != revision:
            annotations[revisions.REVISION] = revision
            self.deployment = revisions.with_annotations(self.deployment, annotations)

    def _note_progress(self, status: str, reason: str, message: str) -> None:
        if has_deadline(self.deployment):
            found = new_condition(PROGRESSING, status, reason, message, self.now)
            self.deployment = with_status(self.deployment, with_new(self.deployment.get("status") or {}, found))


def old_pods_run(objects: Objects, old: Sequence[Object]) -> bool:
    """Whether an old ReplicaSet has a pod that has not finished; those that are being deleted count, too."""
    pods = (pod for found in old for pod in objects.controlled_by(PODS, found["metadata"]["uid"]))
    return sizes.total(old, "replicas") > 0 or any(phase(pod) not in FINISHED for pod in pods)
