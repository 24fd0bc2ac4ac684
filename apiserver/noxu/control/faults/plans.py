"""Plans: rules and a seed in a file, and presets, which are plans with a name.

    seed: 7
    presets: [conflicts, slow-api]
    rules:
    - match: {resource: widgets, verbs: [update]}
      error: Conflict
      times: 3

A preset is the rules of a class of bugs that published studies have found in controllers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.features import meant
from noxu.values import Json, Object

PRESETS: Final[Mapping[str, Sequence[Object]]] = {
    "conflicts": [
        {"name": "conflicts", "match": {"verbs": ["update", "patch"]}, "probability": 0.3, "error": "Conflict"},
    ],
    "slow-api": [
        {"name": "slow-api", "delay": "10ms..200ms"},
        {"name": "slow-api-retry", "probability": 0.05, "error": "TooManyRequests"},
    ],
    "ambiguous-writes": [
        {"name": "ambiguous-writes", "match": {"verbs": ["write"]}, "probability": 0.15, "reset": "after"},
        {"name": "ambiguous-writes-unsent", "match": {"verbs": ["write"]}, "probability": 0.1, "reset": "before"},
        {"name": "ambiguous-writes-store", "match": {"verbs": ["write"]}, "probability": 0.05, "store": "unknown"},
    ],
    "flaky-watch": [
        {"name": "flaky-watch-late", "probability": 0.2, "watch": {"late": "20ms..300ms"}},
        {"name": "flaky-watch-close", "probability": 0.05, "watch": "close"},
        {"name": "flaky-watch-expire", "probability": 0.03, "watch": "expire"},
    ],
    "stale-reads": [
        {"name": "stale-reads", "probability": 0.5, "stale": {"revisions": 5}},
    ],
    "restart": [
        {"name": "restart", "from": "1s", "restart": "2s"},
    ],
    "leader-loss": [
        {"name": "leader-loss", "from": "2s", "until": "30s", "lease": "lost"},
    ],
    "crashes": [
        {"name": "crashes", "match": {"verbs": ["write"]}, "probability": 0.2, "process": {"kill": "after"}},
    ],
    "partition": [
        {"name": "partition", "probability": 0.2, "reset": "before"},
        {"name": "partition-hang", "probability": 0.02, "hang": True},
    ],
}  # fmt: skip
_FIELDS: Final = ("seed", "presets", "rules")


class Plan(NamedTuple):
    """Rules as they are written, those of presets first."""

    rules: Sequence[Object]
    seed: int = 0


def read(text: str) -> Plan:
    """A plan in YAML or JSON. Raises ApiError."""
    try:
        decoded = codec.decode_yaml(text.encode())
    except ValueError as error:
        raise ApiError(400, f"the plan cannot be read: {error}", "BadRequest") from None
    return checked(decoded.value)


def checked(value: Any) -> Plan:
    """A plan, or a list of rules. Raises ApiError."""
    plan = {"rules": list(value)} if isinstance(value, list | tuple) else value
    if not isinstance(plan, Mapping):
        raise _invalid("a plan has rules: {rules: [{error: Conflict}]}")
    for name in plan:
        if name not in _FIELDS:
            raise _invalid(f'a plan has no "{name}", only {", ".join(_FIELDS)}{meant(str(name), _FIELDS)}')
    seed, rules = plan.get("seed") or 0, plan.get("rules") or []
    if not isinstance(seed, int) or isinstance(seed, bool) or not isinstance(rules, list):
        raise _invalid("`seed` is an integer, and `rules` is a list")
    return Plan([*preset_rules(plan.get("presets") or []), *rules], seed)


def preset_rules(names: Json) -> list[Object]:
    """The rules of presets. Raises ApiError."""
    if not isinstance(names, list):
        raise _invalid(f"`presets` is a list of names: {', '.join(PRESETS)}")
    for name in names:
        if name not in PRESETS:
            raise _invalid(f'there is no preset "{name}", only {", ".join(PRESETS)}{meant(str(name), PRESETS)}')
    return [rule for name in names for rule in PRESETS[str(name)]]


def latency(text: str) -> Object:
    """The rule of `--latency`: every answer is late. Its range is checked with the others."""
    return {"name": "latency", "delay": text}


def _invalid(message: str) -> ApiError:
    return ApiError(422, f"the plan is invalid: {message}", "Invalid", {})
