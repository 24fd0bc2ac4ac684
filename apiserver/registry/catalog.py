"""The catalog: the resources that are served. It is immutable, and replaced when a definition changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from noxu.apiserver.crd.versions import version_priority
from noxu.apiserver.registry.resource import Resource, Versions


class Catalog:
    """Built-in resources, and the resources of established definitions."""

    def __init__(self, builtins: Sequence[Versions] = (), defined: Mapping[str, Versions] | None = None) -> None:
        self._builtins = tuple(builtins)
        self.defined = dict(defined or {})
        self.built_in_groups = frozenset(resource.group for versions in builtins for resource in versions.all)
        self.by_path: dict[tuple[str, str, str], Resource] = {}
        """By group, version and plural."""
        for versions in (*self.defined.values(), *self._builtins):
            for resource in versions.all:
                if resource.served:
                    self.by_path[resource.group, resource.version, resource.plural] = resource

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource of a URL path, None if it is not served."""
        return self.by_path.get((group, version, plural))

    def with_definition(self, name: str, versions: Versions | None) -> Catalog:
        """The catalog after a change of a definition; None: its resource is no longer served."""
        defined = {k: v for k, v in self.defined.items() if k != name}
        if versions is not None:
            defined[name] = versions
        return Catalog(self._builtins, defined)

    @property
    def resources(self) -> Iterable[Resource]:
        return self.by_path.values()

    @cached_property
    def groups(self) -> dict[str, list[str]]:
        """The versions of each group, best first; built-in groups before those of definitions, these by name."""
        found: dict[str, set[str]] = {}
        builtin = [resource.group for versions in self._builtins for resource in versions.all]
        for group in (*dict.fromkeys(builtin), *sorted(resource.group for resource in self.resources)):
            found.setdefault(group, set())
        for resource in self.resources:
            found[resource.group].add(resource.version)
        return {group: sorted(versions, key=version_priority) for group, versions in found.items() if versions}

    @cached_property
    def kinds(self) -> dict[tuple[str, str], Resource]:
        """The resources of stored objects by apiVersion and kind."""
        return {(resource.api_version, resource.kind): resource for resource in self.resources if resource.is_stored}

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
