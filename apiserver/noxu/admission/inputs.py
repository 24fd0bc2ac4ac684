"""The inputs of expressions in policies and match conditions: objects, `request`, namespace and authorizer.

Upstream's plugin/cel and plugin/webhook/request, which build the same AdmissionRequest for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from noxu import cel
from noxu.admission.attributes import Attributes, is_namespace
from noxu.admission.expressions import Inputs
from noxu.api import errors
from noxu.api.errors import Qualified
from noxu.registry import access
from noxu.registry.access import User
from noxu.registry.offload import offload
from noxu.registry.reader import key_of
from noxu.registry.resource import Resource
from noxu.registry.stored_object import object_at
from noxu.values import Object


def authorizer_of(request: Attributes) -> cel.Authorize:
    """What answers the questions of expressions: about the user of the request, or about a service account."""
    asking = request.draft.request

    def ask(question: Mapping[str, str]) -> cel.AuthorizerDecision:
        account = question.get("user", "")
        user = asking.user if not account else User(account, groups=_groups_of_account(account))
        fields = {name: question.get(name, "") for name in _ATTRIBUTES}
        selectors = {
            "field_selector": question.get("fieldSelector", ""),
            "label_selector": question.get("labelSelector", ""),
        }
        asked = access.AccessAttributes(user, version="*", path=question.get("path"), **fields, **selectors)
        decision = asking.authorize(asked)
        return cel.AuthorizerDecision(decision.allowed, decision.reason, decision.error)

    return ask


_ATTRIBUTES: Final = ("verb", "group", "resource", "subresource", "namespace", "name")


def _groups_of_account(name: str) -> tuple[str, ...]:
    namespace = name.split(":")[2]
    return "system:serviceaccounts", f"system:serviceaccounts:{namespace}"


async def inputs_of(request: Attributes, resource: Resource, namespace: Object | None) -> Inputs:
    """The inputs for a policy whose rules name this version of the request's resource, without params."""
    return Inputs(
        await request.new_at(resource),
        await request.old_at(resource),
        document(request, resource),
        (request.resource.group, request.resource.plural, request.subresource, request.namespace, request.name),
        namespace,
        None,
        authorizer_of(request),
    )


def for_conditions(inputs: Inputs) -> Inputs:
    """The inputs of match conditions: without namespace, and with the resource that the request named."""
    return inputs._replace(namespace=None, request={**inputs.request, "resource": inputs.request["requestResource"]})


def document(request: Attributes, resource: Resource) -> Object:
    """The AdmissionRequest for expressions: without empty fields, uid and objects."""
    user = request.draft.request.user
    own = request.resource
    kind, requested = request.kind_at(resource), request.kind
    shown: Object = {
        "kind": kind._asdict(),
        "resource": {"group": resource.group, "version": resource.version, "resource": resource.plural},
        "subResource": request.subresource,
        "requestKind": requested._asdict(),
        "requestResource": {"group": own.group, "version": own.version, "resource": own.plural},
        "requestSubResource": request.subresource,
        "name": request.name,
        "namespace": request.namespace,
    }
    shown = {name: value for name, value in shown.items() if value}
    shown["operation"] = request.operation
    info: Object = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {name: list(values) for name, values in user.extra},
    }
    shown["userInfo"] = {name: value for name, value in info.items() if value}
    shown["dryRun"] = request.dry_run
    shown["options"] = request.options
    return shown


_HIDDEN_METADATA: Final = ("managedFields", "ownerReferences", "selfLink")


async def namespace_of(request: Attributes) -> Object | None:
    """The namespace of the request for expressions, None for a cluster-scoped object. Raises ApiError NotFound."""
    if not request.namespace or is_namespace(request.resource):
        return None
    namespaces = request.served_resources.find("", "v1", "namespaces")
    assert namespaces is not None
    entry = (await request.reader.collection(namespaces)).entries.get(key_of(namespaces, "", request.namespace))
    if entry is None:
        raise errors.not_found(Qualified("", "namespaces"), request.namespace)
    value = await offload(len(entry.stored), object_at, entry, namespaces)
    metadata = {name: content for name, content in value["metadata"].items() if name not in _HIDDEN_METADATA}
    return {"metadata": metadata, "spec": value.get("spec", {}), "status": value.get("status", {})}
