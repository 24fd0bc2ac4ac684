"""The least roles that would have allowed what was asked: RBAC made of a record of requests.

    list  widgets in all namespaces                     ClusterRole   widgets          list, watch
    watch widgets in all namespaces
    update widgets/status of shop/a, of attic/b         ClusterRole   widgets/status   update
    get, update leases of shop/operator                 Role in shop  leases           get, update   only operator

A *permission* is a verb on a resource, perhaps on a subresource of it. One that was used in one namespace only is in a Role
there, every other one in the ClusterRole. If it was always used for the same name, it is for that name only; a request to create
has no name that RBAC could know, and a list or watch only the one that its field selector selects (kubernetes.io/docs, Using RBAC,
Referring to resources). Each permission is in one rule, so that no rule can be left out. Refused requests count, too: what
asked for them needs the right.

Discovery, OpenAPI, health and version are left out unless they are asked for: `system:discovery` grants them to every user.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote

from noxu.control.recorded_requests import RecordedRequest
from noxu.expressions import expression
from noxu.kinds.policy_rules import covers_path
from noxu.registry.access import AccessAttributes, User
from noxu.security.rbac import ACCOUNT_PREFIX, ALL, RolePolicy
from noxu.values import Object

API: Final = "rbac.authorization.k8s.io"
VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
"""In the order in which rules list them; others follow."""
DISCOVERY: Final = (
    "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version", "/version/",
)  # fmt: skip
"""What system:discovery and system:public-info-viewer allow every user to get."""
CREATED: Final = 201
_UNKNOWN_USER: Final = 401
_NOT_OF_A_NAME: Final = expression("[^a-z0-9.-]+")
_OWN: Final = "/_noxu"


class NeededRight(NamedTuple):
    """What authorization is asked. `path` is "" for a resource, else the verb is a method in lower case."""

    verb: str
    group: str = ""
    resource: str = ""
    """With a subresource: `widgets/status`."""
    namespace: str = ""
    name: str = ""
    path: str = ""

    def attributes(self, user: User) -> AccessAttributes:
        """The same question, for an authorizer."""
        if self.path:
            return AccessAttributes(user, self.verb, path=self.path)
        resource, _, subresource = self.resource.partition("/")
        return AccessAttributes(user, self.verb, self.group, "", resource, subresource, self.namespace, self.name)


class LeastRule(NamedTuple):
    """A PolicyRule. `urls` are those of no resource; then the others are empty."""

    group: str
    resources: tuple[str, ...]
    names: tuple[str, ...]
    verbs: tuple[str, ...]
    urls: tuple[str, ...] = ()

    @property
    def manifest(self) -> Object:
        if self.urls:
            return {"nonResourceURLs": list(self.urls), "verbs": list(self.verbs)}
        value: Object = {"apiGroups": [self.group], "resources": list(self.resources)}
        return value | ({"resourceNames": list(self.names)} if self.names else {}) | {"verbs": list(self.verbs)}


# -- what was asked ----------------------------------------------------------------------------------------------------


def questions(requests: Iterable[RecordedRequest], *, discovery: bool = False) -> list[NeededRight]:
    """What authorization is asked for these requests, each question once. With `discovery`, also what everybody may get."""
    asked: dict[NeededRight, None] = {}
    for request in requests:
        if request.code != _UNKNOWN_USER:
            asked.update(dict.fromkeys(_questions(request, discovery)))
    return list(asked)


def _questions(request: RecordedRequest, discovery: bool) -> Iterator[NeededRight]:
    if not request.resource:
        path = unquote(request.path.partition("?")[0])
        is_granted = request.method == "GET" and any(covers_path(url, path) for url in DISCOVERY)
        # in a rule a * stands for any text, so a path that has one would grant others
        if path.startswith("/") and "*" not in path and not path.startswith(_OWN) and (discovery or not is_granted):
            yield NeededRight(request.method.lower(), path=path)
        return
    plural, _, group = request.resource.partition(".")
    if not request.verb or ALL in (
        plural,
        group,
    ):  # another method; a name that no resource has, and a rule would grant all
        return
    resource = f"{plural}/{request.subresource}" if request.subresource else plural
    # a namespace is in itself to upstream, but a Role in each would grant it nowhere else
    namespace = "" if plural == "namespaces" and not group else request.namespace
    yield NeededRight(request.verb, group, resource, namespace, request.named)
    if request.verb in ("update", "patch") and request.code == CREATED:  # upstream's withAuthorization
        yield NeededRight("create", group, resource, namespace, request.named)


# -- roles -------------------------------------------------------------------------------------------------------------


def least_rules(asked: Iterable[NeededRight], *, names: bool = True) -> dict[str, list[LeastRule]]:
    """The rules of each namespace, "" for those of the cluster, in a stable order. Without `names` all objects may be named."""
    uses: defaultdict[tuple[str, str, str], set[tuple[str, str]]] = defaultdict(set)
    urls: defaultdict[str, set[str]] = defaultdict(set)
    for question in asked:
        if question.path:
            urls[question.path].add(question.verb)
        else:
            uses[question.group, question.resource, question.verb].add((question.namespace, question.name))
    scoped: defaultdict[str, list[tuple[str, str, tuple[str, ...], str]]] = defaultdict(list)
    for (group, resource, verb), seen in uses.items():
        namespaces = {namespace for namespace, _ in seen}
        named = {name for _, name in seen}
        only = tuple(named) if names and len(named) == 1 and "" not in named else ()
        scoped[namespaces.pop() if len(namespaces) == 1 else ""].append((group, resource, only, verb))
    rules = {namespace: _merged(permissions) for namespace, permissions in sorted(scoped.items())}
    if urls:
        rules[""] = [*rules.get("", ()), *_merged_urls(urls)]
    return rules


def _merged(permissions: Iterable[tuple[str, str, tuple[str, ...], str]]) -> list[LeastRule]:
    """Verbs of the same resource and names are one rule, and so are resources with the same verbs and names."""
    verbs: defaultdict[tuple[str, str, tuple[str, ...]], set[str]] = defaultdict(set)
    for group, resource, names, verb in permissions:
        verbs[group, resource, names].add(verb)
    resources: defaultdict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = defaultdict(list)
    for (group, resource, names), allowed in verbs.items():
        resources[group, names, _ordered(allowed)].append(resource)
    merged = (LeastRule(group, tuple(sorted(of)), names, allowed) for (group, names, allowed), of in resources.items())
    return sorted(merged, key=lambda rule: (rule.group, rule.resources, rule.names, rule.verbs))


def _merged_urls(urls: dict[str, set[str]]) -> list[LeastRule]:
    by_verbs: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for url, verbs in sorted(urls.items()):
        by_verbs[_ordered(verbs)].append(url)
    return [LeastRule("", (), (), verbs, tuple(of)) for verbs, of in sorted(by_verbs.items())]


def _ordered(verbs: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(verbs, key=lambda verb: (VERBS.index(verb) if verb in VERBS else len(VERBS), verb)))


def manifests(rules: dict[str, list[LeastRule]], name: str, subjects: Sequence[str] = ()) -> list[Object]:
    """The ClusterRole and the Roles, and a binding of each to the users; system:serviceaccount:… are service accounts."""
    objects: list[Object] = []
    for namespace, of in rules.items():
        kind = "Role" if namespace else "ClusterRole"
        metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
        role = {"apiVersion": f"{API}/v1", "kind": kind, "metadata": metadata}
        objects.append(role | {"rules": [rule.manifest for rule in of]})
        if subjects:
            binding = role | {"kind": f"{kind}Binding", "roleRef": {"apiGroup": API, "kind": kind, "name": name}}
            objects.append(binding | {"subjects": [_subject(user) for user in subjects]})
    return objects


def _subject(user: str) -> Object:
    namespace, colon, name = user.removeprefix(ACCOUNT_PREFIX).partition(":")
    if user.startswith(ACCOUNT_PREFIX) and colon:
        return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    return {"apiGroup": API, "kind": "User", "name": user}


def name_of(agents: Iterable[str]) -> str:
    """A name for the roles of clients: the first part of their user agent, if they have the same one."""
    found = {_NOT_OF_A_NAME.sub("-", agent.partition("/")[0].lower()).strip(".-")[:63].rstrip(".-") for agent in agents}
    return (found.pop() if len(found) == 1 else "") or "observed"


# -- whether they suffice ----------------------------------------------------------------------------------------------


def refused(roles: Iterable[Object], asked: Iterable[NeededRight]) -> list[NeededRight]:
    """The questions that roles would refuse to somebody who has them all. Bindings among them do not count."""
    policy, user = RolePolicy(), User("observed", groups=())
    subjects = [{"apiGroup": API, "kind": "User", "name": user.name}]
    numbers = itertools.count()
    for role in roles:
        if role["kind"].endswith("Binding"):
            continue
        metadata = role["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        policy.put_role(namespace, name, role)
        reference = {"apiGroup": API, "kind": role["kind"], "name": name}
        policy.put_binding(namespace, f"observed-{next(numbers)}", {"roleRef": reference, "subjects": subjects})
    return [question for question in asked if not policy.authorize(question.attributes(user)).allowed]
