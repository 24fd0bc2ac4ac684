"""The defaults of built-in kinds: the rules in `data/defaults.json` and the defaults that fields declare, as functions.

The rules of a type hold wherever a value of the type is; outer values come first (upstream's generated defaulters). A
rule fills in `path` if it is unset: with `value`, with the value at `from`, or with the result of `compute`. In a path,
`[*]` stands for every item of a list, and the other paths of the rule that begin alike mean the same item:

    {"path": "spec.ports[*].targetPort", "from": "spec.ports[*].port", "zero": [0, ""]}

A field that Go holds in a pointer is unset if it is absent, others also if they are empty: `replicas: 0` remains.

Functions are made when the first object of a kind arrives. They change objects in place, and are idempotent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from noxu.cpu_budget import spend
from noxu.go.structs import FEW, ITEM_UNITS
from noxu.kinds import facts
from noxu.kinds.facts import ReleasePart
from noxu.releases import NEWEST, OLDEST
from noxu.values import Json, Object, copy

Fill = Callable[[Any], None]

GATES: Final = {"MaxUnavailableStatefulSet": 35, "SELinuxMountReadWriteOncePod": 28}
"""The feature gates of rules that are on by default, and since which release."""
_SINCE: Final = {"status.loadBalancer.ingress[*].ipMode": 30}
"""The paths of rules whose gate was off in older releases, and is gone: LoadBalancerIPMode."""
_WRITTEN_ELSEWHERE: Final = ("stringData", "now")
"""Computations that the code of a kind does."""
_QUANTITIES: Final = "core/v1.ResourceList"
_MILLI: Final = -3


@cache
def defaulter(key: str, release: int = NEWEST) -> Fill | None:
    """The function that fills in the defaults of a type, such as `core/v1.Pod`; None if it has none."""
    part, _, name = key.rpartition(".")
    origin = ReleasePart(part, release)
    type_facts = facts.types_of(origin)[name]
    if key == _QUANTITIES:
        return _round_up
    if "fields" not in type_facts:
        return None if "is" not in type_facts else _of_expression(type_facts["is"], origin)
    rules = [
        fill
        for type_ in _with_embedded(key, release)
        for rule in _rules().get(type_, ())
        if (fill := _rule(type_, rule, release))
    ]
    inner: list[tuple[str, Fill]] = []
    for field in facts.fields(key, release):
        if "default" in field.extra:
            rules.append(_declared(field))
        below = _of_expression(field.expression, field.origin)
        if below is not None:
            inner.append((field.name, below))
    if not rules and not inner:
        return None

    def fill_in(value: Object) -> None:
        for rule in rules:
            rule(value)
        for name, below in inner:
            item = value.get(name)
            if item is not None:
                below(item)

    return fill_in


def _of_expression(expression: Json, origin: ReleasePart) -> Fill | None:
    if isinstance(expression, list):
        below = _of_expression(expression[0], origin)
        return None if below is None else _each(below)
    if isinstance(expression, dict):
        (element,) = expression.values()
        below = _of_expression(element, origin)
        return None if below is None else lambda values: _each(below)(list(values.values()))
    return None if expression in facts.SCALARS else defaulter(facts.qualified(expression, origin.part), origin.release)


def _each(below: Fill) -> Fill:
    def fill_in(values: list[Json]) -> None:
        if len(values) > FEW:
            spend(ITEM_UNITS * len(values))
        for value in values:
            if value is not None:
                below(value)

    return fill_in


@cache
def _rules() -> dict[str, list[Object]]:
    rules: dict[str, list[Object]] = facts.read("defaults.json")
    return rules


def _with_embedded(key: str, release: int) -> Iterator[str]:
    yield key
    part, _, name = key.rpartition(".")
    for field_facts in facts.types_of(ReleasePart(part, release))[name]["fields"]:
        if isinstance(field_facts, dict) and not field_facts["embed"].endswith("TypeMeta"):
            yield from _with_embedded(facts.qualified(field_facts["embed"], part), release)


def _round_up(resources: Object) -> None:
    """Resources are counted in thousandths at most (core/v1's SetDefaults_ResourceList)."""
    for name, text in resources.items():
        if text and (text[-1] in "nu" or "e-" in text):
            from noxu.go import quantity  # few are so small

            amount = quantity.parse(text)
            if amount.exponent < _MILLI:
                digits = -(-amount.digits // 10 ** (_MILLI - amount.exponent))
                resources[name] = str(quantity.Quantity(digits, _MILLI, amount.is_int64, amount.format))


# -- one rule ---------------------------------------------------------------------------------------------------------

Scope = dict[str, Any]
"""The values that wildcards stand for, by path: `{"": the object, "spec.ports[*]": one of its ports}`."""


def _rule(key: str, rule: Object, release: int) -> Fill | None:
    """A rule of the data as a function; None if it does not hold, or is about a field that the release does not have."""
    is_on = "gate" not in rule or GATES.get(rule["gate"], NEWEST + 1) <= release
    is_on = is_on and _SINCE.get(rule["path"], OLDEST) <= release
    if rule.get("compute") in _WRITTEN_ELSEWHERE or not is_on or "key" in rule:
        return None
    conditions = _conditions(key, rule.get("when", []))
    if conditions is None:
        return None
    path, always, zero = rule["path"], rule.get("always", False), rule.get("zero")
    write = _write_rule(key, path, release)
    if write is None and release != NEWEST:
        return None
    is_pointer = write in ("pointer", "null")
    find = _source(rule)
    merges = rule.get("compute") == "mergeMissing"
    prefix, _, name = path.rpartition(".")
    if not (conditions or merges or always or prefix or "[*]" in path or zero is not None):
        return _of_field(name, is_pointer, find)

    def fill_in(value: Object) -> None:
        for scope in _scopes(value, path):
            if not all(condition(scope) for condition in conditions):
                continue
            before = at(scope, path)
            if merges:
                merged = {**find(scope), **(before or {})}
                if merged:
                    _parent(scope, prefix)[name] = merged
                continue
            is_set = before is not None if is_pointer else bool(before)
            if zero is not None:
                is_set = before is not None and before not in zero
            if is_set and not always:
                continue
            default = find(scope)
            if default is not None:
                _parent(scope, prefix)[name] = default
            elif always and "value" in rule and before is not None:
                del _parent(scope, prefix)[name]

    return fill_in


def _of_field(name: str, is_pointer: bool, find: Callable[[Scope], Json]) -> Fill:
    """A rule without conditions about a field of the type itself: most rules are."""

    def fill_in(value: Object) -> None:
        before = value.get(name)
        if before is None or not (is_pointer or before):
            default = find({"": value})
            if default is not None:
                value[name] = default

    return fill_in


def _declared(field: facts.FieldFacts) -> Fill:
    """A field with a default of its own."""
    name, default, is_pointer = field.name, field.extra["default"], field.write in ("pointer", "null")

    def fill_in(value: Object) -> None:
        before = value.get(name)
        if before is None or not (is_pointer or before):
            value[name] = copy(default)

    return fill_in


def _write_rule(key: str, path: str, release: int) -> str | None:
    """When the field at a path is written: an empty value in a pointer counts as set. None: there is no such field."""
    expression, part, write = key, "", ""
    for step in path.replace("[*]", "").split("."):
        known = facts.fields(facts.qualified(expression, part), release)
        declared = next((field for field in known if field.name == step), None)
        if declared is None:
            return None
        expression, part, write = declared.expression, declared.origin.part, declared.write
        if isinstance(expression, list):
            expression = expression[0]
        if not isinstance(expression, str):
            break
    return write


def _scopes(value: Object, path: str) -> Iterator[Scope]:
    """One scope for each combination of items that the wildcards of a path stand for."""
    scopes: list[Scope] = [{"": value}]
    end = path.find("[*]")
    while end != -1:
        prefix = path[: end + 3]
        scopes = [{**scope, prefix: item} for scope in scopes for item in at(scope, path[:end]) or ()]
        end = path.find("[*]", end + 3)
    yield from scopes


def at(scope: Scope, path: str) -> Json:
    """The value at a path, None if there is none."""
    value, rest = _begin(scope, path)
    for step in rest:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def _begin(scope: Scope, path: str) -> tuple[Json, list[str]]:
    """(the item at the longest prefix that the scope knows, the steps from there)."""
    prefix = max((start for start in scope if path == start or path.startswith(f"{start}." if start else "")), key=len)
    rest = path[len(prefix) :].lstrip(".")
    return scope[prefix], rest.split(".") if rest else []


def _parent(scope: Scope, path: str) -> Object:
    """The struct at a path, which is created if it is absent."""
    value, rest = _begin(scope, path)
    for step in rest:
        if value.get(step) is None:
            value[step] = {}
        value = value[step]
    parent: Object = value
    return parent


def _source(rule: Object) -> Callable[[Scope], Json]:
    if "value" in rule:
        return lambda _: copy(rule["value"])
    if "from" in rule:
        return lambda scope: copy(at(scope, rule["from"])) or None
    return _COMPUTATIONS[rule["compute"]](rule)


Condition = Callable[[Scope], bool]


def _conditions(key: str, when: Json) -> list[Condition] | None:
    """The conditions of a rule; None if it never applies."""
    conditions = [_condition(key, part) for part in (when if isinstance(when, list) else [when])]
    return None if None in conditions else [condition for condition in conditions if condition is not None]


def _condition(key: str, when: Object) -> Condition | None:
    if "any" in when:
        choices = [_conditions(key, part) for part in when["any"]]
        return lambda scope: any(all(condition(scope) for condition in all_) for all_ in choices if all_ is not None)
    if "in" in when:
        return lambda scope: at(scope, when["path"]) in when["in"]
    if "below" in when:
        return lambda scope: (at(scope, when["path"]) or 0) < when["below"]
    if "set" in when:
        return lambda scope: all(at(scope, path) not in (None, "", []) for path in when["set"])
    if when["unset"] == ["every field of VolumeSource"]:
        names = [field.name for field in facts.fields("core/v1.VolumeSource", NEWEST)]
        return lambda scope: all(scope[""].get(name) is None for name in names)
    if " " in when["unset"][0]:  # the conversion of a kind does it
        return None
    return lambda scope: all(at(scope, path) in (None, "") for path in when["unset"])


# -- computations -----------------------------------------------------------------------------------------------------


def _pull_policy(rule: Object) -> Callable[[Scope], Json]:
    def find(scope: Scope) -> Json:
        return pull_policy(at(scope, rule["source"]) or "")

    return find


def pull_policy(image: str) -> str:
    """Always for the tag `latest`, and for an image with neither tag nor digest (parsers.ParseImageName)."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if (tag or ("" if digest else "latest")) == "latest" else "IfNotPresent"


def _merge_missing(rule: Object) -> Callable[[Scope], Json]:
    """Missing members come from the first source that has them."""

    def find(scope: Scope) -> Json:
        merged: Object = {}
        for path in reversed(rule["sources"]):
            merged |= at(scope, path) or {}
        return merged

    return find


def _pod_addresses(rule: Object) -> Callable[[Scope], Json]:
    """podIP is the first of podIPs; if they differ, podIP counts (core/v1's conversion of PodStatus)."""

    def find(scope: Scope) -> Json:
        address = at(scope, "podIP")
        addresses = at(scope, "podIPs") or []
        if rule["path"] == "podIP":
            return address or (addresses[0].get("ip") if addresses else None)
        if not address:
            return addresses or None
        return addresses if addresses and addresses[0].get("ip") == address else [{"ip": address}]

    return find


_COMPUTATIONS: Final[dict[str, Callable[[Object], Callable[[Scope], Json]]]] = {
    "pullPolicy": _pull_policy,
    "mergeMissing": _merge_missing,
    "podIPs": _pod_addresses,
}
