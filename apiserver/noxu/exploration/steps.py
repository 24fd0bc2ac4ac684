"""The steps of a workload: what a person does to the objects, and what has to become of them.

    - apply: samples/cluster.yaml                         a file, a directory, or an object
    - wait: {kind: Widget, name: a, for: "self.status.ready"}     CEL, a type of a condition, create, delete
    - patch: {kind: Widget, name: a, merge: {spec: {size: 2}}}    or json: [...]; subresource
    - scale: {kind: StatefulSet, name: a, replicas: 3}
    - delete: {kind: Widget, name: a}
    - advance: 1h                                         object time passes
    - pod: {name: "web-*", fail: crash-loop}              or ready: true, recover: true
    - node: {name: node-1, state: lost}                   or ready

A step that is misspelt is refused, with its place. After each step the run waits until the controller has done what it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from noxu.control.arguments import duration
from noxu.exploration.passing import passing_time
from noxu.features import meant
from noxu.testing.handle import Noxu
from noxu.values import Json, Object

WITHIN: Final = 30.0  # seconds that a step may wait, unless it says otherwise


class StepError(ValueError):
    """A workload cannot be read. The message says where, and what is right."""


class WorkloadStep(NamedTuple):
    """`kind` is a key of STEPS. `wanted` is what was read of it, `source` what it was written as."""

    kind: str
    wanted: Mapping[str, Any]
    source: Object

    @property
    def title(self) -> str:
        """What it does, in a line: `patch Widget a`."""
        wanted = self.wanted
        what = " ".join(str(wanted[name]) for name in ("kind", "name", "source", "seconds") if name in wanted)
        return f"{self.kind} {what}"


def parse(values: Json, directory: Path, place: str = "workload") -> list[WorkloadStep]:
    """The steps of a list; paths are relative to `directory`. Raises StepError."""
    if not isinstance(values, list) or not values:
        raise StepError(f"{place} is a list of steps, such as [{{apply: sample.yaml}}]")
    return [_step(value, directory, f"{place}[{n}]") for n, value in enumerate(values)]


def _step(value: Json, directory: Path, place: str) -> WorkloadStep:
    if not isinstance(value, dict) or len(value) != 1:
        raise StepError(f"{place}: a step is one of {', '.join(STEPS)}, such as {{apply: sample.yaml}}")
    [(kind, given)] = value.items()
    if kind not in STEPS:
        raise StepError(f"{place}: there is no step {kind!r}{meant(str(kind), STEPS)}: steps are {', '.join(STEPS)}")
    try:
        return WorkloadStep(kind, STEPS[kind].read(given, directory), value)
    except ValueError as error:
        raise StepError(f"{place}.{kind}: {error}") from None


# -- reading ----------------------------------------------------------------------------------------------------------


def _source(value: Json, directory: Path) -> Object:
    if isinstance(value, dict):
        metadata = value.get("metadata") or {}
        return {"source": f"{value.get('kind', '')} {metadata.get('name', '')}".strip(), "objects": value}
    if not isinstance(value, str) or not value:
        raise ValueError("it is a path, or an object")
    path = directory / value
    if not path.exists():
        raise ValueError(f"there is no file {path}")
    return {"source": value, "objects": path}


def _fields(required: Sequence[str], optional: Sequence[str] = ()) -> Callable[[Json, Path], Object]:
    def read(value: Json, _directory: Path) -> Object:
        known = (*required, *optional)
        if not isinstance(value, dict):
            raise ValueError(f"it has {', '.join(known)}")
        for name in value:
            if name not in known:
                raise ValueError(f"there is no field {name!r}{meant(str(name), known)}: there are {', '.join(known)}")
        missing = [name for name in required if value.get(name) in (None, "")]
        if missing:
            raise ValueError(f"it lacks {', '.join(missing)}")
        return {**value, "timeout": duration(str(value["timeout"])) if "timeout" in value else WITHIN}

    return read


def _patch(value: Json, directory: Path) -> Object:
    read = _fields(("kind", "name"), ("namespace", "merge", "json", "subresource"))(value, directory)
    if ("merge" in read) == ("json" in read):
        raise ValueError("it has one of merge, json")
    return read


_FATES: Final = ("fail", "ready", "recover")


def _pod(value: Json, directory: Path) -> Object:
    read = _fields(("name",), ("namespace", *_FATES))(value, directory)
    if sum(fate in read for fate in _FATES) != 1:
        raise ValueError("it has one of fail (crash-loop, never-ready, …), ready: true, recover: true")
    return read


def _node(value: Json, directory: Path) -> Object:
    read = _fields(("name", "state"))(value, directory)
    if read["state"] not in ("lost", "ready"):
        raise ValueError(f"state {read['state']!r} is none of lost, ready")
    return read


def _seconds(value: Json, _directory: Path) -> Object:
    if not isinstance(value, str):
        raise ValueError("it is a duration, such as 1h")
    return {"seconds": duration(value)}


# -- running ----------------------------------------------------------------------------------------------------------


def _apply(noxu: Noxu, wanted: Mapping[str, Any]) -> None:
    noxu.apply(wanted["objects"])


def _wait(noxu: Noxu, wanted: Mapping[str, Any]) -> None:
    with passing_time(noxu, wanted["timeout"]):
        noxu.wait(
            wanted["kind"], wanted["name"], wanted["for"], namespace=wanted.get("namespace"), timeout=wanted["timeout"]
        )


def _patched(noxu: Noxu, wanted: Mapping[str, Any]) -> None:
    noxu.patch(
        wanted["kind"],
        wanted["name"],
        wanted["json"] if "json" in wanted else wanted["merge"],
        namespace=wanted.get("namespace"),
        subresource=wanted.get("subresource", ""),
    )


def _scale(noxu: Noxu, wanted: Mapping[str, Any]) -> None:
    noxu.scale(wanted["kind"], wanted["name"], int(wanted["replicas"]), namespace=wanted.get("namespace"))


def _delete(noxu: Noxu, wanted: Mapping[str, Any]) -> None:
    noxu.delete(
        wanted["kind"],
        wanted["name"],
        namespace=wanted.get("namespace"),
        propagation=wanted.get("propagation", ""),
    )


def _advance(noxu: Noxu, wanted: Mapping[str, Any]) -> None:
    noxu.clock.advance(wanted["seconds"])


def _pods(noxu: Noxu, wanted: Mapping[str, Any]) -> None:
    if "fail" in wanted:
        noxu.pods.fail(wanted["name"], wanted["fail"])
    elif "ready" in wanted:
        noxu.pods.ready(wanted["name"])
    else:
        noxu.pods.recover(wanted["name"])


def _nodes(noxu: Noxu, wanted: Mapping[str, Any]) -> None:
    (noxu.nodes.lose if wanted["state"] == "lost" else noxu.nodes.restore)(wanted["name"])


class StepKind(NamedTuple):
    read: Callable[[Json, Path], Object]
    run: Callable[[Noxu, Mapping[str, Any]], None]


_NAMED: Final = ("kind", "name")
STEPS: Final[Mapping[str, StepKind]] = {
    "apply": StepKind(_source, _apply),
    "wait": StepKind(_fields((*_NAMED, "for"), ("namespace", "timeout")), _wait),
    "patch": StepKind(_patch, _patched),
    "scale": StepKind(_fields((*_NAMED, "replicas"), ("namespace",)), _scale),
    "delete": StepKind(_fields(_NAMED, ("namespace", "propagation")), _delete),
    "advance": StepKind(_seconds, _advance),
    "pod": StepKind(_pod, _pods),
    "node": StepKind(_node, _nodes),
}


def run(step: WorkloadStep, noxu: Noxu) -> None:
    """Raises ApiError, WaitTimeout, LookupError."""
    STEPS[step.kind].run(noxu, step.wanted)
