"""A play of workload controllers without a server: their steps run on plain objects, and what they write is applied and noted.

    play = Play((REPLICA_SETS, replica_set), (PODS, pod))
    again = play.run(ReplicaSetSteps, "default/web")
    assert play.done() == ["create pods web-1", "update replicasets/status web", "event Normal SuccessfulCreate: Created pod: web-1"]

Generated names end with a counter, uids are `uid-N`, and the clock stands at `NOW` until a test moves it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count

from noxu.api.errors import ApiError, Qualified, not_found
from noxu.go.time import format_time
from noxu.kinds.checks import selector_text
from noxu.values import Object, copy
from noxu.workloads.objects import PODS, Objects, name_of
from noxu.workloads.writes import (
    Bind,
    Create,
    Delete,
    Kind,
    NamespacedName,
    NewEvent,
    ReadScale,
    Replace,
    Result,
    Steps,
    Write,
    WriteScale,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
StepsOf = Callable[[Objects, NamespacedName, datetime], Steps]


class Play:
    """`refuse` says which writes fail; None: they succeed."""

    def __init__(self, *objects: tuple[Kind, Object], refuse: Callable[[Write], ApiError | None] | None = None) -> None:
        self.objects = Objects()
        self.now = NOW
        self.writes: list[Write] = []
        self._refuse = refuse or (lambda write: None)
        self._uids, self._revisions, self._suffixes = count(1), count(1), count(1)
        for kind, value in objects:
            self.add(kind, value)

    # -- what is there

    def add(self, kind: Kind, value: Object) -> Object:
        """Store an object as if a person had written it, with what a server adds."""
        value = copy(value)
        metadata = value.setdefault("metadata", {})
        if "name" not in metadata:
            metadata["name"] = f"{metadata['generateName']}{next(self._suffixes)}"
        metadata.setdefault("uid", f"uid-{next(self._uids)}")
        metadata.setdefault("creationTimestamp", format_time(self.now))
        metadata["resourceVersion"] = str(next(self._revisions))
        self.objects.put(kind, value)
        return value

    def get(self, kind: Kind, text: str) -> Object:
        """An object by `namespace/name`, or by its name if it is cluster-scoped."""
        found = self.objects.get(kind, _name(text))
        assert found is not None, f"{kind} {text} is not there"
        return found

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    # -- running

    def run(self, steps_of: StepsOf, key: str) -> float | None:
        """Run the steps of a key once: when it wants to look again, in seconds."""
        steps = steps_of(self.objects, _name(key), self.now)
        results: Sequence[Result] | None = None
        while True:
            try:
                writes = next(steps) if results is None else steps.send(results)
            except StopIteration as end:
                again: float | None = end.value
                return again
            results = [self._carry_out(write) for write in writes]

    def _carry_out(self, write: Write) -> Result:
        if isinstance(write, ReadScale):
            return self._refuse(write) or self._scale(write)
        self.writes.append(write)
        if not isinstance(write, NewEvent) and (error := self._refuse(write)) is not None:
            return error
        match write:
            case Create(kind, value):
                return self.add(kind, value)
            case Replace(kind, value, _):
                value = copy(value)
                value["metadata"]["resourceVersion"] = str(next(self._revisions))
                self.objects.put(kind, value)
                if value["metadata"].get("deletionTimestamp") and not value["metadata"].get("finalizers"):
                    self.objects.remove(kind, name_of(value))
                return value
            case Delete(kind, value):
                self._delete(kind, value)
                return None
            case Bind(pod, node):
                self.objects.put(PODS, {**pod, "spec": {**pod["spec"], "nodeName": node}})
                return None
            case WriteScale(target, scale):
                kind = _kind_of(target)
                found = self.get(kind, f"{scale['metadata']['namespace']}/{target['name']}")
                self.objects.put(kind, {**found, "spec": {**found["spec"], "replicas": scale["spec"]["replicas"]}})
                return None
        return None

    def _scale(self, read: ReadScale) -> Result:
        kind, name = _kind_of(read.target), read.target["name"]
        found = self.objects.get(kind, NamespacedName(read.namespace, name))
        if found is None:
            return not_found(Qualified(*kind), name)
        metadata, selector = found["metadata"], found["spec"].get("selector")
        status = {"replicas": 0, **({"selector": selector_text(selector)} if selector else {})}
        return {"metadata": dict(metadata), "spec": {"replicas": found["spec"].get("replicas", 0)}, "status": status}

    def _delete(self, kind: Kind, value: Object) -> None:
        """An object with finalizers stays, and is terminating."""
        newest = self.objects.get(kind, name_of(value))
        if newest is None or not newest["metadata"].get("finalizers"):
            self.objects.remove(kind, name_of(value))
            return
        metadata = {"deletionTimestamp": format_time(self.now), **newest["metadata"]}
        metadata["resourceVersion"] = str(next(self._revisions))
        self.objects.put(kind, {**newest, "metadata": metadata})

    # -- what was done

    def done(self) -> list[str]:
        """The writes as sentences; they are forgotten then."""
        written, self.writes = self.writes, []
        return [sentence(write) for write in written]


def sentence(write: Write) -> str:
    """`create pods web-1`, `update pods/status web-1`, `delete pods web-1`, `bind web-1 node-1`, `event Normal Reason: message`."""
    match write:
        case Create(kind, value):
            metadata = value["metadata"]
            return f"create {kind[1]} {metadata.get('name') or metadata['generateName']}"
        case Replace(kind, value, subresource):
            return f"update {kind[1]}{'/' if subresource else ''}{subresource} {value['metadata']['name']}"
        case Delete(kind, value):
            return f"delete {kind[1]} {value['metadata']['name']}"
        case Bind(pod, node):
            return f"bind {pod['metadata']['name']} {node}"
        case ReadScale(target, _):
            return f"read the scale of {target['kind']} {target['name']}"
        case WriteScale(target, scale):
            return f"scale {target['kind']} {target['name']} to {scale['spec']['replicas']}"
        case NewEvent():
            return f"event {write.type} {write.reason}: {write.message}"


def _kind_of(target: Object) -> Kind:
    return target["apiVersion"].rpartition("/")[0], f"{target['kind'].lower()}s"


def _name(text: str) -> NamespacedName:
    namespace, slash, name = text.partition("/")
    return NamespacedName(namespace, name) if slash else NamespacedName("", text)
