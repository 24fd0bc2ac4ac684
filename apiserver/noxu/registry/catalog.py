"""The catalog: the resources that are served. It is immutable, and replaced when a definition changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from noxu.crd.types import version_priority
from noxu.registry.group_priorities import order, order_in_group
from noxu.registry.resource import Path, Resource, Versions
from noxu.values import cached_property


class Paths(NamedTuple):
    """The served resources of several definitions or kinds by group, version and plural; by apiVersion and kind; all groups."""

    served: Mapping[Path, Resource]
    kinds: Mapping[tuple[str, str], Resource]
    groups: frozenset[str]


def _paths_of(all_versions: Iterable[Versions]) -> Paths:
    served: dict[Path, Resource] = {}
    groups: set[str] = set()
    for versions in all_versions:
        served.update(versions.served)
        groups.update(resource.group for resource in versions.all)
    kinds = {(resource.api_version, resource.kind): resource for resource in reversed(served.values())}
    return Paths(served, kinds, frozenset(groups))


class Catalog:
    """Built-in resources, and the resources of established definitions."""

    def __init__(
        self,
        builtins: Sequence[Versions] = (),
        defined: Mapping[str, Versions] | None = None,
        elsewhere: frozenset[tuple[str, str]] = frozenset(),
        disabled: frozenset[tuple[str, str]] = frozenset(),
        *,
        built_in: Paths | None = None,
        custom: Mapping[Path, Resource] | None = None,
    ) -> None:
        """`elsewhere` are group versions that another API server is registered for; `disabled` are those of built-in kinds
        that clients cannot use. The server itself does: it stores the objects that it needs. `built_in` are the paths of
        `builtins`, `custom` those of `defined`, None: they have to be found.
        """
        self._builtins = tuple(builtins)
        self._disabled = disabled
        self._built_in = built_in or _paths_of(self._builtins)
        self.elsewhere = elsewhere
        self.defined = dict(defined or {})
        self.built_in_groups = self._built_in.groups
        self._custom = _paths_of(self.defined.values()).served if custom is None else custom
        self.by_path: dict[Path, Resource] = {**self._built_in.served, **self._custom, **self._built_in.served}
        """Those that clients can use, by group, version and plural; built-in ones come first, and take precedence."""
        self._own = (
            {path: resource for path, resource in self.by_path.items() if path[:2] in disabled} if disabled else {}
        )
        for path in self._own:
            del self.by_path[path]

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """A resource of the server, None if there is none. Clients use `by_path`."""
        path = group, version, plural
        return self.by_path.get(path) or self._own.get(path)

    def with_definition(self, name: str, versions: Versions | None) -> Catalog:
        """The catalog after a change of a definition; None: its resource is no longer served."""
        defined, custom = dict(self.defined), dict(self._custom)
        if (before := defined.pop(name, None)) is not None:
            for path in before.served:
                del custom[path]
        if versions is not None:
            defined[name] = versions
            custom.update(versions.served)
        return Catalog(self._builtins, defined, self.elsewhere, self._disabled, built_in=self._built_in, custom=custom)

    def with_elsewhere(self, elsewhere: frozenset[tuple[str, str]]) -> Catalog:
        """The catalog after a change of the group versions that another API server is registered for."""
        return Catalog(
            self._builtins, self.defined, elsewhere, self._disabled, built_in=self._built_in, custom=self._custom
        )

    @property
    def resources(self) -> Iterable[Resource]:
        return self.by_path.values()

    @cached_property
    def groups(self) -> dict[str, list[str]]:
        """The versions of each group, best first; the groups in the order of their priorities."""
        found: dict[str, set[str]] = {}
        for resource in self.resources:
            found.setdefault(resource.group, set()).add(resource.version)
        return {group: sorted(found[group], key=partial(order_in_group, group)) for group in sorted(found, key=order)}

    def serves(self, group: str, version: str) -> bool:
        """Whether a group version has resources."""
        return version in self.groups.get(group, ())

    def find_kind(self, api_version: str, kind: str) -> Resource | None:
        """A resource that clients can use, None if there is none. Few catalogs are asked often, so there is no index of all."""
        found = self._built_in.kinds.get((api_version, kind))
        if found is not None and (found.group, found.version) not in self._disabled:
            return found
        for path, resource in self._custom.items():
            if resource.kind == kind and resource.api_version == api_version and self.by_path.get(path) is resource:
                return resource
        return None

    @cached_property
    def kinds(self) -> dict[tuple[str, str], Resource]:
        """The resources of stored objects by apiVersion and kind."""
        stored = reversed([resource for resource in self.resources if resource.is_stored])  # the first one counts
        return {(resource.api_version, resource.kind): resource for resource in stored}

    @cached_property
    def preferred(self) -> dict[str, Resource]:
        """The best served version of each stored resource, by collection (discovery's preferred versions)."""
        stored = [resource for resource in self.resources if resource.is_stored]
        stored.sort(key=lambda resource: version_priority(resource.version), reverse=True)
        return {resource.collection: resource for resource in stored}

    def in_version(self, group: str, version: str) -> list[Resource]:
        """The resources of one group version, in the order in which they were added."""
        return [resource for resource in self.resources if resource.group == group and resource.version == version]


class LiveCatalog:
    """The current catalog of a running server. A request that reads `current` once sees one consistent state."""

    def __init__(self, catalog: Catalog) -> None:
        self.current = catalog
        self.followers: list[Callable[[], object]] = []
        """Called after each change."""

    def replace(self, catalog: Catalog) -> None:
        self.current = catalog
        for follower in self.followers:
            follower()
