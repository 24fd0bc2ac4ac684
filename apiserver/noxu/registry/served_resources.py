"""The resources that are served, an immutable set that a changed definition replaces, and the order of their groups.

The priorities of the built-in group versions are those of their APIServices. Discovery lists the highest first, equal ones
by name, and the group of APIServices before all others (k8s.io/kubernetes, pkg/controlplane/apiserver/aggregator.go and
cmd/kube-apiserver/app/aggregator.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from noxu.crd.types import version_priority
from noxu.registry.resource import CUSTOM, Path, Resource, Versions
from noxu.values import cached_property


class Priority(NamedTuple):
    """groupPriorityMinimum and versionPriority."""

    group: int
    version: int


AGGREGATOR: Final = "apiregistration.k8s.io"
CUSTOM_PRIORITY: Final = Priority(1000, 100)
"""Of the group versions of CustomResourceDefinitions."""
PRIORITIES: Final = {
    ("", "v1"): Priority(18000, 1),
    ("apps", "v1"): Priority(17800, 15),
    ("events.k8s.io", "v1"): Priority(17750, 15),
    ("authentication.k8s.io", "v1"): Priority(17700, 15),
    ("authorization.k8s.io", "v1"): Priority(17600, 15),
    ("autoscaling", "v2"): Priority(17500, 30),
    ("autoscaling", "v1"): Priority(17500, 15),
    ("batch", "v1"): Priority(17400, 15),
    ("certificates.k8s.io", "v1"): Priority(17300, 15),
    ("networking.k8s.io", "v1"): Priority(17200, 15),
    ("policy", "v1"): Priority(17100, 15),
    ("rbac.authorization.k8s.io", "v1"): Priority(17000, 15),
    ("storage.k8s.io", "v1"): Priority(16800, 15),
    ("admissionregistration.k8s.io", "v1"): Priority(16700, 15),
    ("apiextensions.k8s.io", "v1"): Priority(16700, 15),
    ("scheduling.k8s.io", "v1"): Priority(16600, 15),
    ("coordination.k8s.io", "v1"): Priority(16500, 15),
    ("node.k8s.io", "v1"): Priority(16300, 15),
    ("discovery.k8s.io", "v1"): Priority(16200, 15),
    ("resource.k8s.io", "v1"): Priority(16200, 20),
    ("flowcontrol.apiserver.k8s.io", "v1"): Priority(16100, 21),
    ("storagemigration.k8s.io", "v1"): Priority(15800, 15),
}
_GROUPS: Final = {group: priority.group for (group, _), priority in PRIORITIES.items()}


def version_order(group: str, version: str) -> tuple[int, object]:
    """The key by which the versions of a group are sorted: by their priority, then as versions of Kubernetes.

    In a built-in group, a version that only a definition has precedes the built-in ones (kube-aggregator's ByVersionPriority).
    """
    return -PRIORITIES.get((group, version), CUSTOM_PRIORITY).version, version_priority(version)


def group_order(group: str) -> tuple[bool, int, str]:
    """The key by which groups are sorted."""
    return group != AGGREGATOR, -_GROUPS.get(group, CUSTOM_PRIORITY.group), group


# -- the resources ----------------------------------------------------------------------------------------------------


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


class MadeDocuments:
    """Documents that show resources, by what distinguishes them: the same for all servers that have these resources.

    A document has nothing of a server: neither its address nor a time. Threads may use it at the same time.
    """

    def __init__(self) -> None:
        self._kept: dict[object, Any] = {}
        self._room = MAX_DOCUMENTS

    def get(self, key: object) -> Any:
        """A document, None if there is none."""
        return self._kept.get(key)

    def add(self, key: object, document: object, size: int) -> None:
        """Keep a document of so many bytes, if there is room."""
        if size <= self._room and len(self._kept) < MAX_FORMS and key not in self._kept:
            self._room -= size  # two threads may both find room for one document: the limit is about memory
            self._kept[key] = document


MAX_DOCUMENTS: Final = 32 * 1024 * 1024
"""Bytes of documents that servers with the same resources share."""
MAX_FORMS: Final = 512
"""The number of these documents: clients choose their forms."""


class ServedResources:
    """Built-in resources, and the resources of established definitions."""

    def __init__(
        self,
        builtins: Sequence[Versions] = (),
        defined: Mapping[str, Versions] | None = None,
        elsewhere: frozenset[tuple[str, str]] = frozenset(),
        disabled: frozenset[tuple[str, ...]] = frozenset(),
        *,
        built_in: Paths | None = None,
        custom: Mapping[Path, Resource] | None = None,
    ) -> None:
        """`elsewhere` are group versions that another API server is registered for; `disabled` are those of built-in kinds
        that clients cannot use, or single resources of these, with their plurals. The server itself does: it stores the objects that it needs. `built_in` are the paths of
        `builtins`, `custom` those of `defined`, None: they have to be found.
        """
        self._builtins = tuple(builtins)
        self._disabled = disabled
        self._built_in = built_in or _paths_of(self._builtins)
        self.elsewhere = elsewhere
        self.documents = MadeDocuments()
        """What is made of them for clients."""
        self.defined = dict(defined or {})
        self.built_in_groups = self._built_in.groups
        if custom is not None:
            self._custom = custom
        served = self._built_in.served
        self.by_path: dict[Path, Resource] = {**served, **(self._custom if custom is None else custom), **served}
        """Those that clients can use, by group, version and plural; built-in ones come first, and take precedence."""
        self._own = (
            {path: resource for path, resource in self.by_path.items() if disabled.intersection((path[:2], path))}
            if disabled
            else {}
        )
        for path in self._own:
            del self.by_path[path]  # of the new dict, before it is shared

    @cached_property
    def _custom(self) -> Mapping[Path, Resource]:
        """The served resources of definitions."""
        return _paths_of(self.defined.values()).served

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """A resource of the server, None if there is none. Clients use `by_path`."""
        path = group, version, plural
        return self.by_path.get(path) or self._own.get(path)

    def with_definition(self, name: str, versions: Versions | None) -> ServedResources:
        """The served resources after a change of a definition; None: its resource is no longer served."""
        defined, custom = dict(self.defined), dict(self._custom)  # copies: requests under way keep the old ones
        if (before := defined.pop(name, None)) is not None:
            for path in before.served:
                del custom[path]  # of the copy
        if versions is not None:
            defined[name] = versions
            custom.update(versions.served)
        return self._with(defined, custom)

    def with_copies(self, copies: Mapping[str, Versions]) -> ServedResources:
        """The same served resources, in the same order, with copies of the versions of some definitions."""
        new = ServedResources(
            self._builtins, None, self.elsewhere, self._disabled, built_in=self._built_in, custom=self._custom
        )
        del new._custom  # found again with the next change
        new.documents = self.documents  # copies show the same
        new.defined = {**self.defined, **copies}
        for versions in copies.values():
            for path, resource in versions.served.items():
                if new.by_path[path].type is CUSTOM:  # else a built-in one takes precedence
                    new.by_path[path] = resource  # of the new dict, before it is shared
        return new

    def in_order(self, names: Iterable[str]) -> ServedResources:
        """The same served resources, with those of definitions in the order of their names in a list of all."""
        defined = {name: self.defined[name] for name in names}
        return self._with(defined, _paths_of(defined.values()).served)

    def _with(self, defined: Mapping[str, Versions], custom: Mapping[Path, Resource]) -> ServedResources:
        return ServedResources(
            self._builtins, defined, self.elsewhere, self._disabled, built_in=self._built_in, custom=custom
        )

    def with_elsewhere(self, elsewhere: frozenset[tuple[str, str]]) -> ServedResources:
        """The served resources after a change of the group versions that another API server is registered for."""
        return ServedResources(
            self._builtins, self.defined, elsewhere, self._disabled, built_in=self._built_in, custom=self._custom
        )

    @property
    def resources(self) -> Iterable[Resource]:
        return self.by_path.values()

    @cached_property
    def groups(self) -> dict[str, list[str]]:
        """The versions of each group, best first; the groups in the order of their priorities."""
        groups: dict[str, set[str]] = {}
        for resource in self.resources:
            groups.setdefault(resource.group, set()).add(resource.version)
        return {
            group: sorted(groups[group], key=partial(version_order, group)) for group in sorted(groups, key=group_order)
        }

    def serves(self, group: str, version: str) -> bool:
        """Whether a group version has resources."""
        return version in self.groups.get(group, ())

    def find_kind(self, api_version: str, kind: str) -> Resource | None:
        """A resource that clients can use, None if there is none. Few of them are asked often, so there is no index of all."""
        built_in = self._built_in.kinds.get((api_version, kind))
        if built_in is not None and (built_in.group, built_in.version, built_in.plural) not in self._own:
            return built_in
        for resource in self.by_path.values():
            if resource.type is CUSTOM and resource.kind == kind and resource.api_version == api_version:
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


class LiveResources:
    """The served resources of a running server, as they are now. A request that reads `current` once sees one consistent state."""

    _make: Callable[[], ServedResources]

    def __init__(self, served_resources: ServedResources) -> None:
        self.current = served_resources  # one assignment: a request has the old or the new state
        self.followers: list[Callable[[], object]] = []
        """Called after each change."""

    def begin_with(self, make: Callable[[], ServedResources]) -> None:
        """Serve what `make` returns, which is called when somebody first asks. Only before the server runs."""
        self._make = make
        del self.current

    def __getattr__(self, name: str) -> ServedResources:
        """`current`, the first time after `begin_with`: from then on it is an attribute."""
        if name != "current":
            raise AttributeError(name)
        self.current = made = self._make()
        return made

    def own(self, name: str) -> Versions:
        """The versions of a definition, which this server may change: a copy of those that it shares with others."""
        versions = self.current.defined[name]
        if versions.is_shared:
            versions = versions.copy()
            self.replace(self.current.with_copies({name: versions}))
        return versions

    def replace(self, served_resources: ServedResources) -> None:
        self.current = served_resources
        for follower in self.followers:
            follower()  # after the change: it reads `current`
