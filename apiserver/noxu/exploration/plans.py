"""A plan: the one thing that happens in a run besides its workload, as a file that a person can read, change and run again.

    class: stale
    title: the view of widgets a stays at its state before the deletion, and the controller starts again
    faults: []                                   # rules of docs/faults.md
    moves:                                       # one after the other
    - {when: {updated: widgets.example.com, name: a, changed: {metadata.deletionTimestamp: {}}}, mark: before}
    - {when: {created: widgets.example.com, name: a}, view: {resource: widgets.example.com, from: before}, restart: true}
    instances: 1                                 # of the program at the same time
    steps: [{after: 2, patch: {…}}]              # of the workload, besides its own

A move waits for its trigger (see control.faults.triggers) when the one before has been made; `nth` counts from the first step on. `mark` gives
the revision a name, or the one just before it (`before: true`). `when: {step: 3}` is just before the third step of the workload.
`view` freezes what the controller sees of a resource, or of one object, at a marked revision (`hold: true`: it lists again when the
view ends, and never sees what was between). `restart` kills the program, which is started again; `delete` deletes an object.
A view ends when the workload waits for something, because the controller cannot do what it sees no reason for. `through: 5` lets it
last: until step 5 is done, the workload does not wait. What is left of views and faults ends with the last step of the workload.

A plan of faults (`control.faults.plans`: `seed`, `presets`, `rules`), as the console saves it, is one, too, if nothing in it is left to
chance; its class is that of its first effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from noxu.api.errors import ApiError
from noxu.arguments.explore import CLASSES
from noxu.control.faults import plans as fault_plans
from noxu.control.faults import rules, triggers
from noxu.features import meant
from noxu.values import Json, Object

WORKLOADS: Final = ("statefulsets.apps", "deployments.apps", "daemonsets.apps", "jobs.batch")
"""The resources whose pods a plan of the class `workload` makes fail."""
_FIELDS: Final = ("class", "title", "faults", "moves", "instances", "steps")
_MOVES: Final = ("when", "mark", "before", "through", "view", "views", "restart", "delete", "release", "faults")
_VIEW: Final = ("resource", "namespace", "name", "from", "hold")
_OF_FAULTS: Final = ("rules", "presets")
"""The fields of a plan of faults that a plan has not."""
_CLASSES: Final[Mapping[str, str]] = {
    "process": "crash",
    "view": "stale",
    "stale": "stale",
    "watch": "unobserved",
    "reset": "ambiguous",
    "store": "ambiguous",
}
"""The class of an effect; what is not here refuses or delays requests."""


class PlanError(ValueError):
    """A plan cannot be read. The message says where, and what is right."""


class RunPlan(NamedTuple):
    """`about` are the shapes that it is about, for coverage; `worth` orders plans, the greatest first. Neither is in a file."""

    klass: str
    title: str
    faults: tuple[Object, ...] = ()
    moves: tuple[Object, ...] = ()
    instances: int = 1
    steps: tuple[Object, ...] = ()
    about: tuple[str, ...] = ()
    worth: float = 0.0

    @property
    def value(self) -> Object:
        """What is in its file."""
        value: Object = {"class": self.klass, "title": self.title}
        for name, given in (("faults", self.faults), ("moves", self.moves), ("steps", self.steps)):
            if given:
                value[name] = list(given)
        return value | ({"instances": self.instances} if self.instances > 1 else {})

    @property
    def is_clean(self) -> bool:
        return self.klass == "clean"


CLEAN: Final = RunPlan("clean", "nothing happens but the workload")


def text_of(plan: RunPlan) -> str:
    return yaml.safe_dump(plan.value, sort_keys=False, width=120)


def read(path: Path) -> RunPlan:
    """Raises PlanError."""
    try:
        value = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"{path} cannot be read: {getattr(error, 'strerror', '') or error}") from None
    except yaml.YAMLError as error:
        raise PlanError(f"{path} is no YAML: {' '.join(str(error).split())}") from None
    try:
        return parse(value)
    except PlanError as error:
        raise PlanError(f"{path}: {error}") from None


def parse(value: Json) -> RunPlan:
    """Raises PlanError."""
    if not isinstance(value, dict):
        raise PlanError("a plan is an object with class, title, faults, moves")
    if "class" not in value and any(name in value for name in _OF_FAULTS):
        value = _of_faults(value)
    _check_names(value, _FIELDS, "")
    klass = value.get("class")
    if klass not in (*CLASSES, CLEAN.klass):
        raise PlanError(f"class: {klass!r} is none of {', '.join(CLASSES)}{meant(str(klass), CLASSES)}")
    for name in ("faults", "moves", "steps"):
        if not isinstance(value.get(name, []), list) or not all(isinstance(each, dict) for each in value.get(name, [])):
            raise PlanError(f"{name}: it is a list of objects")
    instances = value.get("instances", 1)
    if instances not in (1, 2):
        raise PlanError("instances: it is 1 or 2")
    try:
        rules.parse(value.get("faults", []))
    except ApiError as error:
        raise PlanError(f"faults: {error.message}") from None
    for n, move in enumerate(value.get("moves", [])):
        _check_move(move, f"moves[{n}]")
    return RunPlan(
        str(klass),
        str(value.get("title") or klass),
        tuple(value.get("faults", ())),
        tuple(value.get("moves", ())),
        instances,
        tuple(value.get("steps", ())),
    )


def _of_faults(value: Object) -> Object:
    """A plan of faults as a plan of a run. Raises PlanError."""
    try:
        found: Sequence[Json] = fault_plans.checked(value).rules
    except ApiError as error:
        raise PlanError(error.message) from None
    written = [rule for rule in found if isinstance(rule, dict)]
    if by_chance := next((rule for rule in written if "probability" in rule), None):
        raise PlanError(
            f"rules: {by_chance.get('name', 'a rule')} hits by chance, and a run is to be the same again: `nth` and `times` say which"
        )
    effects = [_CLASSES[name] for rule in written for name in rule if name in _CLASSES]
    title = ", ".join(str(rule["name"]) for rule in written if "name" in rule)
    return {"class": effects[0] if effects else "refused", "title": title, "faults": list(found)}


def _check_names(value: Object, known: Sequence[str], place: str) -> None:
    for name in value:
        if name not in known:
            raise PlanError(
                f"{place}{name}: there is no such field{meant(str(name), known)}: there are {', '.join(known)}"
            )


def _check_move(move: Mapping[str, Any], place: str) -> None:
    _check_names(dict(move), _MOVES, f"{place}.")
    if "when" not in move:
        raise PlanError(f"{place}: it lacks `when`, its trigger")
    when = move["when"]
    if isinstance(when, dict) and "step" in when:
        if len(when) > 1 or not isinstance(when["step"], int):
            raise PlanError(f"{place}.when: {{step: 3}} is the number of a step of the workload, from 1 on")
    elif problems := triggers.parse(when)[1]:
        where, why = problems[0]
        raise PlanError(f"{place}.when{where and '.'}{where}: {why}")
    for view in views_of(move):
        if not isinstance(view, dict) or not view.get("resource"):
            raise PlanError(f"{place}.view: it has a resource, and perhaps namespace, name, from, hold")
        _check_names(view, _VIEW, f"{place}.view.")


def views_of(move: Mapping[str, Any]) -> list[Any]:
    """The views that a move freezes."""
    return [*([move["view"]] if "view" in move else []), *move.get("views", ())]
