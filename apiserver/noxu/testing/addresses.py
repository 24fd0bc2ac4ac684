"""How a test names objects: a kind, a plural with its group, or an object.

    Widget  wd  widgets.example.com  example.com/v1/Widget    a kind by any of its names, see registry.kind_names
    {"apiVersion": …, "kind": …, "metadata": {"name": …}}    an object, with its name and namespace

A namespaced object without a namespace is in `default`.

A name that does not exist is an error, unless the test says so: with a misspelt name it would pass for ever.

A function for `widgetz.example.com` is never called, and no request has the verb `updat`: a test that relies on that
passes on any server. So every name is checked when a method gets it. Objects, labels and users are the test's own, and
may have any name; one that does not exist, but is similar to one that does, is an error, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote

from noxu.api.selectors import parse_labels
from noxu.features import check_name, listed_names, meant, nearest
from noxu.manifests import loading
from noxu.registry import kind_names
from noxu.registry.resource import Resource
from noxu.registry.served_resources import ServedResources
from noxu.security.credentials import checked_groups
from noxu.testing.errors import UnknownKind, hidden
from noxu.testing.sources import names
from noxu.values import Object

__tracebackhide__ = hidden


class Address(NamedTuple):
    """An object or, without a name, a collection. `namespace` is "" for cluster scope, or for all namespaces."""

    resource: Resource
    namespace: str = ""
    name: str = ""

    def path(self, subresource: str = "") -> str:
        resource = self.resource
        steps = ["apis", resource.group] if resource.group else ["api"]
        steps.append(resource.version)
        if self.namespace and resource.namespaced:
            steps += ["namespaces", self.namespace]
        steps += [resource.plural, *filter(None, (self.name, subresource))]
        return "".join(f"/{quote(step, safe='')}" for step in steps)

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.resource.kind} {place}".rstrip()


def find(served_resources: ServedResources, text: str) -> Resource:
    """The resource that a text names. Raises UnknownKind."""
    try:
        return kind_names.find(served_resources, text)
    except LookupError as error:
        raise UnknownKind(str(error)) from None


def of(served_resources: ServedResources, what: str | Object, name: str = "", namespace: str | None = None) -> Address:
    """The address of an object: (kind, name), or an object. Raises UnknownKind, ValueError."""
    if isinstance(what, str):
        if not name:
            raise ValueError(f"the name of the {what} is missing")
        resource = find(served_resources, what)
    else:
        resource = of_object(served_resources, what)
        name, own = loading.name_of(what), loading.namespace_of(resource, what)
        if not name:
            raise ValueError(f"this {resource.kind} has no metadata.name")
        namespace = own if namespace is None else namespace
    return Address(resource, (namespace or "default") if resource.namespaced else "", name)


def of_any(
    served_resources: ServedResources, what: str | Object, name: str = "", namespace: str | None = None
) -> Address:
    """The address of an object, or of a collection if there is no name. Raises UnknownKind."""
    if isinstance(what, str):
        resource, own_namespace = find(served_resources, what), ""
    else:
        resource, name = of_object(served_resources, what), loading.name_of(what)
        own_namespace = loading.namespace_of(resource, what) if name else ""
    if name and resource.namespaced:
        namespace = namespace or own_namespace or "default"
    return Address(resource, (namespace or "") if resource.namespaced else "", name)


def of_object(served_resources: ServedResources, value: Object) -> Resource:
    """The resource of the apiVersion and kind of an object. Raises UnknownKind."""
    for resource in served_resources.resources:
        if resource.kind == value.get("kind") and resource.api_version == value.get("apiVersion"):
            return resource
    raise UnknownKind(loading.no_matches(value))


# -- whether what is named exists --------------------------------------------------------------------------------------


ANY: Final = "*"
OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT")
WRITES: Final = ("CREATE", "UPDATE")
"""The operations for which a function is called unless it says otherwise."""
_OPERATIONS: Final = {
    "create": "CREATE",
    "update": "UPDATE",
    "patch": "UPDATE",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
"""By verb."""
VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
_CODES: Final = range(600)
_READ: Final = {"get", "list", "watch"}


def operations(operation: str | Iterable[str]) -> tuple[str, ...]:
    """The operations of a function in the place of a webhook. Raises ValueError."""
    verbs = names(operation)
    if not verbs:
        raise ValueError(f"operations: without one the function is never called; there are {listed_names(OPERATIONS)}")
    for name in verbs:
        if name.lower() in _READ:
            raise ValueError(
                f'operations: "{name}" only reads, so it is not admitted; there are {listed_names(OPERATIONS)}'
            )
        check_name(name, (*OPERATIONS, ANY), "operations")
    return verbs


def verb(name: str) -> str:
    """The verb of requests, "" for any. Raises ValueError."""
    check_name(name, (*VERBS, ""), "verb")
    return name


def code(status: int) -> int:
    """The code of requests, 0 for any. Raises ValueError, TypeError."""
    if not isinstance(status, int):
        raise TypeError(f"code: an int is expected, and not {status!r}")
    if status not in _CODES:
        raise ValueError(f"code: {status} is no code of HTTP")
    return status


def groups(group: str | Iterable[str]) -> tuple[str, ...]:
    """The groups of a user. Raises ValueError for one that looks like a group of Kubernetes, and is none."""
    return checked_groups(names(group))


def user(name: str, users: Iterable[str]) -> str:
    """The user of requests, "" for any. Raises ValueError for one who has sent none, if a known one is similar."""
    users = sorted({*users} - {""})
    if name and name not in users and (similar := nearest(name, users)):
        raise ValueError(f'user: no user "{name}" is known; did you mean {similar}?')
    return name


def client(prefix: str, agents: Iterable[str]) -> None:
    """Raises ValueError for the beginning of a user agent that none has, if that of one is similar."""
    agents = sorted({*agents} - {""})
    if not any(agent.startswith(prefix) for agent in agents) and (
        similar := nearest(prefix, [agent.partition("/")[0] for agent in agents])
    ):
        raise ValueError(f'client: no user agent begins with "{prefix}"; did you mean {similar}?')


def namespace(name: str, existing: Iterable[str]) -> None:
    """Raises ValueError for a namespace in which something is looked for, and which has never existed."""
    existing = sorted(existing)
    if name not in existing:
        raise ValueError(f'namespace: no "{name}" exists or has existed{meant(name, existing)}')


def selector(labels: str | Mapping[str, str], place: str) -> str:
    """The text of a selector, which may be a dict of equal values. Raises TypeError, ValueError."""
    if isinstance(labels, str):
        return labels
    if not isinstance(labels, Mapping):
        raise TypeError(f"{place}: a text or a dict is expected, and not {labels!r}")
    for name, value in labels.items():
        if not isinstance(value, str):
            raise TypeError(f"{place}: the value of {name} is {value!r}, and not a text")
        if "," in f"{name}{value}":
            raise ValueError(f"{place}: {name}={value} would be several conditions: write them as a text")
    text = ",".join(f"{name}={value}" for name, value in labels.items())
    if place == "labels":
        parse_labels(text)
    return text


def subresource(name: str | None, served_resources: ServedResources, resource: str | None) -> str | None:
    """The subresource of requests, "" for the object itself, None for any. Raises ValueError."""
    if name:
        of = [kind for kind in served_resources.resources if resource in (None, str(kind.group_resource))]
        check_name(name, sorted({part for kind in of for part in kind.subresources}), "subresource")
    return name


def parts(text: str) -> tuple[str, str, str]:
    """The plural, the group and the subresource in `widgets.example.com/status`. Raises ValueError."""
    plural_group, slash, subresource = text.partition("/")
    plural, _, group = plural_group.partition(".")
    if not plural or (slash and not subresource):
        raise ValueError(f'"{text}" names no resource: write PLURAL.GROUP or PLURAL.GROUP/SUBRESOURCE')
    return plural, group, subresource


class FunctionRule:
    """The resources for which a function is called: `widgets.example.com`, `widgets.example.com/status`, `*.*/*`.

    `*` stands for any plural, group or subresource. A text without a group is about the core group.
    """

    def __init__(self, text: str, version: str = ANY, operations: Iterable[str] = (ANY,)) -> None:
        """Raises ValueError for a text that names no resource."""
        self.text = text
        self.version = version
        self._operations = tuple(operations)
        self.plural, self.group, self.subresource = parts(text)

    def check(self, served_resources: ServedResources) -> None:
        """Raises UnknownKind if no request can be about it, ValueError for a subresource or a version that is unknown."""
        of_group = [kind for kind in served_resources.resources if self.group in (ANY, kind.group)]
        matching = [kind for kind in of_group if self.plural in (ANY, kind.plural)]
        if not matching:
            resources = {str(kind.group_resource) for kind in served_resources.resources}
            named = self.text.partition("/")[0].removesuffix(".")
            raise UnknownKind(
                f"no resource {named!r} is served{self._meant(served_resources, named, resources)}; {LATER}"
            )
        if self.subresource not in ("", ANY):
            check_name(
                self.subresource, sorted({part for kind in matching for part in kind.subresources}), self._of("part")
            )
        if self.version != ANY:
            check_name(self.version, sorted({kind.version for kind in matching}), self._of("version"))
        possible = {operation for kind in matching for operation in _operations_on(kind, self.subresource)}
        if ANY not in self._operations and possible.isdisjoint(self._operations):
            wrong = " and no ".join(self._operations)
            raise ValueError(
                f"operations: {self.text} has no {wrong}; it has {listed_names(sorted(possible)) or 'none'}"
            )

    def is_served(self, served_resources: ServedResources) -> bool:
        try:
            self.check(served_resources)
        except (LookupError, ValueError):
            return False
        return True

    def _of(self, what: str) -> str:
        return f"{self.text}: {'subresource' if what == 'part' else what}"

    def _meant(self, served_resources: ServedResources, named: str, resources: Iterable[str]) -> str:
        """The resource that has this name as one of its others, or the most similar one."""
        lower = named.lower()
        for resource in served_resources.resources:
            if lower in _other_names(resource):
                return f"; did you mean {resource.group_resource}?"
        return meant(named, resources)


def _operations_on(resource: Resource, subresource: str) -> set[str]:
    """The operations of the requests about a resource, or one of its subresources, that are admitted."""
    parts = resource.subresources if subresource == ANY else {subresource} & {"", *resource.subresources}
    allowed = set()
    for part in parts | ({""} if subresource == ANY else set()):
        declared = resource.table.subresource(part) if resource.table is not None and part else None
        if declared is not None and declared.connect:
            allowed.add("CONNECT")
        else:
            verbs = resource.verbs if not part else ("update",) if declared is None else declared.verbs
            allowed |= {_OPERATIONS[verb] for verb in verbs if verb in _OPERATIONS}
    return allowed


LATER: Final = "`later=True` if it is defined later"


def definition(name: str, served_resources: ServedResources) -> None:
    """Raises UnknownKind for a definition that is not served."""
    if name not in served_resources.defined:
        raise UnknownKind(f"no definition {name!r} is served{meant(name, served_resources.defined)}; {LATER}")


def _other_names(resource: Resource) -> set[str]:
    own = (resource.plural, resource.kind.lower(), resource.singular, *resource.short_names)
    return {text for name in own for text in (name, f"{name}.{resource.group}")}
