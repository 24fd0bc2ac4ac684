"""Kubernetes' authorizer, for expressions of admission: who may do what.

Only the shape of the questions is known here. The `authorizer` variable is an `Authorizer` whose `ask` decides: it
gets the question's attributes and answers (allowed, reason, error).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from apiserver.api.names import dns1123_label, dns1123_subdomain
from apiserver.cel.errors import CelError, no_such_overload
from apiserver.cel.library.declarations import Overload, overload
from apiserver.cel.types import AUTHORIZER, DECISION, GROUP_CHECK, PATH_CHECK, RESOURCE_CHECK, Type
from apiserver.cel.values import Opaque, Value


class Answer(NamedTuple):
    allowed: bool
    reason: str = ""
    error: str = ""


# Attributes: user (only for another service account), path | group, resource, subresource, namespace, name,
# fieldSelector, labelSelector; and always verb.
Ask: TypeAlias = Callable[[Mapping[str, str]], Answer]


class _Question(Opaque):
    """A question as far as it has been put."""

    __slots__ = ("ask", "attributes", "type")

    def __init__(self, kind: Type, ask: Ask, attributes: Mapping[str, str]) -> None:
        self.type = kind
        self.ask = ask
        self.attributes = attributes

    def equals(self, other: Value) -> bool:
        raise no_such_overload()  # not even to itself

    def narrowed(self, kind: Type, **more: str) -> _Question:
        return _Question(kind, self.ask, {**self.attributes, **more})


class Authorizer(_Question):
    __slots__ = ()

    def __init__(self, ask: Ask) -> None:
        super().__init__(AUTHORIZER, ask, {})


def resource_check(ask: Ask, group: str, resource: str, subresource: str, namespace: str, name: str) -> Value:
    """What `authorizer.group(…).resource(…)…` would give: questions about one object."""
    attributes = {
        "group": group,
        "resource": resource,
        "subresource": subresource,
        "namespace": namespace,
        "name": name,
    }
    return _Question(RESOURCE_CHECK, ask, attributes)


class _Decision(Opaque):
    __slots__ = ("answer",)
    type = DECISION

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def equals(self, other: Value) -> bool:
        raise no_such_overload()


def _with(kind: Type, attribute: str) -> Callable[[_Question, str], _Question]:
    return lambda question, value: question.narrowed(kind, **{attribute: value})


def _check(question: _Question, verb: str) -> _Decision:
    return _Decision(question.ask({**question.attributes, "verb": verb}))


def _service_account(question: _Question, namespace: str, name: str) -> _Question:
    if dns1123_subdomain(name):
        raise CelError("Invalid service account name")
    if dns1123_label(namespace):
        raise CelError("Invalid service account namespace")
    return question.narrowed(AUTHORIZER, user=f"system:serviceaccount:{namespace}:{name}")


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
    overload("decision_errored", "decision.errored() -> bool", lambda decision: bool(decision.answer.error)),
    overload("decision_error", "decision.error() -> string", lambda decision: decision.answer.error),
    overload("decision_allowed", "decision.allowed() -> bool", lambda decision: decision.answer.allowed),
    overload("decision_reason", "decision.reason() -> string", lambda decision: decision.answer.reason),
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
