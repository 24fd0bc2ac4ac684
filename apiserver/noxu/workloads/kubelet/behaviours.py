"""What a simulated pod does besides coming up, as the annotation `noxu.dev/simulate` and the handle say it.

    image-pull-error      its images cannot be pulled
    crash-loop            its containers end with exit code 1 as soon as they start
    oom                   they are killed because of too much memory: 137, OOMKilled
    exit=3@10s            they end with this exit code, 10 seconds after their start; `exit=3`: at once
    never-ready           they run, and are never ready
    slow-ready=30s        they are ready 30 seconds after their start
    evicted               the pod is evicted by its node
    node-lost             nothing more is heard of the pod, as if its node were lost
    ready                 nothing of that: they start now, and are ready

Several are separated by commas. `CONTAINER:` before one makes it that of a container only: `proxy:crash-loop, slow-ready=30s`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from noxu.expressions import expression
from noxu.features import meant
from noxu.go.time import SECOND, parse_duration

OUT_OF_MEMORY: Final = 137
MAX_CODE: Final = 255


class ContainerBehaviour(NamedTuple):
    """Times are seconds after the start of the container.

    `exit_code` None: it runs on. `backs_off`: it waits before it starts again. `ready_after` None: as its probes say.
    """

    has_image: bool = True
    exit_code: int | None = None
    exit_after: float = 0.0
    exit_reason: str = ""
    backs_off: bool = True
    is_ever_ready: bool = True
    ready_after: float | None = None


class PodBehaviour(NamedTuple):
    """`containers` are those that a behaviour names; `others` is that of all others."""

    others: ContainerBehaviour = ContainerBehaviour()
    containers: Mapping[str, ContainerBehaviour] = {}
    is_evicted: bool = False
    is_lost: bool = False

    def of(self, container: str) -> ContainerBehaviour:
        return self.containers.get(container, self.others)


class _Kind(NamedTuple):
    """`read` makes fields of what stands after `=`, None if nothing does. `of_pod`: they are those of the pod."""

    form: str
    read: Callable[[str | None], dict[str, Any]]
    of_pod: bool = False


def _without_value(**fields: Any) -> Callable[[str | None], dict[str, Any]]:
    def read(value: str | None) -> dict[str, Any]:
        if value is not None:
            raise ValueError("it has no value")
        return fields

    return read


def _exit(value: str | None) -> dict[str, Any]:
    code, at, after = (value or "").partition("@")
    if not code.isascii() or not code.isdigit() or int(code) > MAX_CODE:
        raise ValueError("it has an exit code from 0 to 255 and may have a time: exit=3@10s")
    return {"exit_code": int(code), "exit_after": seconds_of(after) if at else 0.0}


def _slow(value: str | None) -> dict[str, Any]:
    return {"ready_after": seconds_of(value or "")}


def seconds_of(text: str) -> float:
    """The seconds of a duration of Go, which is not negative: `90s`, `1m30s`. Raises ValueError."""
    seconds = parse_duration(text) / SECOND
    if seconds < 0:
        raise ValueError(f"{text} is negative")
    return seconds


_KINDS: Final[Mapping[str, _Kind]] = {
    "image-pull-error": _Kind("image-pull-error", _without_value(has_image=False)),
    "crash-loop": _Kind("crash-loop", _without_value(exit_code=1)),
    "oom": _Kind("oom", _without_value(exit_code=OUT_OF_MEMORY, exit_reason="OOMKilled")),
    "never-ready": _Kind("never-ready", _without_value(is_ever_ready=False)),
    "slow-ready": _Kind("slow-ready=30s", _slow),
    "exit": _Kind("exit=3@10s", _exit),
    "evicted": _Kind("evicted", _without_value(is_evicted=True), of_pod=True),
    "node-lost": _Kind("node-lost", _without_value(is_lost=True), of_pod=True),
    "ready": _Kind("ready", _without_value(backs_off=False, ready_after=0.0)),
}
KNOWN: Final = ", ".join(kind.form for kind in _KINDS.values())
_PART: Final = expression(r"(?:(?P<container>[a-z0-9]([-a-z0-9]*[a-z0-9])?):)?(?P<name>[^=:]+)(?:=(?P<value>.*))?")


@lru_cache(maxsize=256)
def parse(text: str) -> PodBehaviour:
    """Raises ValueError, whose message says what is known."""
    of_pod: dict[str, Any] = {}
    fields: dict[str, dict[str, Any]] = {"": {}}
    for part in filter(None, map(str.strip, text.split(","))):
        match = _PART.fullmatch(part)
        name = match["name"].strip() if match else part
        if match is None or name not in _KINDS:
            raise ValueError(f'"{part}" is not known: there are {KNOWN}{meant(name, _KINDS)}')
        kind, container = _KINDS[name], match["container"] or ""
        if kind.of_pod and container:
            raise ValueError(f'"{part}": it is about the whole pod, so it names no container')
        try:
            read = kind.read(match["value"])
        except ValueError as error:
            raise ValueError(f'"{part}": {error}; it is written {kind.form}') from None
        (of_pod if kind.of_pod else fields.setdefault(container, {})).update(read)
    others = fields.pop("")
    containers = {name: ContainerBehaviour(**{**others, **own}) for name, own in fields.items()}
    return PodBehaviour(ContainerBehaviour(**others), containers, **of_pod)


NORMAL_LIFE: Final = PodBehaviour()
