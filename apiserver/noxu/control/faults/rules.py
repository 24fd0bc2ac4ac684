"""Rules: which requests a fault hits, when, and what it does to them.

    name: conflicts                     # optional; an error names the rule with it
    match:                              # a request has to have all of these
      verbs: [update, patch]            #   none: all verbs
      resource: widgets.example.com     #   none: all resources; short names and kinds work, too
      subresource: status               #   "" is the object itself; none: both
      namespace: shop
      name: a
      user: "system:serviceaccount:*"   #   * stands for any text
      userAgent: "operator/*"
    nth: 3                              # of the requests that match: the third one only
    every: 5                            #   each fifth one
    times: 2                            #   at most so many
    probability: 0.1                    #   by chance, which depends on the seed, the rule and the number of the request only
    from: 10s                           # object time after the rule was added, or a time
    until: 1m
    trigger: {created: gadgets}         # on only from this on, see `faults.triggers`
    error: Conflict                     # one effect

`parse` checks a rule and says everything that is wrong with it, with the path of each field. A rule is a value: what it has
seen is counted elsewhere (`faults.armed`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from noxu.api.errors import ApiError
from noxu.control.arguments import duration, time
from noxu.control.faults import triggers
from noxu.control.faults.effects import EFFECTS, Effect, Scope
from noxu.control.faults.triggers import Trigger
from noxu.features import meant
from noxu.values import Json, Object

VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
MAX_RULES: Final = 1000
MAX_NAME: Final = 100  # characters


CONVERSION: Final = "convert"
"""The verb of a review of a conversion, which is no request: only rules about webhooks that name no verbs have it."""


class Match(NamedTuple):
    """What a request has to have; None: anything. `user` and `agent` are patterns, in which * stands for any text."""

    verbs: frozenset[str] = frozenset(VERBS)
    resource: str | None = None
    subresource: str | None = None
    namespace: str | None = None
    name: str | None = None
    user: re.Pattern[str] | None = None
    agent: re.Pattern[str] | None = None


class HitLimits(NamedTuple):
    """Which of the requests that match are hit. `since` and `until`: seconds after the rule was added, or a time."""

    nth: int = 0
    every: int = 1
    times: int = 0
    probability: float = 1.0
    since: float | datetime = 0.0
    until: float | datetime | None = None


class Rule(NamedTuple):
    """`source` is what it was parsed from, with its name."""

    name: str
    match: Match
    limits: HitLimits
    effect: Effect
    source: Object
    trigger: Trigger | None = None
    scope: Scope = "request"


class _Problems(list[tuple[str, str]]):
    """What is wrong, by path."""

    def read(self, path: str, read: Callable[[Any], Any], value: Json, default: Any) -> Any:
        """A value as it is read; the default if that raises ValueError."""
        try:
            return read(value)
        except ValueError as error:
            self.append((path, str(error)))
            return default


def parse(rules: Sequence[Json], names: Sequence[str] = ()) -> list[Rule]:
    """The rules. `names` are those of rules that exist. Raises ApiError Invalid, with a cause for each field that is wrong."""
    problems, parsed, taken = _Problems(), [], set(names)
    if len(rules) > MAX_RULES:
        problems.append(("rules", f"there are {len(rules)}, and at most {MAX_RULES} are allowed"))
        rules = ()
    for n, value in enumerate(rules):
        path = f"rules[{n}]"
        if not isinstance(value, dict):
            problems.append((path, "a rule is an object"))
            continue
        name = str(value.get("name") or _free_name(value, taken))
        if name in taken:
            problems.append((f"{path}.name", f'there is a rule "{name}" already'))
        taken.add(name)
        parsed.append(_parse(value, name, path, problems))
    if problems:
        text = "; ".join(f"{path}: {why}" for path, why in problems)
        causes = [{"reason": "FieldValueInvalid", "message": why, "field": path} for path, why in problems]
        raise ApiError(422, f"the faults are invalid: {text}", "Invalid", {"causes": causes})
    return parsed


def _free_name(rule: Mapping[str, Json], taken: set[str]) -> str:
    """A name after the effect: `error`, `error-2`, …"""
    effect = next((name for name in rule if name in EFFECTS), "rule")
    names = (effect if n == 1 else f"{effect}-{n}" for n in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)


def _parse(rule: Object, name: str, path: str, problems: _Problems) -> Rule:
    problems.extend(
        (f"{path}.{key}", f"there is no such field{meant(key, _FIELDS)}") for key in rule if key not in _FIELDS
    )
    if not re.fullmatch(r"[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?", name) or len(name) > MAX_NAME:
        problems.append((f"{path}.name", f"a name has at most {MAX_NAME} letters, digits, - . _ between them"))
    match = _match(rule.get("match"), f"{path}.match", problems)
    limits = _limits(rule, path, problems)
    trigger = None
    if rule.get("trigger") is not None:
        trigger, wrong = triggers.parse(rule["trigger"])
        problems.extend((f"{path}.trigger{place and '.'}{place}", why) for place, why in wrong)
    named = [key for key in rule if key in EFFECTS]
    if len(named) != 1:
        has = f"{' and '.join(named)} are several" if named else "it has none"
        problems.append((path, f"a rule has one effect, and {has}: {', '.join(EFFECTS)}"))
        return Rule(name, match, limits, Effect("", {}), rule)
    kind = EFFECTS[named[0]]
    parameters = problems.read(f"{path}.{named[0]}", kind.read, rule[named[0]], {})
    if kind.verbs is not None and match.verbs.isdisjoint(kind.verbs):
        asked = ", ".join(sorted(match.verbs))
        problems.append((f"{path}.match.verbs", f"{named[0]} is for {', '.join(kind.verbs)}, so it never hits {asked}"))
    problems.extend(_contract(rule, named[0], parameters, path))
    scope: Scope = "act" if kind.scope == "program" and trigger is not None and "match" not in rule else kind.scope
    if "after" in (parameters.get("what"), parameters.get("when")):
        scope = _AFTER.get(scope, scope)
    problems.extend(_acting(rule, scope, path))
    if parameters.get("what") == "resume" and scope == "program":
        problems.append((f"{path}.process", "a paused program asks for nothing: resume needs a trigger, and no match"))
    verbs = match.verbs if kind.verbs is None else match.verbs.intersection(kind.verbs)
    if named[0] == "webhook" and parameters.get("what") != "deny" and match.verbs == frozenset(VERBS):
        verbs |= {CONVERSION}
    if named[0] == "lease":
        if match.resource not in (None, *_LEASES):
            problems.append((f"{path}.match.resource", "lease is about leases.coordination.k8s.io"))
        match = match._replace(resource=_LEASES[-1])
    if named[0] == "restart" and not isinstance(limits.since, datetime):
        limits = limits._replace(until=limits.since + parameters.get("seconds", 0.0))
    source = {"name": name, **rule}
    return Rule(name, match._replace(verbs=verbs), limits, Effect(named[0], parameters), source, trigger, scope)


def _contract(rule: Object, kind: str, parameters: Mapping[str, Any], path: str) -> list[tuple[str, str]]:
    """What a rule has to say about promises that every API server keeps."""
    problems = []
    allowed = rule.get("breaks-contract", False)
    if not isinstance(allowed, bool):
        problems.append((f"{path}.breaks-contract", "it is true or false"))
    breaks = kind == "watch" and parameters.get("what") == "drop"
    if breaks and allowed is not True:
        why = "no API server loses an event of a watch that goes on: write `breaks-contract: true` if that is meant"
        problems.append((f"{path}.watch", why))
    match = rule.get("match")
    if kind == "view" and isinstance(match, dict):
        if match.get("subresource"):
            problems.append((f"{path}.match.subresource", "a view is of objects, whose parts are seen together"))
        if not match.get("resource"):
            problems.append((f"{path}.match.resource", "a view is of one resource"))
    elif kind == "view":
        problems.append((f"{path}.match", "a view is of one resource: match: {resource: widgets}"))
    limits = [name for name in ("nth", "every", "times", "probability") if name in rule]
    if kind == "pod":
        problems.extend(_of_pods(rule, path))
    if kind == "view" and limits:
        problems.append((f"{path}.{limits[0]}", "a view lasts as long as the rule is on: from and until say how long"))
    return problems


def _of_pods(rule: Object, path: str) -> list[tuple[str, str]]:
    """What a rule for simulated pods must not have: it is about no request."""
    match = rule.get("match")
    named = [name for name in match if name not in ("resource", "namespace", "name")] if isinstance(match, dict) else []
    problems = [(f"{path}.match.{name}", "a pod is not asked for: only namespace and name say which") for name in named]
    if isinstance(match, dict) and match.get("resource") not in (None, "pods", "pod", "po", "Pod"):
        problems.append((f"{path}.match.resource", "it is about pods"))
    why = "the rule holds for its pods as long as it is on: from and until say how long, probability for how many"
    return [*problems, *((f"{path}.{name}", why) for name in ("nth", "every", "times") if name in rule)]


def _acting(rule: Object, scope: Scope, path: str) -> list[tuple[str, str]]:
    """What is wrong with a rule that does something by itself."""
    if scope != "act":
        return []
    problems = [] if rule.get("trigger") is not None else [(path, "it needs a trigger, which says when it happens")]
    unused = [name for name in ("match", *_LIMITED) if rule.get(name) is not None]
    why = "no request is hit: the trigger says when it happens"
    return problems + [(f"{path}.{name}", why) for name in unused]


# -- match ------------------------------------------------------------------------------------------------------------


def _match(value: Json, path: str, problems: _Problems) -> Match:
    if value is None:
        return Match()
    if not isinstance(value, dict):
        problems.append((path, "it is an object, such as {verbs: [update], resource: widgets}"))
        return Match()
    read: dict[str, Any] = {}
    for name, given in value.items():
        if name not in _MATCHED:
            problems.append((f"{path}.{name}", f"there is no such field{meant(name, _MATCHED)}"))
        elif given is not None:
            field, reader = _MATCHED[name]
            read[field] = problems.read(f"{path}.{name}", reader, given, Match._field_defaults[field])
    return Match(**read)


def _verbs(value: Json) -> frozenset[str]:
    verbs = [value] if isinstance(value, str) else value
    if not isinstance(verbs, list) or not verbs:
        raise ValueError(f"it is a list of verbs: {', '.join(VERBS)}")
    for verb in verbs:
        if verb not in (*VERBS, "*", "write", "read"):
            raise ValueError(f"{verb!r} is none of {', '.join(VERBS)}, read, write, *{meant(str(verb), VERBS)}")
    named = {part for verb in verbs for part in _GROUPS.get(str(verb), (str(verb),))}
    return frozenset(named)


_GROUPS: Final[Mapping[str, Sequence[str]]] = {"*": VERBS, "read": VERBS[:3], "write": VERBS[3:]}


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise ValueError("it is a text")
    return value


def _pattern(value: Json) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, _text(value).split("*"))), re.DOTALL)


_MATCHED: Final[Mapping[str, tuple[str, Callable[[Json], Any]]]] = {
    "verbs": ("verbs", _verbs),
    "resource": ("resource", _text),
    "subresource": ("subresource", _text),
    "namespace": ("namespace", _text),
    "name": ("name", _text),
    "user": ("user", _pattern),
    "userAgent": ("agent", _pattern),
}

# -- limits -----------------------------------------------------------------------------------------------------------


def _limits(rule: Object, path: str, problems: _Problems) -> HitLimits:
    read: dict[str, Any] = {}
    for name, (field, reader) in _LIMITED.items():
        if rule.get(name) is not None:
            read[field] = problems.read(f"{path}.{name}", reader, rule[name], HitLimits._field_defaults[field])
    limits = HitLimits(**read)
    if "nth" in read and read.keys() & {"every", "times", "probability"}:
        other = min(read.keys() & {"every", "times", "probability"})
        problems.append((f"{path}.nth", f"it is one request, so {other} says nothing: leave one of them out"))
    if isinstance(limits.until, type(limits.since)) and limits.until <= limits.since:  # type: ignore[operator]
        problems.append((f"{path}.until", "it is not after `from`, so the rule can never hit"))
    return limits


def _positive(value: Json) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError("it is an integer from 1 on")
    return value


def _probability(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise ValueError("it is a number above 0 and up to 1")
    return float(value)


def _moment(value: Json) -> float | datetime:
    """A duration after the rule was added, or a time."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return float(value)
    for read in (duration, time):
        try:
            return read(_text(value))
        except ValueError:
            continue
    raise ValueError("it is a duration such as 10s, or a time such as 2030-01-01T00:00:00Z")


_LIMITED: Final[Mapping[str, tuple[str, Callable[[Json], Any]]]] = {
    "nth": ("nth", _positive),
    "every": ("every", _positive),
    "times": ("times", _positive),
    "probability": ("probability", _probability),
    "from": ("since", _moment),
    "until": ("until", _moment),
}
_AFTER: Final[Mapping[Scope, Scope]] = {"request": "answer", "program": "program answer"}
_LEASES: Final = ("lease", "leases", "leases.coordination.k8s.io")
CHOOSING: Final = ("nth", "every", "times", "probability")
"""Fields that choose among the requests that match."""
_FIELDS: Final = ("name", "match", "trigger", "breaks-contract", *_LIMITED, *EFFECTS)


# -- a rule of arguments ----------------------------------------------------------------------------------------------


def from_arguments(arguments: Mapping[str, Any]) -> Object:
    """A rule whose `match` is spread, as Python and the command line write it.

    `user_agent` is `userAgent`, `from_` is `from`; `name` is that of the object, `rule_name` that of the rule.

    >>> from_arguments({"resource": "widgets", "verbs": ["update"], "error": "Conflict", "times": 3})
    {'match': {'resource': 'widgets', 'verbs': ['update']}, 'error': 'Conflict', 'times': 3}
    """
    renamed = {_PYTHON.get(name, name): value for name, value in arguments.items() if value is not None}
    match = {name: value for name, value in renamed.items() if name in _MATCHED}
    others = {_OF_RULE.get(name, name): value for name, value in renamed.items() if name not in _MATCHED}
    return {**({"match": match} if match else {}), **others}


_PYTHON: Final = {"user_agent": "userAgent", "from_": "from", "breaks_contract": "breaks-contract"}
_OF_RULE: Final = {"rule_name": "name"}
