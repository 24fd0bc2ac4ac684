"""The permissions that some rules grant and others do not.

The sources are component-helpers' auth/rbac/validation and pkg/registry/rbac/validation.

Rules are compared permission by permission: one group, one resource, one verb, at most one name; or one path and one
verb. Each permission has to be in one of the held rules. A rule that one held rule covers as a whole needs no such
breakdown. Both comparisons look only at held rules about the same resource, and account for that work: a user may have
written many rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Final, NamedTuple

from noxu.cpu_budget import spend
from noxu.go.text import quote_list
from noxu.values import Object

MAX_PERMISSIONS: Final = 20_000
"""The most permissions that are compared one by one; upstream has no limit. Wide rules have millions."""
MAX_DESCRIBED: Final = 1_000_000
"""Characters of the permissions that a message lists; upstream has no limit. Each of thousands repeats a long verb."""
_PER_RULE: Final = 10
"""Units of work to read a rule."""

_ALL: Final = "*"
_FIELDS: Final = {
    "apiGroups": "APIGroups",
    "resources": "Resources",
    "nonResourceURLs": "NonResourceURLs",
    "resourceNames": "ResourceNames",
    "verbs": "Verbs",
}
"""In the order of CompactString."""


class TooManyPermissions(Exception):
    """The rules have more permissions than can be compared."""


class _Held(NamedTuple):
    verbs: frozenset[str]
    groups: frozenset[str]
    resources: frozenset[str]
    names: frozenset[str]
    urls: tuple[str, ...]

    def covers(self, rule: Object) -> bool:
        """Whether it has all permissions of a rule."""
        names = rule.get("resourceNames") or ()
        return (
            _has_all(self.verbs, rule.get("verbs"))
            and _has_all(self.groups, rule.get("apiGroups"))
            and all(self._has_resource(resource) for resource in rule.get("resources") or ())
            and (not self.names or (bool(names) and self.names.issuperset(names)))
            and all(any(covers_path(url, path) for url in self.urls) for path in rule.get("nonResourceURLs") or ())
        )

    def _has_resource(self, resource: str) -> bool:
        return not self.resources.isdisjoint(_keys(resource))


def _has_all(held: frozenset[str], wanted: Sequence[str] | None) -> bool:
    return _ALL in held or held.issuperset(wanted or ())


def _keys(resource: str) -> tuple[str, ...]:
    """The resources of rules that cover one."""
    _, slash, subresource = resource.partition("/")
    return (resource, _ALL, f"*/{subresource}") if slash else (resource, _ALL)


def covers_path(url: str, path: str) -> bool:
    """Whether one of `nonResourceURLs` is for a path: exactly, or by the prefix before a `*` at its end."""
    return url == path or (url.endswith("*") and path.startswith(url.rstrip("*")))


def _held(rule: Object) -> _Held:
    verbs, groups, resources, names = (
        frozenset(rule.get(name) or ()) for name in ("verbs", "apiGroups", "resources", "resourceNames")
    )
    return _Held(verbs, groups, resources, names, tuple(rule.get("nonResourceURLs") or ()))


def size(rule: Object) -> int:
    """The number of its permissions."""
    verbs, groups, resources, names, urls = (
        len(rule.get(name) or ()) for name in ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
    )
    return verbs * (groups * resources * max(names, 1) + urls)


def missing(held: Iterable[Object], rules: Iterable[Object]) -> list[Object]:
    """The permissions of `rules` that are not in `held`, as rules with one permission. Raises TooManyPermissions."""
    all_held = _AllHeld(held)
    compared = [rule for rule in rules if not all_held.covers(rule)]
    if sum(map(size, compared)) > MAX_PERMISSIONS:
        raise TooManyPermissions
    permissions = (permission for rule in compared for permission in _breakdown(rule))
    return [permission for permission in permissions if not all_held.covers(permission)]


class _AllHeld:
    """The held rules, each once, by resource and name (None: all names). Accounts for its work."""

    def __init__(self, rules: Iterable[Object]) -> None:
        unique: dict[_Held, None] = {}
        for rule in rules:
            spend(_PER_RULE)
            unique[_held(rule)] = None
        self._all = list(unique)
        self._with_urls = [held for held in self._all if held.urls]
        self._by_resource: dict[tuple[str, str | None], list[_Held]] = {}
        for held in self._all:
            for resource in held.resources:
                for name in held.names or (None,):
                    self._by_resource.setdefault((resource, name), []).append(held)

    def covers(self, rule: Object) -> bool:
        """Whether one held rule has all permissions of a rule."""
        spend(_PER_RULE)
        for candidates in self._candidates(rule):
            spend(len(candidates))
            if any(held.covers(rule) for held in candidates):
                return True
        return False

    def _candidates(self, rule: Object) -> Iterator[list[_Held]]:
        if rule.get("resources"):
            names = (rule["resourceNames"][0], None) if rule.get("resourceNames") else (None,)
            keys = product(_keys(rule["resources"][0]), names)
            return (self._by_resource.get(key, []) for key in keys)
        return iter((self._with_urls if rule.get("nonResourceURLs") else self._all,))


def _breakdown(rule: Object) -> Iterator[Object]:
    verbs = rule.get("verbs") or ()
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in verbs:
                simple: Object = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                names = rule.get("resourceNames")
                yield from ({**simple, "resourceNames": [name]} for name in names) if names else (simple,)
    for url in rule.get("nonResourceURLs") or ():
        yield from ({"nonResourceURLs": [url], "verbs": [verb]} for verb in verbs)


def compact(permissions: Iterable[Object]) -> list[Object]:
    """Permissions with those for the same resource united; the others first."""
    unmerged: list[Object] = []
    united: dict[tuple[str, str], Object] = {}
    for permission in permissions:
        if "resources" not in permission or "resourceNames" in permission:
            unmerged.append(permission)
            continue
        rule = united.setdefault((permission["apiGroups"][0], permission["resources"][0]), {**permission, "verbs": []})
        rule["verbs"] += permission["verbs"]
    return [*unmerged, *united.values()]


def length(rules: Iterable[Object]) -> int:
    """The number of characters of rules in messages, without quotes."""
    return sum(len(text) for rule in rules for name in _FIELDS for text in rule.get(name) or ())


def describe(rule: Object) -> str:
    """A rule in messages (CompactString)."""
    parts = (f"{shown}:{quote_list(rule[name])}" for name, shown in _FIELDS.items() if rule.get(name))
    return "{" + ", ".join(parts) + "}"
