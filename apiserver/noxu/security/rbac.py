"""RBAC: what roles and their bindings allow users to do (plugin/pkg/auth/authorizer/rbac, pkg/registry/rbac/validation).

A request is allowed if a rule of a role allows it, and a binding grants the role to the user or to a group of theirs. All
ClusterRoleBindings count, and for a request in a namespace the RoleBindings there, too. Nothing is ever denied: rules only
add. The quirks are upstream's:

- The resource `*` includes subresources, and `*/scale` is that subresource of every resource; `pods` does not include
  `pods/log`, and `pods/*` is no pattern.
- Without resourceNames a rule is for all names; with some only for these, never for a request without a name.
- A path matches exactly, `*`, or by the prefix before a `*` at its end. RoleBindings grant no paths.

`RolePolicy` has the roles compiled, and the bindings by user and group. So a request costs as much as its user has bindings in
one namespace, or if these are many, as there are rules about the resource in them. All sizes are linear in the objects.
Expressions of admission may ask from the worker thread, hence the lock.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from sys import intern
from threading import Lock
from typing import Final, NamedTuple

from noxu.api.errors import aggregate
from noxu.cpu_budget import spend
from noxu.go.text import quote
from noxu.kinds.policy_rules import covers_path
from noxu.registry.access import AccessAttributes, Decision, User
from noxu.values import Json, Object

ALL: Final = "*"
ACCOUNT_PREFIX: Final = "system:serviceaccount:"
MANY: Final = 32
"""The number of a subject's roles in one namespace from which on their rules are indexed by resource."""
_FEW_NAMES: Final = 8
MAX_LISTED: Final = 200_000
"""The most characters of the rules that are listed, about those of JSON."""
_PER_RULE: Final = 50


class PolicyRule:
    """A PolicyRule."""

    __slots__ = ("any_group", "any_verb", "groups", "named", "names", "resources", "urls", "verbs")

    def __init__(self, rule: Object) -> None:
        self.verbs = _texts(rule.get("verbs"))
        self.groups = _texts(rule.get("apiGroups"))
        self.resources = _texts(rule.get("resources"))
        self.names = _texts(rule.get("resourceNames"))
        self.urls = _texts(rule.get("nonResourceURLs"))
        self.any_verb = ALL in self.verbs
        self.any_group = ALL in self.groups
        self.named = self.names if len(self.names) <= _FEW_NAMES else frozenset(self.names)

    @property
    def texts(self) -> Iterator[str]:
        return chain(self.verbs, self.groups, self.resources, self.names, self.urls)

    @property
    def manifest(self) -> Object:
        """The rule as it was written, without empty fields."""
        fields = {
            "verbs": self.verbs,
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.urls,
        }
        return {name: list(texts) for name, texts in fields.items() if texts}

    def allows_object(self, verb: str, group: str, name: str) -> bool:
        """Whether it allows a verb on an object of one of its resources."""
        return (
            (self.any_verb or verb in self.verbs)
            and (self.any_group or group in self.groups)
            and (not self.named or name in self.named)
        )

    def allows_path(self, verb: str, path: str) -> bool:
        return (self.any_verb or verb in self.verbs) and any(covers_path(url, path) for url in self.urls)


def _texts(value: Json) -> tuple[str, ...]:
    """The texts of a list. Equal ones are kept once for all rules."""
    if not value:
        return ()
    try:
        return tuple(map(intern, value))
    except TypeError:  # stored by a program that does not validate
        return tuple(intern(text) for text in value if isinstance(text, str))


class Role:
    """The rules of a role, also by resource."""

    __slots__ = ("by_resource", "rules", "urls")

    def __init__(self, role: Object) -> None:
        self.rules = tuple(map(PolicyRule, role.get("rules") or ()))
        self.urls = tuple(rule for rule in self.rules if rule.urls)
        rules_by_resource: dict[str, list[PolicyRule]] = {}
        for rule in self.rules:
            for resource in dict.fromkeys(rule.resources):
                rules_by_resource.setdefault(resource, []).append(rule)
        self.by_resource = {resource: tuple(rules) for resource, rules in rules_by_resource.items()}

    @property
    def length(self) -> int:
        """The number of characters of its rules, about those of JSON."""
        return sum(_PER_RULE + sum(map(len, rule.texts)) for rule in self.rules)


class RoleKey(NamedTuple):
    """A role: `namespace` "" is that of ClusterRoles. `kind` tells apart references to kinds that do not exist."""

    kind: str
    namespace: str
    name: str

    @property
    def missing(self) -> str:
        """The error of a binding to this role if it does not exist."""
        return self._error(self.kind.lower())

    @property
    def not_found(self) -> str:
        """The same error, of a write."""
        return self._error(f"{self.kind.lower()}s")

    def _error(self, resource: str) -> str:
        if self.kind not in ("Role", "ClusterRole"):
            return f"unsupported role reference kind: {quote(self.kind)}"
        return f"{resource}.rbac.authorization.k8s.io {quote(self.name)} not found"


class Subject(NamedTuple):
    """A user or a group. A service account is the user of its name; `shown` is how messages name it."""

    is_group: bool
    name: str
    shown: str


class RoleBinding:
    """A binding; `namespace` is "" for a ClusterRoleBinding."""

    __slots__ = ("name", "namespace", "role", "subjects")

    def __init__(self, namespace: str, name: str, binding: Object) -> None:
        self.namespace = namespace
        self.name = name
        reference: Object = binding.get("roleRef") or {}
        kind = intern(reference.get("kind", ""))
        self.role = RoleKey(kind, namespace if kind == "Role" else "", intern(reference.get("name", "")))
        self.subjects = tuple(filter(None, (_subject(subject, namespace) for subject in binding.get("subjects") or ())))

    def reason(self, subject: Subject) -> str:
        """Why it allows a request."""
        kind, name = ("RoleBinding", f"{self.name}/{self.namespace}") if self.namespace else (CLUSTER, self.name)
        role = f"{self.role.kind} {quote(self.role.name)}"
        return f"RBAC: allowed by {kind} {quote(name)} of {role} to {subject.shown}"


CLUSTER: Final = "ClusterRoleBinding"


def _subject(subject: Object, namespace: str) -> Subject | None:
    """The subject of a binding in a namespace, None if it can be no user."""
    kind, name = subject.get("kind", ""), intern(subject.get("name", ""))
    match kind:
        case "User" | "Group":
            return Subject(kind == "Group", name, f"{kind} {quote(name)}")
        case "ServiceAccount" if of := subject.get("namespace") or namespace:
            return Subject(False, intern(f"{ACCOUNT_PREFIX}{of}:{name}"), f"{kind} {quote(f'{name}/{of}')}")
    return None


class Grant:
    """A binding to one of its subjects, with the answer to what it allows."""

    __slots__ = ("_decision", "binding", "subject")

    def __init__(self, binding: RoleBinding, subject: Subject) -> None:
        self.binding = binding
        self.subject = subject
        self._decision: Decision | None = None

    @property
    def decision(self) -> Decision:
        if self._decision is None:
            self._decision = Decision(allowed=True, reason=self.binding.reason(self.subject))
        return self._decision

    @property
    def name(self) -> str:
        return self.binding.name


class Question(NamedTuple):
    """What is asked of one rule. `keys` are the resources of rules that match."""

    keys: tuple[str, ...]
    verb: str
    group: str
    name: str


_by_name: Final = attrgetter("name")


class Grants:
    """The grants to one subject in one namespace, or in the cluster, in the order of the bindings' names."""

    __slots__ = ("_by_resource", "_granted", "_indexed", "_version", "items")

    def __init__(self) -> None:
        self.items: list[Grant] = []
        self._by_resource: dict[str, list[tuple[Sequence[PolicyRule], Grant]]] = {}
        self._granted: dict[RoleKey, Grant] | None = None
        """The first grant of each role, the last role first; None: not known yet."""
        self._indexed: dict[RoleKey, Role | None] = {}
        self._version = -1

    def add(self, grant: Grant) -> None:
        insort(self.items, grant, key=_by_name)
        self._version, self._granted, self._indexed = -1, None, {}

    def remove(self, binding: RoleBinding) -> None:
        self.items = [grant for grant in self.items if grant.binding is not binding]
        self._version, self._granted, self._indexed = -1, None, {}

    def allow_object(self, question: Question, roles: dict[RoleKey, Role], version: int) -> Grant | None:
        """The first grant that allows it. `version` is that of the roles."""
        keys, verb, group, name = question
        if self._granted is None:
            self._granted = {grant.binding.role: grant for grant in reversed(self.items)}
        if len(self._granted) > MANY:
            if self._version != version:
                self._index(roles, version)
            for key in keys:
                for rules, grant in self._by_resource.get(key, ()):
                    for rule in rules:
                        if rule.allows_object(verb, group, name):
                            return grant
            return None
        for role_key, grant in reversed(self._granted.items()):
            role = roles.get(role_key)
            if role is None:
                continue
            for key in keys:
                for rule in role.by_resource.get(key, ()):
                    if rule.allows_object(verb, group, name):
                        return grant
        return None

    def _index(self, roles: dict[RoleKey, Role], version: int) -> None:
        """Index the rules, unless other roles have changed."""
        self._version = version
        if self._indexed and all(roles.get(key) is role for key, role in self._indexed.items()):
            return
        self._by_resource.clear()
        assert self._granted is not None
        self._indexed = {key: roles.get(key) for key in self._granted}
        for key, grant in reversed(self._granted.items()):
            role = self._indexed[key]
            for resource, rules in role.by_resource.items() if role is not None else ():
                self._by_resource.setdefault(resource, []).append((rules, grant))


class Scope:
    """The grants of one namespace, or those of the cluster."""

    __slots__ = ("bindings", "groups", "users")

    def __init__(self) -> None:
        self.bindings: dict[str, RoleBinding] = {}
        self.users: dict[str, Grants] = {}
        self.groups: dict[str, Grants] = {}

    def put(self, binding: RoleBinding) -> None:
        self.remove(binding.name)
        self.bindings[binding.name] = binding
        for subject in dict.fromkeys(binding.subjects):
            self._of(subject).setdefault(subject.name, Grants()).add(Grant(binding, subject))

    def remove(self, name: str) -> None:
        binding = self.bindings.pop(name, None)
        if binding is None:
            return
        for subject in dict.fromkeys(binding.subjects):
            grants = self._of(subject)
            if (held := grants.get(subject.name)) is not None:
                held.remove(binding)
                if not held.items:
                    del grants[subject.name]

    def _of(self, subject: Subject) -> dict[str, Grants]:
        return self.groups if subject.is_group else self.users

    def grants_to(self, user: User) -> Iterator[Grants]:
        if (held := self.users.get(user.name)) is not None:
            yield held
        groups = self.groups
        for group in user.groups:
            if (held := groups.get(group)) is not None:
                yield held

    def bindings_of(self, user: User) -> list[RoleBinding]:
        """The bindings that apply to a user, in the order of their names."""
        by_name = {grant.binding.name: grant.binding for grants in self.grants_to(user) for grant in grants.items}
        return [by_name[name] for name in sorted(by_name)]


class RolePolicy:
    """All roles and bindings. Objects are put and removed as they change; a request reads nothing else."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._roles: dict[RoleKey, Role] = {}
        self._version = 0
        self._cluster = Scope()
        self._namespaces: dict[str, Scope] = {}

    def take_over(self, other: RolePolicy) -> None:
        """Have the roles and bindings of another policy, whose compiled ones are shared: they do not change."""
        with other._lock, self._lock:  # the other one does not change any more
            self._roles = other._roles.copy()
            self._version += 1
            for namespace, scope in (("", other._cluster), *other._namespaces.items()):
                own = self._namespaces.setdefault(namespace, Scope()) if namespace else self._cluster
                for binding in scope.bindings.values():
                    own.put(binding)

    # -- changes

    def compile_role(self, namespace: str, name: str, role: Object) -> Callable[[], None]:
        """Compile a role, in any thread. Calling the result makes it count."""
        compiled_role = Role(role)

        def put() -> None:
            with self._lock:
                self._roles[_role_key(namespace, name)] = compiled_role
                self._version += 1

        return put

    def put_role(self, namespace: str, name: str, role: Object) -> None:
        self.compile_role(namespace, name, role)()

    def remove_role(self, namespace: str, name: str) -> None:
        with self._lock:
            self._roles.pop(_role_key(namespace, name), None)
            self._version += 1

    def compile_binding(self, namespace: str, name: str, binding: Object) -> Callable[[], None]:
        """As `compile_role`."""
        compiled_binding = RoleBinding(namespace, name, binding)

        def put() -> None:
            with self._lock:
                scope = self._namespaces.setdefault(namespace, Scope()) if namespace else self._cluster
                scope.put(compiled_binding)

        return put

    def put_binding(self, namespace: str, name: str, binding: Object) -> None:
        self.compile_binding(namespace, name, binding)()

    def remove_binding(self, namespace: str, name: str) -> None:
        with self._lock:
            scope = self._namespaces.get(namespace) if namespace else self._cluster
            if scope is None:
                return
            scope.remove(name)
            if namespace and not scope.bindings:
                del self._namespaces[namespace]

    # -- answers

    def authorize(self, asked: AccessAttributes) -> Decision:
        """An `Authorize`. A refusal names the roles that are missing."""
        with self._lock:
            grant = self._grant_of_path(asked) if asked.path is not None else self._grant_of_object(asked)
            if grant is not None:
                return grant.decision
            missing = self._missing_roles(asked.user, asked.namespace)
        return Decision(allowed=False, reason=f"RBAC: {aggregate(missing)}") if missing else NO_OPINION

    def _grant_of_object(self, asked: AccessAttributes) -> Grant | None:
        user, resource, subresource = asked.user, asked.resource, asked.subresource
        keys = (f"{resource}/{subresource}", ALL, f"*/{subresource}") if subresource else (resource, ALL)
        question = Question(keys, asked.verb, asked.group, asked.name)
        for scope in self._scopes(asked.namespace):
            for grants in scope.grants_to(user):
                grant = grants.allow_object(question, self._roles, self._version)
                if grant is not None:
                    return grant
        return None

    def _grant_of_path(self, asked: AccessAttributes) -> Grant | None:
        assert asked.path is not None
        for grants in self._cluster.grants_to(asked.user):
            for grant in grants.items:
                role = self._roles.get(grant.binding.role)
                if role is not None and any(rule.allows_path(asked.verb, asked.path) for rule in role.urls):
                    return grant
        return None

    def _scopes(self, namespace: str) -> Sequence[Scope]:
        scope = self._namespaces.get(namespace) if namespace else None
        return (self._cluster,) if scope is None else (self._cluster, scope)

    def _missing_roles(self, user: User, namespace: str) -> list[str]:
        roles, scopes = self._roles, self._scopes(namespace)
        granted = (grants.items for scope in scopes for grants in scope.grants_to(user))
        if all(grant.binding.role in roles for items in granted for grant in items):
            return []
        bindings = self._bindings_of(user, namespace)
        return [binding.role.missing for binding in bindings if binding.role not in roles]

    def _bindings_of(self, user: User, namespace: str) -> Iterator[RoleBinding]:
        for scope in self._scopes(namespace):
            yield from scope.bindings_of(user)

    def rules_of(self, user: User, namespace: str) -> tuple[list[PolicyRule], list[RoleKey], bool]:
        """(The rules that apply to a user in a namespace or the cluster, in the order of the bindings, missing roles,
        whether these are all rules: their sum is limited, because small bindings repeat large roles)."""
        rules: list[PolicyRule] = []
        missing: list[RoleKey] = []
        left = MAX_LISTED
        for key, role in self._roles_of(user, namespace):
            if role is None:
                missing.append(key)
                continue
            spend(len(role.rules))
            left -= role.length if len(role.rules) * _PER_RULE <= left else left + 1
            if left < 0:
                return rules, missing, False
            rules += role.rules
        return rules, missing, True

    def rules_held(self, user: User, namespace: str) -> tuple[list[PolicyRule], list[RoleKey]]:
        """(The rules that a user has in a namespace or the cluster, those of each role once, missing roles)."""
        roles = self._roles_of(user, namespace)
        unique = {id(role): role for _, role in roles if role is not None}
        rules = list(chain.from_iterable(role.rules for role in unique.values()))
        return rules, [key for key, role in roles if role is None]

    def _roles_of(self, user: User, namespace: str) -> list[tuple[RoleKey, Role | None]]:
        """The roles that apply to a user, in the order of the bindings; None: missing."""
        with self._lock:
            return [(binding.role, self._roles.get(binding.role)) for binding in self._bindings_of(user, namespace)]

    def role(self, key: RoleKey) -> Role | None:
        return self._roles.get(key)


NO_OPINION: Final = Decision(allowed=False)


def _role_key(namespace: str, name: str) -> RoleKey:
    return RoleKey("Role" if namespace else "ClusterRole", namespace, name)
