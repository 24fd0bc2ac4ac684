"""The recording of a run: every write with its author and what its client had been shown, and what was there at the end.

Plans are made of the recordings of clean runs, and each other run is judged against them, so a recording is plain data: it can
be saved (`.noxu`, JSON compressed by gzip), read by a person, and judged again.

An author is `controller` for the program under test (`controller-2` for the second one), `workload` for the steps,
`fault` for what a plan does to objects, and the name of a controller of this server otherwise.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import orjson

from noxu.values import Object

CONTROLLER: Final = "controller"
WORKLOAD: Final = "workload"
FAULT: Final = "fault"
VERBS: Final[Mapping[str, str]] = {"apply": "patch"}
"""The verb of the API for that of a recorded write."""
FORMAT: Final = 1
MIB: Final = 1024 * 1024
MAX_SIZE: Final = 512 * MIB  # of a file that is read, when it is no longer compressed
MAX_OUTPUT: Final = 64 * 1024  # characters of what a program has said
PANIC: Final = re.compile(r"^(panic: .*|fatal error: .*|thread '.*' panicked at .*)$", re.MULTILINE)
"""How a crash begins. A traceback of Python is none: programs catch exceptions, and log them."""


class ObjectPlace(NamedTuple):
    """An object: `widgets.example.com`, its namespace ("" for none), its name."""

    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.resource} {self.namespace}/{self.name}" if self.namespace else f"{self.resource} {self.name}"


class Shown(NamedTuple):
    """What a client was shown before it wrote: by `watch`, `get` or `list`; `event` is ADDED, MODIFIED, DELETED, or ""."""

    how: str
    revision: int
    event: str
    place: ObjectPlace


class RecordedChange(NamedTuple):
    """A write that the store has. `before` None: created; `after` None: deleted.

    `step`: the number of the step of the workload during which it happened; 0: before the first one.
    """

    revision: int
    verb: str
    subresource: str
    place: ObjectPlace
    author: str
    before: Object | None
    after: Object | None
    why: tuple[Shown, ...]
    step: int

    @property
    def is_of_controller(self) -> bool:
        return self.author.startswith(CONTROLLER)

    @property
    def object(self) -> Object:
        """The newest state that there is of it."""
        return self.after if self.after is not None else self.before or {}

    @property
    def effect(self) -> str:
        return "create" if self.before is None else "delete" if self.after is None else "update"


class Life(NamedTuple):
    """One life of a program: `status` None: it ran until the end. `planned`: a plan has ended it."""

    program: int
    status: int | None
    planned: bool


class StepResult(NamedTuple):
    """`failure` "": the step has succeeded, and the run has become idle. `seconds` of wall time.

    `is_outdated`: when it was done, a plan showed the past to the controller, which cannot know better. `tries_again`: the plan had
    refused the last attempts of the controller, which slept until the next one.
    """

    title: str
    seconds: float
    failure: str = ""
    never_idle: str = ""
    is_outdated: bool = False
    tries_again: bool = False


@dataclass(frozen=True, slots=True)
class RunRecording:
    """`objects` are those at the end. `requests`: how many of the controller, by verb, resource (`pods`, `pods/exec`) and code. `seconds` are those of
    the run, without its waits for a processor.

    `broken`: invariants that did not hold, with where. `habits`: how often the controller had each bad habit
    (control/manners), and what was seen first.
    """

    changes: Sequence[RecordedChange]
    objects: Sequence[tuple[ObjectPlace, Object]]
    requests: Sequence[tuple[str, str, int, int]]
    lives: Sequence[Life]
    steps: Sequence[StepResult]
    output: str
    seconds: float
    fired: Sequence[Object] = ()
    broken: Sequence[tuple[str, str]] = ()
    habits: Sequence[tuple[str, int, str]] = ()
    watches: tuple[int, ...] = ()
    """How many watches each program had begun when it was idle after its start."""
    ports: tuple[int, ...] = ()
    """At which the programs listen, if they have chosen them: two runs at once would be in each other's way."""
    refusals: Sequence[tuple[str, int, str]] = ()
    """Kinds of requests of the controller that never succeeded: `create of pods/exec`, how often, and what the server said."""
    warnings: Sequence[str] = ()
    """What events of the cluster have warned of, the newest last."""


def number_of_steps(recording: RunRecording) -> int:
    """How many steps of a workload it has, without its start and its end."""
    return max(len(recording.steps) - 2, 0)


def bursts(recording: RunRecording) -> list[int]:
    """By the number of a step, the step with which its burst has begun."""
    acting = {change.step for change in recording.changes if change.author == WORKLOAD}
    begun, found = 0, []
    for step in range(max((change.step for change in recording.changes), default=0) + 1):
        begun = step if step in acting else begun
        found.append(begun)
    return found


def ends_of_bursts(recording: RunRecording) -> list[int]:
    """The steps after which the workload does something, so that they are settled; not the last one."""
    begun = bursts(recording)
    return [step for step in range(min(number_of_steps(recording), len(begun) - 1)) if begun[step] != begun[step + 1]]


def at_step(recording: RunRecording, step: int) -> RunRecording:
    """The recording up to the moment when a step was done; 0: the start. Its objects are those of then."""
    first: dict[ObjectPlace, Object | None] = {}
    for change in recording.changes:
        first.setdefault(change.place, change.before)
    there = {place: value for place, value in recording.objects if place not in first}
    there |= {place: value for place, value in first.items() if value is not None}
    changes = [change for change in recording.changes if change.step <= step]
    for change in changes:
        if change.after is None:
            there.pop(change.place, None)
        else:
            there[change.place] = change.after
    return replace(recording, changes=changes, objects=sorted(there.items()))


# -- as bytes ---------------------------------------------------------------------------------------------------------


class RunFile(NamedTuple):
    """What is in a `.noxu` of an exploration: a run, what was done to it, and of a finding what it says, and a run without the plan.

    `finding`: {"sentence": "…", "details": ["…"], "others": ["…"], "stable": true}.
    """

    plan: Object
    run: RunRecording
    finding: Object | None = None
    clean: RunRecording | None = None


def to_bytes(file: RunFile) -> bytes:
    """A file that `from_bytes` reads."""
    value = {"format": FORMAT, "plan": file.plan, "recording": file.run, "finding": file.finding, "clean": file.clean}
    return gzip.compress(orjson.dumps(value, default=_plain), mtime=0)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    raise TypeError(type(value).__name__)


def from_bytes(content: bytes) -> RunFile:
    """Raises ValueError for another file."""
    try:
        value = orjson.loads(_decompressed(content))
        if value["format"] != FORMAT:
            raise ValueError(f"its format is {value['format']}, and this version reads {FORMAT}")
        clean = value.get("clean")  # earlier versions wrote none
        return RunFile(
            value["plan"],
            _recording(value["recording"]),
            value.get("finding"),
            None if clean is None else _recording(clean),
        )
    except (OSError, EOFError, AttributeError, KeyError, TypeError, zlib.error, orjson.JSONDecodeError) as error:
        raise ValueError(f"it is no recording of an exploration: {error}") from None


def _decompressed(content: bytes) -> bytes:
    """Raises ValueError for more than MAX_SIZE: a few bytes may become anything."""
    with gzip.open(io.BytesIO(content)) as file:
        found = file.read(MAX_SIZE + 1)
    if len(found) > MAX_SIZE:
        raise ValueError(f"it has more than {MAX_SIZE // MIB} MiB")
    return found


def _recording(value: Object) -> RunRecording:
    return RunRecording(
        [_change(item) for item in value["changes"]],
        [(ObjectPlace(*place), found) for place, found in value["objects"]],
        [tuple(item) for item in value["requests"]],
        [Life(*item) for item in value["lives"]],
        [StepResult(*item) for item in value["steps"]],
        value["output"],
        value["seconds"],
        value["fired"],
        [tuple(item) for item in value["broken"]],
        [tuple(item) for item in value["habits"]],
        tuple(value["watches"]),
        tuple(value["ports"]),
        [tuple(item) for item in value.get("refusals", ())],
        value.get("warnings", ()),
    )


def _change(item: Sequence[Any]) -> RecordedChange:
    change = RecordedChange(*item)
    why = tuple(Shown(how, revision, event, ObjectPlace(*place)) for how, revision, event, place in change.why)
    return change._replace(place=ObjectPlace(*change.place), why=why)
