"""Bindings: a POST of pods/binding or bindings assigns a Pod to a node (pkg/registry/core/pod/storage.BindingREST).

The node need not exist. A Pod is assigned once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from noxu.api import errors, field
from noxu.api.errors import ApiError, Qualified
from noxu.api.field import FieldError
from noxu.registry.draft import SUCCESS, Draft
from noxu.registry.reader import storage_error
from noxu.registry.stored_object import key_of
from noxu.registry.subresources import pods
from noxu.values import Object

_RESOURCE: Final = Qualified("", "pods/binding")


def check(draft: Draft) -> None:
    """Validate a Binding. Raises ApiError; upstream's error for an invalid one is a plain one."""
    if draft.request.subresource and draft.new["metadata"].get("name", "") != draft.request.name:
        raise errors.bad_request("name in URL does not match name in Binding object")
    problems = [str(error) for error in _errors(draft.new.get("target") or {})]
    if problems:
        raise errors.plain_error(errors.aggregate(problems))


def _errors(target: Object) -> Iterator[FieldError]:
    """ValidatePodBinding."""
    if target.get("kind") and target["kind"] != "Node":
        yield field.not_supported("target.kind", target["kind"], ["Node", "<empty>"])
    if not target.get("name"):
        yield field.required("target.name")


async def bind(draft: Draft) -> Object:
    """Assign the Pod to the node, with the Binding's labels and annotations. Raises ApiError."""
    binding = draft.new
    metadata, node = binding["metadata"], binding["target"]["name"]

    def assign(pod: Object) -> None:
        _check_preconditions(draft, metadata, pod["metadata"])
        if refusal := _refusal(pod):
            raise errors.conflict(_RESOURCE, pod["metadata"]["name"], refusal)
        pod["spec"]["nodeName"] = node  # in place: each attempt has a copy of its own
        (pod.get("status") or {}).pop("nominatedNodeName", None)
        for name in ("labels", "annotations"):
            if metadata.get(name):
                pod["metadata"][name] = {**(pod["metadata"].get(name) or {}), **metadata[name]}
        pods.set_condition(pod, {"type": "PodScheduled", "status": "True"}, draft.now)

    await pods.update(draft, metadata.get("name", ""), assign, dry_run=draft.request.options.dry_run)
    return dict(SUCCESS)


def _refusal(pod: Object) -> str:
    """Why a Pod cannot be assigned; "" if it can."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _check_preconditions(draft: Draft, expected: Object, actual: Object) -> None:
    """Compare uid and resourceVersion of a Binding, if it has them, with the Pod's. Raises ApiError."""
    for name, what in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        if expected.get(name) and expected[name] != actual.get(name, ""):
            raise _failed(draft, what, expected[name], actual)


def _failed(draft: Draft, what: str, expected: str, actual: Object) -> ApiError:
    resource = pods.resource_of(draft)
    key = key_of(resource, draft.request.namespace, actual["name"])
    recorded = actual.get("uid" if what == "UID" else "resourceVersion", "")
    why = f"Precondition failed: {what} in precondition: {expected}, {what} in object meta: {recorded}"
    text = storage_error("invalid object", 4, resource, key, why, dry_run=draft.request.options.dry_run)
    return errors.conflict(resource.group_resource, actual["name"], text)
