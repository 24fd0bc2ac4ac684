"""How a test names objects: a kind, a plural with its group, or an object.

    Widget  widgets  widget  wd          any of its names
    widgets.example.com  Widget.example.com          with the group
    widgets.v1.example.com  example.com/v1/Widget    with the version, too
    {"apiVersion": …, "kind": …, "metadata": {"name": …}}    an object, with its name and namespace

Without a version the one counts that discovery prefers, without a group the first group that has the name, as for kubectl.
A namespaced object without a namespace is in `default`.

What a test names exists, or the test says so: a misspelt name would let it pass for ever.

A function for `widgetz.example.com` is never called, and no request has the verb `updat`: what a test concludes from that is
true of any server. So every name is checked when it is given. Objects, labels and users are the test's own, and may be
anything; where one would never be found and another is similar, that is an error, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote

from noxu.api.selectors import parse_labels
from noxu.features import check_name, listed_names, meant, nearest
from noxu.manifests import loading
from noxu.registry.resource import Resource
from noxu.registry.served_resources import ServedResources
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
    name, group, version = _parts(text)
    named = [resource for resource in served_resources.resources if name in names_of(resource)]
    found = [each for each in named if group in (None, each.group) and version in ("", each.version)]
    if not found and group is not None and not version:  # widgets.v1.example.com
        version, _, group = group.partition(".")
        found = [each for each in named if (group, version) == (each.group, each.version)]
    if not found:
        raise UnknownKind(f"no kind {text!r} is served{_meant(served_resources, name)}")
    groups = list(served_resources.groups)
    return min(
        found, key=lambda each: (groups.index(each.group), served_resources.groups[each.group].index(each.version))
    )


def of(served_resources: ServedResources, what: str | Object, name: str = "", namespace: str | None = None) -> Address:
    """The address of an object: (kind, name), or an object. Raises UnknownKind, ValueError."""
    if isinstance(what, str):
        if not name:
            raise ValueError(f"the name of the {what} is missing")
        resource = find(served_resources, what)
    else:
        resource = of_object(served_resources, what)
        name, found = loading.name_of(what), loading.namespace_of(resource, what)
        if not name:
            raise ValueError(f"this {resource.kind} has no metadata.name")
        namespace = found if namespace is None else namespace
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


def names_of(resource: Resource) -> tuple[str, ...]:
    return resource.plural, resource.kind, resource.singular, *resource.short_names


def _parts(text: str) -> tuple[str, str | None, str]:
    """(name, group or None, version or ""). `Pod.` and `v1/Pod` are in the core group."""
    if "/" in text:
        *above, name = text.split("/")
        version = above[-1]
        return name, "/".join(above[:-1]), version
    name, dot, group = text.partition(".")
    return name, group if dot else None, ""


def _meant(served_resources: ServedResources, name: str) -> str:
    known = {
        known: f"{resource.group_resource}" for resource in served_resources.resources for known in names_of(resource)
    }
    found = nearest(name, known)
    return f"; did you mean {known[found]}?" if found else ""


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
GROUPS: Final = (
    "system:authenticated",
    "system:bootstrappers",
    "system:masters",
    "system:monitoring",
    "system:nodes",
    "system:serviceaccounts",
    "system:unauthenticated",
)
"""The groups of Kubernetes itself; those of the service accounts of a namespace have its name at the end."""
_CODES: Final = range(600)
_READ: Final = {"get", "list", "watch"}


def operations(given: str | Iterable[str]) -> tuple[str, ...]:
    """The operations of a function in the place of a webhook. Raises ValueError."""
    found = names(given)
    if not found:
        raise ValueError(f"operations: without one the function is never called; there are {listed_names(OPERATIONS)}")
    for name in found:
        if name.lower() in _READ:
            raise ValueError(
                f'operations: "{name}" only reads, so it is not admitted; there are {listed_names(OPERATIONS)}'
            )
        check_name(name, (*OPERATIONS, ANY), "operations")
    return found


def verb(given: str) -> str:
    """The verb of requests, "" for any. Raises ValueError."""
    check_name(given, (*VERBS, ""), "verb")
    return given


def code(given: int) -> int:
    """The code of requests, 0 for any. Raises ValueError, TypeError."""
    if not isinstance(given, int):
        raise TypeError(f"code: an int is expected, and not {given!r}")
    if given not in _CODES:
        raise ValueError(f"code: {given} is no code of HTTP")
    return given


def groups(given: str | Iterable[str]) -> tuple[str, ...]:
    """The groups of a user. Raises ValueError for one that looks like a group of Kubernetes, and is none."""
    found = names(given)
    for name in found:
        head = ":".join(name.split(":")[:2])
        if head.startswith("system:") and head not in GROUPS and (similar := nearest(head, GROUPS)):
            raise ValueError(f'groups: "{name}" is no group of Kubernetes; did you mean {similar}?')
    return found


def user(given: str, known: Iterable[str]) -> str:
    """The user of requests, "" for any. Raises ValueError for one who has sent none, if a known one is similar."""
    known = sorted({*known} - {""})
    if given and given not in known and (similar := nearest(given, known)):
        raise ValueError(f'user: no user "{given}" is known; did you mean {similar}?')
    return given


def namespace(given: str, known: Iterable[str]) -> None:
    """Raises ValueError for a namespace in which something is looked for, and which has never existed."""
    known = sorted(known)
    if given not in known:
        raise ValueError(f'namespace: no "{given}" exists or has existed{meant(given, known)}')


def selector(given: str | Mapping[str, str], place: str) -> str:
    """The text of a selector, which may be a dict of equal values. Raises TypeError, ValueError."""
    if isinstance(given, str):
        return given
    if not isinstance(given, Mapping):
        raise TypeError(f"{place}: a text or a dict is expected, and not {given!r}")
    for name, value in given.items():
        if not isinstance(value, str):
            raise TypeError(f"{place}: the value of {name} is {value!r}, and not a text")
        if "," in f"{name}{value}":
            raise ValueError(f"{place}: {name}={value} would be several conditions: write them as a text")
    text = ",".join(f"{name}={value}" for name, value in given.items())
    if place == "labels":
        parse_labels(text)
    return text


def subresource(given: str | None, served_resources: ServedResources, resource: str | None) -> str | None:
    """The subresource of requests, "" for the object itself, None for any. Raises ValueError."""
    if given:
        of = [each for each in served_resources.resources if resource in (None, str(each.group_resource))]
        check_name(given, sorted({part for each in of for part in each.subresources}), "subresource")
    return given


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
        of_group = [each for each in served_resources.resources if self.group in (ANY, each.group)]
        found = [each for each in of_group if self.plural in (ANY, each.plural)]
        if not found:
            known = {str(each.group_resource) for each in served_resources.resources}
            named = self.text.partition("/")[0].removesuffix(".")
            raise UnknownKind(f"no resource {named!r} is served{self._meant(served_resources, named, known)}; {LATER}")
        if self.subresource not in ("", ANY):
            check_name(
                self.subresource, sorted({part for each in found for part in each.subresources}), self._of("part")
            )
        if self.version != ANY:
            check_name(self.version, sorted({each.version for each in found}), self._of("version"))
        possible = {each for resource in found for each in _operations_on(resource, self.subresource)}
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

    def _meant(self, served_resources: ServedResources, named: str, known: Iterable[str]) -> str:
        """The resource that has this name as one of its others, or the most similar one."""
        lower = named.lower()
        for each in served_resources.resources:
            if lower in _other_names(each):
                return f"; did you mean {each.group_resource}?"
        return meant(named, known)


def _operations_on(resource: Resource, subresource: str) -> set[str]:
    """The operations of the requests about a resource, or one of its subresources, that are admitted."""
    parts = resource.subresources if subresource == ANY else {subresource} & {"", *resource.subresources}
    found = set()
    for part in parts | ({""} if subresource == ANY else set()):
        declared = resource.table.subresource(part) if resource.table is not None and part else None
        if declared is not None and declared.connect:
            found.add("CONNECT")
        else:
            verbs = resource.verbs if not part else ("update",) if declared is None else declared.verbs
            found |= {_OPERATIONS[verb] for verb in verbs if verb in _OPERATIONS}
    return found


LATER: Final = "`later=True` if it is defined later"


def definition(name: str, served_resources: ServedResources) -> None:
    """Raises UnknownKind for a definition that is not served."""
    if name not in served_resources.defined:
        raise UnknownKind(f"no definition {name!r} is served{meant(name, served_resources.defined)}; {LATER}")


def _other_names(resource: Resource) -> set[str]:
    found = (resource.plural, resource.kind.lower(), resource.singular, *resource.short_names)
    return {each for name in found for each in (name, f"{name}.{resource.group}")}
