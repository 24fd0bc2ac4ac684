"""Kubernetes' authorizer in expressions of admission.

    authorizer.group('apps').resource('deployments').namespace('x').check('get').allowed()

Each call but the last adds an attribute to a question; `check` adds the verb and asks. This module only builds the
questions: the function that the `authorizer` variable was made with decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from noxu.api.names import dns1123_label, dns1123_subdomain
from noxu.cel.errors import CelError, no_such_overload
from noxu.cel.library.declarations import Overload, overload
from noxu.cel.types.types import AUTHORIZER, DECISION, GROUP_CHECK, PATH_CHECK, RESOURCE_CHECK, Type
from noxu.cel.values.values import Opaque, Value


class AuthorizerDecision(NamedTuple):
    """The answer to a question. `error` is set if it could not be decided."""

    allowed: bool
    reason: str = ""
    error: str = ""


Authorize: TypeAlias = Callable[[Mapping[str, str]], AuthorizerDecision]
"""Answers a question, given its attributes.

They are `verb`; `user` for another service account; `path`, or `group`, `resource`, `subresource`, `namespace`, `name`,
`fieldSelector` and `labelSelector`. Attributes that the expression does not give are missing.
"""


class _Question(Opaque):
    """An authorizer or a check: the attributes of a question so far."""

    __slots__ = ("attributes", "authorize", "type")

    def __init__(self, kind: Type, authorize: Authorize, attributes: Mapping[str, str]) -> None:
        self.type = kind
        self.authorize = authorize
        self.attributes = attributes

    def equals(self, other: Value) -> bool:
        raise no_such_overload()  # not even to itself

    def with_attributes(self, kind: Type, **added: str) -> _Question:
        return _Question(kind, self.authorize, {**self.attributes, **added})


class Authorizer(_Question):
    """The value of the variable `authorizer`."""

    __slots__ = ()

    def __init__(self, authorize: Authorize) -> None:
        super().__init__(AUTHORIZER, authorize, {})


def resource_check(
    authorize: Authorize, group: str, resource: str, subresource: str, namespace: str, name: str
) -> Value:
    """The value of `authorizer.group(…).resource(…)…`: questions about one object."""
    attributes = {
        "group": group,
        "resource": resource,
        "subresource": subresource,
        "namespace": namespace,
        "name": name,
    }
    return _Question(RESOURCE_CHECK, authorize, attributes)


class _Decision(Opaque):
    __slots__ = ("decision",)
    type = DECISION

    def __init__(self, decision: AuthorizerDecision) -> None:
        self.decision = decision

    def equals(self, other: Value) -> bool:
        raise no_such_overload()


def _with(kind: Type, attribute: str) -> Callable[[_Question, str], _Question]:
    return lambda question, value: question.with_attributes(kind, **{attribute: value})


def _check(question: _Question, verb: str) -> _Decision:
    return _Decision(question.authorize({**question.attributes, "verb": verb}))


def _service_account(question: _Question, namespace: str, name: str) -> _Question:
    if dns1123_subdomain(name):
        raise CelError("Invalid service account name")
    if dns1123_label(namespace):
        raise CelError("Invalid service account namespace")
    return question.with_attributes(AUTHORIZER, user=f"system:serviceaccount:{namespace}:{name}")


OVERLOADS: Final[list[tuple[str, Overload]]] = [
    overload("authorizer_path", "authorizer.path(string) -> pathcheck", _with(PATH_CHECK, "path")),
    overload("authorizer_group", "authorizer.group(string) -> groupcheck", _with(GROUP_CHECK, "group")),
    overload("authorizer_serviceaccount", "authorizer.serviceAccount(string, string) -> authorizer", _service_account),
    overload("groupcheck_resource", "groupcheck.resource(string) -> resourcecheck", _with(RESOURCE_CHECK, "resource")),
    overload(
        "resourcecheck_subresource",
        "resourcecheck.subresource(string) -> resourcecheck",
        _with(RESOURCE_CHECK, "subresource"),
    ),
    overload(
        "resourcecheck_namespace",
        "resourcecheck.namespace(string) -> resourcecheck",
        _with(RESOURCE_CHECK, "namespace"),
    ),
    overload("resourcecheck_name", "resourcecheck.name(string) -> resourcecheck", _with(RESOURCE_CHECK, "name")),
    overload("pathcheck_check", "pathcheck.check(string) -> decision", _check),
    overload("resourcecheck_check", "resourcecheck.check(string) -> decision", _check),
    overload("decision_errored", "decision.errored() -> bool", lambda value: bool(value.decision.error)),
    overload("decision_error", "decision.error() -> string", lambda value: value.decision.error),
    overload("decision_allowed", "decision.allowed() -> bool", lambda value: value.decision.allowed),
    overload("decision_reason", "decision.reason() -> string", lambda value: value.decision.reason),
    overload(
        "authorizer_fieldselector",
        "resourcecheck.fieldSelector(string) -> resourcecheck",
        _with(RESOURCE_CHECK, "fieldSelector"),
    ),
    overload(
        "authorizer_labelselector",
        "resourcecheck.labelSelector(string) -> resourcecheck",
        _with(RESOURCE_CHECK, "labelSelector"),
    ),
]
