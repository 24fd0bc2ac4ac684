"""`noxu explain-write`: show what each stage of a write does to an object.

Each object is written as a client would write it, and the trace of the write is printed: what was pruned and which field
may have been meant, which schema node a default comes from, what each step of admission changed, the values in a failed
rule, and the errors that ratcheting ignored. The write happens in a registry in memory with the CRDs in the files, or on
a running server, as a dry run unless --write is given.
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

from noxu.apiserver import loading
from noxu.apiserver.api import codec
from noxu.apiserver.api.difference import field_path, steps
from noxu.apiserver.api.errors import ApiError, bad_request
from noxu.apiserver.commands.api_client import ApiClient, Reply, RequestError, endpoint_from_options
from noxu.apiserver.control_plane import ControlPlane, assemble, running
from noxu.apiserver.features import Features
from noxu.apiserver.go.text import compact_json
from noxu.apiserver.manifests import Document, in_order, is_crd, read_paths
from noxu.apiserver.registry.draft import Options
from noxu.apiserver.registry.trace import Trace, as_json
from noxu.apiserver.values import Json, Object
from noxu.storage.memory import MemoryStore

HEADER: Final = "X-Noxu-Trace"
NO_TRACE: Final = "the server sent no trace: it is not a Noxu server, or it does not listen on a loopback address"
MAX_VALUE_LENGTH: Final = 120  # characters


@dataclass
class Explanation:
    """The outcome of a write: the steps of its trace, and the Status if it was refused."""

    document: Document
    steps: Sequence[Object] = ()
    error: Object | None = None


def run(options: argparse.Namespace) -> int:
    """Exit status 0: every object is accepted; 1: an object is refused, or a server gives no trace."""
    documents = list(in_order(read_paths(options.files)))
    try:
        if options.server or options.kubeconfig:
            with contextlib.closing(ApiClient(endpoint_from_options(options))) as client:
                explanations = [_explain_on_server(client, document, write=options.write) for document in documents]
        else:
            explanations = asyncio.run(_explain_in_memory(documents, options.features))
    except RequestError as error:
        print(f"noxu: {error}", file=sys.stderr)
        return 1
    if options.output == "json":
        print(codec.pretty([_as_json(each) for each in explanations], sort_keys=False).decode())
    else:
        print("\n\n".join("\n".join(_as_text(each)) for each in explanations))
    return 1 if any(each.error for each in explanations) else 0


# -- in memory --------------------------------------------------------------------------------------------------------


async def _explain_in_memory(documents: Iterable[Document], features: Features) -> list[Explanation]:
    """The explanations of all documents, except for accepted CRDs."""
    explanations = []
    async with running(assemble(MemoryStore(), features=features, garbage_collection=False)) as plane:
        for document in documents:
            explanation = await _write_in_memory(plane, document)
            if explanation.error or not is_crd(document.value):
                explanations.append(explanation)
    return explanations


async def _write_in_memory(plane: ControlPlane, document: Document) -> Explanation:
    trace: Trace = []
    error: Object | None = None
    try:
        if document.error:
            raise bad_request(document.error)
        current, _ = loading.as_v1(document)
        resource = loading.resource_of(plane, current.value)
        if resource is not None:
            await loading.ensure_namespace(plane, loading.namespace_of(resource, current.value))
        options = Options(field_manager=loading.MANAGER, field_validation="Warn")
        await loading.apply(plane, current.value, options, duplicates=current.duplicates, trace=trace)
    except ApiError as refused:
        error = refused.status
    return Explanation(document, as_json(trace), error)


# -- on a server ------------------------------------------------------------------------------------------------------


def _explain_on_server(client: ApiClient, document: Document, *, write: bool) -> Explanation:
    """Raises RequestError."""
    if document.error:
        return Explanation(document, error=bad_request(document.error).status)
    value, name = document.value, loading.name_of(document.value)
    collection = _collection_path(client, document)
    if collection is None:
        text = f"{loading.no_matches(value)}: the server does not serve it; apply its CRD first"
        return Explanation(document, error=bad_request(text).status)
    query = {"fieldValidation": "Warn", "fieldManager": loading.MANAGER}
    if not write:
        query["dryRun"] = "All"
    old = client.send("GET", f"{collection}/{quote(name)}") if name else None
    if old is None or old.status == 404 or old.value is None:
        reply = client.send("POST", collection, query, value, {HEADER: "1"})
    else:
        metadata = {"resourceVersion": old.value["metadata"]["resourceVersion"], **value["metadata"]}
        sent = {**value, "metadata": metadata}
        reply = client.send("PUT", f"{collection}/{quote(name)}", query, sent, {HEADER: "1"})
    return _explanation(client, document, reply)


def _collection_path(client: ApiClient, document: Document) -> str | None:
    """The path of the collection of an object; None if the server does not serve its kind."""
    api_version = str(document.value.get("apiVersion") or "")
    base = f"/apis/{quote(api_version)}" if "/" in api_version else f"/api/{quote(api_version)}"
    reply = client.send("GET", base)
    for resource in (reply.value or {}).get("resources") or ():
        if resource["kind"] == document.kind and "/" not in resource["name"]:
            namespace = f"namespaces/{quote(document.namespace or 'default')}/" if resource["namespaced"] else ""
            return f"{base}/{namespace}{resource['name']}"
    return None


def _explanation(client: ApiClient, document: Document, reply: Reply) -> Explanation:
    name = reply.headers.get(HEADER)
    if not name:
        raise RequestError(f"{client.url}: {NO_TRACE}")
    trace = client.get(f"/_noxu/traces/{name}")
    return Explanation(document, trace["steps"], None if reply.status < 300 else reply.value)


# -- output -----------------------------------------------------------------------------------------------------------

_TITLES: Final = {
    "read_body": "read",
    "refuse_unknown": "field validation",
    "drop_duplicate_owners": "owner references",
    "own": "track field owners",
    "mutate": "mutating admission",
    "prune_mutated": "prune after admission",
    "default_mutated": "default after admission",
    "admit": "validating admission",
    "prune_applied": "prune what was applied",
}
_OMIT_CHANGES: Final = ("own", "keep_times")
"""Stages whose changes (of managedFields) are not printed."""


def _as_text(explanation: Explanation) -> Iterator[str]:
    """The lines of an explanation."""
    document = explanation.document
    namespace = f"{document.namespace}/" if document.namespace else ""
    title = f"{document.kind} {namespace}{document.name}: " if not document.error else ""
    yield f"{document.source}: {title}{'refused' if explanation.error else 'accepted'}"
    for step in explanation.steps:
        lines = list(_step_lines(step))
        if lines:
            stage = step["stage"]
            yield f"  {_TITLES.get(stage, stage)} ({step['milliseconds']:g} ms)"
            yield from (f"    {line}" for line in lines)
    if explanation.error:
        yield f"  {explanation.error['message']}"


def _step_lines(step: Object) -> Iterator[str]:
    """The changes of a step, except for those of fields that a note explains, and its notes."""
    notes = step.get("notes") or []
    noted = {note.get("path") for note in notes}
    for change in () if step["stage"] in _OMIT_CHANGES else step.get("patch") or ():
        path = field_path(steps(change["path"])) or "the object"
        if path not in noted:
            yield f"{change['op']} {path}{_value_text(change)}"
    for note in notes:
        hint = f" ({note['hint']})" if note.get("hint") else ""
        yield f"{note['path'] + ': ' if note.get('path') else ''}{note['message']}{hint}"
        if note.get("rule"):
            yield f"  rule: {note['rule']}"
        yield from (f"  {name} = {value}" for name, value in (note.get("values") or {}).items())


def _value_text(change: Object) -> str:
    if "value" not in change:
        return ""
    text = compact_json(change["value"])
    return f" = {text if len(text) <= MAX_VALUE_LENGTH else text[:MAX_VALUE_LENGTH] + '…'}"


def _as_json(explanation: Explanation) -> Json:
    document = explanation.document
    return {
        "file": document.file,
        "document": document.number,
        "apiVersion": document.value.get("apiVersion", ""),
        "kind": document.kind,
        "namespace": document.namespace,
        "name": document.name,
        "result": "refused" if explanation.error else "accepted",
        "steps": list(explanation.steps),
        "status": explanation.error,
    }
