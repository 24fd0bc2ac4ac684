"""Which permissions rules have that others do not (component-helpers' auth/rbac/validation, pkg/registry/rbac/validation).

Rules are compared permission by permission: one group, one resource, one verb, at most one name; or one path and one verb.
Each permission has to be in one of the held rules. A rule that one held rule covers as a whole needs no such breakdown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from noxu.apiserver.go.text import quote
from noxu.apiserver.values import Object

MAX_PERMISSIONS: Final = 20_000
"""The most permissions that are compared one by one; upstream has no limit. Wide rules have millions."""

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
            and all(any(_covers_path(url, path) for url in self.urls) for path in rule.get("nonResourceURLs") or ())
        )

    def _has_resource(self, resource: str) -> bool:
        return not self.resources.isdisjoint(_keys(resource))


def _has_all(held: frozenset[str], given: Sequence[str] | None) -> bool:
    return _ALL in held or held.issuperset(given or ())


def _keys(resource: str) -> tuple[str, ...]:
    """The resources of rules that cover one."""
    _, slash, subresource = resource.partition("/")
    return (resource, _ALL, f"*/{subresource}") if slash else (resource, _ALL)


def _covers_path(url: str, path: str) -> bool:
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
    all_held = [_held(rule) for rule in held]
    compared = [rule for rule in rules if not any(one.covers(rule) for one in all_held)]
    if sum(map(size, compared)) > MAX_PERMISSIONS:
        raise TooManyPermissions
    by_resource: dict[str, list[_Held]] = {}
    for one in all_held:
        for resource in one.resources:
            by_resource.setdefault(resource, []).append(one)
    with_urls = [one for one in all_held if one.urls]
    found = []
    for permission in (permission for rule in compared for permission in _breakdown(rule)):
        if "resources" in permission:
            candidates = [one for key in _keys(permission["resources"][0]) for one in by_resource.get(key, ())]
        else:
            candidates = with_urls
        if not any(one.covers(permission) for one in candidates):
            found.append(permission)
    return found


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
    others: list[Object] = []
    united: dict[tuple[str, str], Object] = {}
    for one in permissions:
        if "resources" not in one or "resourceNames" in one:
            others.append(one)
            continue
        rule = united.setdefault((one["apiGroups"][0], one["resources"][0]), {**one, "verbs": []})
        rule["verbs"] += one["verbs"]
    return [*others, *united.values()]


def describe(rule: Object) -> str:
    """A rule in messages (CompactString)."""
    parts = (f"{shown}:{quoted(rule[name])}" for name, shown in _FIELDS.items() if rule.get(name))
    return "{" + ", ".join(parts) + "}"


def quoted(texts: Iterable[str]) -> str:
    """Go's `%q` of strings."""
    return f"[{' '.join(map(quote, texts))}]"
