"""Triggers: a state of an object from which on a rule is on, instead of from the moment when it is added.

    trigger:
      updated: widgets.example.com      # or created, deleted
      namespace: shop
      name: a
      changed:                          # fields that the update has changed; of updates only
        spec.replicas: {from: 1, to: 2} #   from what, to what; {} is any change
        metadata.labels["a.b/c"]: {}    #   a name with dots is quoted, in brackets
      condition: "has(self.status)"     # CEL over the new object (of a deletion: the last state)
      nth: 2                            # the second time only (default: the first)
      after: 5s                         # so much object time later

A rule whose trigger has fired stays on: `times`, `until` say for how long. `fires` looks at one change, and knows no store.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from noxu import cel
from noxu.control.arguments import duration
from noxu.features import meant
from noxu.values import Json, Object

Happening = Literal["created", "updated", "deleted"]
_HAPPENINGS: Final[tuple[Happening, ...]] = ("created", "updated", "deleted")
_ABSENT: Final = object()


class FieldChange(NamedTuple):
    """A field that an update has changed. `before`, `after`: its values, `_ABSENT`: any."""

    path: tuple[str, ...]
    before: Any = _ABSENT
    after: Any = _ABSENT


class Trigger(NamedTuple):
    """`after` is in seconds."""

    happening: Happening
    resource: str
    namespace: str | None = None
    name: str | None = None
    changed: tuple[FieldChange, ...] = ()
    condition: cel.AwaitedCondition | None = None
    nth: int = 1
    after: float = 0.0


def parse(value: Json) -> tuple[Trigger | None, list[tuple[str, str]]]:
    """(The trigger, what is wrong with it by path); None if it cannot be read."""
    if not isinstance(value, dict):
        return None, [("", "it is an object, such as {created: widgets}")]
    problems = [(name, f"there is no such field{meant(name, _FIELDS)}") for name in value if name not in _FIELDS]
    named = [happening for happening in _HAPPENINGS if happening in value]
    if len(named) != 1:
        return None, [*problems, ("", f"it has one of {', '.join(_HAPPENINGS)}, with a resource")]
    happening = named[0]
    read: dict[str, Any] = {}
    for name, (field, reader) in _READERS.items():
        if value.get(name) is None:
            continue
        try:
            read[field] = reader(value[name])
        except ValueError as error:
            problems.append((name, str(error)))
    if "changed" in read and happening != "updated":
        problems.append(("changed", f"it is about updates: {happening} objects have no other state"))
    if not isinstance(value[happening], str):
        problems.append((happening, "it is the name of a resource, such as widgets.example.com"))
    return Trigger(happening, str(value[happening]), **read), problems


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise ValueError("it is a text")
    return value


def _positive(value: Json) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError("it is an integer from 1 on")
    return value


def _changes(value: Json) -> tuple[FieldChange, ...]:
    if not isinstance(value, dict) or not value:
        raise ValueError("it names fields, such as {spec.replicas: {from: 1, to: 2}}")
    changes = []
    for path, states in value.items():
        if not isinstance(states or {}, dict) or not set(states or {}) <= {"from", "to"}:
            raise ValueError(f"{path} has `from`, `to`, both or none of them")
        states = states or {}
        changes.append(FieldChange(steps_of(path), states.get("from", _ABSENT), states.get("to", _ABSENT)))
    return tuple(changes)


_STEP: Final = re.compile(r'(?:^|(?<!^)\.)([^.\[\]"]+)|\[("(?:[^"\\]|\\.)*")\]')
_PLAIN: Final = re.compile(r'[^.\[\]"]+')


def steps_of(path: str) -> tuple[str, ...]:
    """The names in a path: `metadata.labels["a.b/c"]`. Raises ValueError."""
    steps, end = list[str](), 0
    while end < len(path):
        found = _STEP.match(path, end)
        if found is None:
            raise ValueError(f'{path!r} is no path: it is like spec.replicas or metadata.labels["a.b/c"]')
        steps.append(found[1] or json.loads(found[2]))
        end = found.end()
    return tuple(steps)


def path_of(steps: Sequence[str]) -> str:
    """The path of such names, which `steps_of` reads."""
    return "".join(
        f".{step}" if _PLAIN.fullmatch(step) else f"[{json.dumps(step, ensure_ascii=False)}]" for step in steps
    ).removeprefix(".")


_READERS: Final[Mapping[str, tuple[str, Callable[[Json], Any]]]] = {
    "namespace": ("namespace", _text),
    "name": ("name", _text),
    "changed": ("changed", _changes),
    "condition": ("condition", lambda value: cel.AwaitedCondition(_text(value))),
    "nth": ("nth", _positive),
    "after": ("after", lambda value: duration(_text(value))),
}
_FIELDS: Final = (*_HAPPENINGS, *_READERS)


def concerns(trigger: Trigger, namespace: str, name: str) -> bool:
    """Whether a trigger is about an object of its resource."""
    return trigger.namespace in (None, namespace) and trigger.name in (None, name)


def fires(trigger: Trigger, old: Object | None, new: Object | None) -> bool:
    """Whether a change is what a trigger waits for. None: the object did not exist, or does not any more."""
    happening = "created" if old is None else "deleted" if new is None else "updated"
    if happening != trigger.happening:
        return False
    if not all(_is_changed(change, old, new) for change in trigger.changed):
        return False
    if trigger.condition is None:
        return True
    outcome = trigger.condition.evaluate(new if new is not None else old or {})
    return not outcome.error and outcome.value is True


def _is_changed(change: FieldChange, old: Object | None, new: Object | None) -> bool:
    before, after = _at(old, change.path), _at(new, change.path)
    if before == after:
        return False
    return change.before in (_ABSENT, before) and change.after in (_ABSENT, after)


def _at(value: Any, path: tuple[str, ...]) -> Any:
    """The value of a field; None if it is absent."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
