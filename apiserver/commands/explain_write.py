"""`noxu explain-write`: why does a server make of this object what it makes of it?

Each object is written as a client would write it, and the trace of the write is told: what was pruned and which field
may have been meant, which schema node a default comes from, what each step of admission changed, what a failed rule saw,
and which errors ratcheting forgave. That is done in a registry in memory that knows the CRDs in the files, or by a
running server, as a dry run unless it is to be written.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from apiserver import loading, server
from apiserver.api import codec
from apiserver.api.difference import field_path, steps
from apiserver.api.errors import ApiError, bad_request
from apiserver.api.gotext import compact_json
from apiserver.api.types import Json, Object
from apiserver.commands.cluster import Cluster, Reply, Unreachable, access
from apiserver.features import Features
from apiserver.manifests import Document, in_order, is_crd, read_paths
from apiserver.registry.pipeline import Options
from apiserver.registry.store import Registry
from apiserver.registry.trace import Trace, as_json
from storage.memory import MemoryStore

HEADER: Final = "X-Noxu-Trace"
NO_TRACE: Final = (
    "the server does not say what it did: it is no noxu, or it offers no traces because it is not on loopback"
)
LONGEST: Final = 120  # characters of a value


@dataclass
class Explained:
    """What became of an object. `steps` are those of its trace, `error` the Status of a refusal."""

    document: Document
    steps: Sequence[Object] = ()
    error: Object | None = None


def run(given: argparse.Namespace) -> int:
    """0: every object would be written; 1: one is refused, or it cannot be told."""
    documents = list(in_order(read_paths(given.files)))
    try:
        if given.server or given.kubeconfig:
            with contextlib.closing(Cluster(access(given))) as cluster:
                explained = [_at_server(cluster, document, write=given.write) for document in documents]
        else:
            explained = asyncio.run(_in_memory(documents, given.features))
    except Unreachable as error:
        print(f"noxu: {error}", file=sys.stderr)
        return 1
    if given.output == "json":
        print(codec.pretty([_as_json(one) for one in explained], sort_keys=False).decode())
    else:
        print("\n\n".join("\n".join(_told(one)) for one in explained))
    return 1 if any(one.error for one in explained) else 0


# -- in memory --------------------------------------------------------------------------------------------------------


async def _in_memory(documents: Iterable[Document], features: Features) -> list[Explained]:
    """CRDs and namespaces are only told of if they are refused, if there is something else."""
    explained = []
    async with server.at_work(MemoryStore(), features=features) as registry:
        for document in documents:
            one = await _written(registry, document)
            if one.error or not is_crd(document.value):
                explained.append(one)
    return explained


async def _written(registry: Registry, document: Document) -> Explained:
    trace: Trace = []
    error: Object | None = None
    try:
        if document.error:
            raise bad_request(document.error)
        current, _ = loading.as_v1(document)
        resource = loading.resource_of(registry, current.value)
        if resource is not None:
            await loading.ensure_namespace(registry, loading.namespace_of(resource, current.value))
        options = Options(field_manager=loading.MANAGER, field_validation="Warn")
        await loading.apply(registry, current.value, options, duplicates=current.duplicates, trace=trace)
    except ApiError as refused:
        error = refused.status
    return Explained(document, as_json(trace), error)


# -- at a server ------------------------------------------------------------------------------------------------------


def _at_server(cluster: Cluster, document: Document, *, write: bool) -> Explained:
    """Raises Unreachable."""
    if document.error:
        return Explained(document, error=bad_request(document.error).status)
    value, name = document.value, loading.name_of(document.value)
    collection = _collection(cluster, document)
    if collection is None:
        text = f"{loading.no_matches(value)}: the server does not serve it; apply its CRD first"
        return Explained(document, error=bad_request(text).status)
    query = {"fieldValidation": "Warn", "fieldManager": loading.MANAGER}
    if not write:
        query["dryRun"] = "All"
    old = cluster.send("GET", f"{collection}/{quote(name)}") if name else None
    if old is None or old.status == 404 or old.value is None:
        reply = cluster.send("POST", collection, query, value, {HEADER: "1"})
    else:
        metadata = {"resourceVersion": old.value["metadata"]["resourceVersion"], **value["metadata"]}
        sent = {**value, "metadata": metadata}
        reply = cluster.send("PUT", f"{collection}/{quote(name)}", query, sent, {HEADER: "1"})
    return _explained(cluster, document, reply)


def _collection(cluster: Cluster, document: Document) -> str | None:
    """The path of the collection that an object goes to."""
    api_version = str(document.value.get("apiVersion") or "")
    base = f"/apis/{quote(api_version)}" if "/" in api_version else f"/api/{quote(api_version)}"
    reply = cluster.send("GET", base)
    for resource in (reply.value or {}).get("resources") or ():
        if resource["kind"] == document.kind and "/" not in resource["name"]:
            namespace = f"namespaces/{quote(document.namespace or 'default')}/" if resource["namespaced"] else ""
            return f"{base}/{namespace}{resource['name']}"
    return None


def _explained(cluster: Cluster, document: Document, reply: Reply) -> Explained:
    name = reply.headers.get(HEADER)
    if not name:
        raise Unreachable(f"{cluster.url}: {NO_TRACE}")
    trace = cluster.get(f"/_noxu/traces/{name}")
    return Explained(document, trace["steps"], None if reply.status < 300 else reply.value)


# -- telling ----------------------------------------------------------------------------------------------------------

_TITLES: Final = {
    "decode": "decode and prune",
    "refuse_unknown": "field validation",
    "unite_owners": "owner references",
    "own": "track field owners",
    "admit": "mutating admission",
    "prune_again": "prune after admission",
    "prune_applied": "prune what was applied",
    "admit_validating": "validating admission",
}
_QUIET: Final = ("own", "keep_times")
"""What these change is of no interest unless they refuse."""


def _told(one: Explained) -> Iterator[str]:
    document = one.document
    namespace = f"{document.namespace}/" if document.namespace else ""
    title = f"{document.kind} {namespace}{document.name}: " if not document.error else ""
    yield f"{document.source}: {title}{'refused' if one.error else 'accepted'}"
    for step in one.steps:
        lines = list(_told_of(step))
        if lines:
            stage = step["stage"]
            yield f"  {_TITLES.get(stage, stage)} ({step['milliseconds']:g} ms)"
            yield from (f"    {line}" for line in lines)
    if one.error:
        yield f"  {one.error['message']}"


def _told_of(step: Object) -> Iterator[str]:
    """A note about a field says more than the change does."""
    notes = step.get("notes") or []
    noted = {note.get("path") for note in notes}
    for change in () if step["stage"] in _QUIET else step.get("patch") or ():
        path = field_path(steps(change["path"])) or "the object"
        if path not in noted:
            yield f"{change['op']} {path}{_value(change)}"
    for note in notes:
        hint = f" ({note['hint']})" if note.get("hint") else ""
        yield f"{note['path'] + ': ' if note.get('path') else ''}{note['message']}{hint}"
        if note.get("rule"):
            yield f"  rule: {note['rule']}"
        yield from (f"  {name} = {value}" for name, value in (note.get("values") or {}).items())


def _value(change: Object) -> str:
    if "value" not in change:
        return ""
    text = compact_json(change["value"])
    return f" = {text if len(text) <= LONGEST else text[:LONGEST] + '…'}"


def _as_json(one: Explained) -> Json:
    document = one.document
    return {
        "file": document.file,
        "document": document.number,
        "apiVersion": document.value.get("apiVersion", ""),
        "kind": document.kind,
        "namespace": document.namespace,
        "name": document.name,
        "result": "refused" if one.error else "accepted",
        "steps": list(one.steps),
        "status": one.error,
    }
