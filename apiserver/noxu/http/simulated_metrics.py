"""The answers of metrics.k8s.io for simulated pods and nodes: they are computed when they are asked for.

A filter after all others answers a get and a list; anything else of the group is handled like every resource, which has no other
verbs. The objects have the labels and names of their pods and nodes, so selectors select among those.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from datetime import datetime
from typing import Final

from noxu.api import errors
from noxu.api.errors import Qualified
from noxu.api.names import check_path_name
from noxu.http import responses
from noxu.http.answer import Answer, Answered
from noxu.http.app import App
from noxu.http.exchange import Exchange
from noxu.http.filters import RequestFilter
from noxu.registry.offload import offload
from noxu.registry.reader import Selection, Window, list_entries
from noxu.registry.resource import Resource
from noxu.registry.stored_object import StoredObject, object_at
from noxu.values import Object
from noxu.workloads import metrics_api

_KINDS: Final = {"pods": "podmetrics", "nodes": "nodemetrics"}


def install(app: App) -> None:
    """Let an application answer for metrics."""
    app.answer_after_filters(AnswerMetrics())


class AnswerMetrics(RequestFilter):
    """See the module."""

    def enter(self, exchange: Exchange) -> Awaitable[None] | None:
        info = exchange.info
        if info.group != metrics_api.GROUP or info.verb not in metrics_api.VERBS or info.subresource or exchange.moment:
            return None
        resource = exchange.backend.served_resources.current.find(info.group, info.version, info.resource)
        is_of_scope = resource is not None and (resource.namespaced or not info.in_namespace)
        if resource is None or not is_of_scope or (resource.namespaced and info.verb == "get" and not info.namespace):
            return None  # not found, like any other
        exchange.resource = resource  # as routing would: the options of lists depend on it
        return self._answer(exchange)

    async def _answer(self, exchange: Exchange) -> None:
        """Raises Answered, ApiError."""
        accepted = exchange.accept()
        resource, info = exchange.resource, exchange.info
        if info.verb == "get":
            check_path_name(info.name)
            items = await _metrics(exchange, Selection(resource, info.namespace or None))
            found = [item for item in items if item["metadata"]["name"] == info.name]
            if not found:
                name = f"{info.namespace}/{info.name}" if info.namespace else info.name
                raise errors.not_found(Qualified(metrics_api.GROUP, _KINDS[resource.plural]), name)
            value = found[0]
        else:
            options = await exchange.list_options(watch=False)
            value = {
                "kind": resource.list_kind,
                "apiVersion": resource.api_version,
                "metadata": {},
                "items": await _metrics(exchange, options.selection),
            }
        plain = accepted._replace(convert=None)  # it has no columns: kubectl prints names and ages itself
        raise Answered(Answer(responses.encode(value, plain), 200, plain.content_type))


async def _metrics(exchange: Exchange, selection: Selection) -> list[Object]:
    """Those of the pods or nodes that are selected."""
    served = exchange.backend.served_resources.current
    pods, nodes = served.find("", "v1", "pods"), served.find("", "v1", "nodes")
    assert pods is not None
    assert nodes is not None
    if selection.resource.plural == "pods":
        selected = await _entries(exchange, selection._replace(resource=pods))
        return await offload(_weight(selected), _of_pods, selected, pods, exchange.now())
    selected = await _entries(exchange, selection._replace(resource=nodes))
    bound = await _entries(exchange, Selection(pods))
    # every pod is decoded: all that run belong to some node
    return await offload(_weight([*selected, *bound]), _of_nodes, selected, nodes, bound, pods, exchange.now())


async def _entries(exchange: Exchange, selection: Selection) -> Sequence[StoredObject]:
    return (await list_entries(exchange.backend.reader, selection, Window())).entries


def _weight(entries: Sequence[StoredObject]) -> int:
    return sum(len(entry.stored) for entry in entries)


def _of_pods(entries: Sequence[StoredObject], pods: Resource, now: datetime) -> list[Object]:
    found = (metrics_api.of_pod(object_at(entry, pods), now) for entry in entries)
    return [each for each in found if each is not None]


def _of_nodes(
    entries: Sequence[StoredObject], nodes: Resource, pod_entries: Sequence[StoredObject], pods: Resource, now: datetime
) -> list[Object]:
    bound: dict[str, list[Object]] = {}
    for entry in pod_entries:
        pod = object_at(entry, pods)
        bound.setdefault(pod["spec"].get("nodeName", ""), []).append(pod)
    values = (object_at(entry, nodes) for entry in entries)
    found = (metrics_api.of_node(value, bound.get(value["metadata"]["name"], ()), now) for value in values)
    return [each for each in found if each is not None]
