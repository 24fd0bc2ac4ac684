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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from urllib.parse import quote

from noxu.api import codec
from noxu.api.errors import ApiError, bad_request
from noxu.api.field import NIL
from noxu.api.json_patches import field_path, steps
from noxu.commands import findings, in_memory, reports, results
from noxu.commands.api_client import ApiClient, RequestError, ServerReply, endpoint_from_options
from noxu.commands.findings import Checked, Verb
from noxu.commands.in_memory import STRICT, WARN
from noxu.commands.reports import Style
from noxu.commands.results import Check, Results, Shard
from noxu.commands.updates import Configurations, Update, applied, updated, verb
from noxu.control_plane import ControlPlane
from noxu.features import Features
from noxu.go.text import compact_json
from noxu.kinds.scheme import by_group_kind
from noxu.manifests import loading
from noxu.manifests.documents import Document, LoadError, in_order, is_crd
from noxu.manifests.manifest_cache import Cache, user_directory
from noxu.manifests.wording import plain
from noxu.observability.logs import shown_on
from noxu.registry.draft import Options
from noxu.registry.trace import Trace, as_json
from noxu.values import Json, Object
from noxu_storage.types import Progress

HEADER: Final = "X-Noxu-Trace"
NO_TRACE: Final = "the server sent no trace: it is not a Noxu server, or it does not listen on a loopback address"
MAX_VALUE_LENGTH: Final = 120  # characters


@dataclass
class Explanation:
    """The outcome of a write: the steps of its trace, and the Status if it was refused. `certain`: it was not written."""

    document: Document
    steps: Sequence[Object] = ()
    error: Object | None = None
    certain: Checked | None = None
    update: Verb = ""

    @property
    def checked(self) -> Checked:
        if self.certain is not None:
            return self.certain
        errors = findings.of_status(self.document, self.error) if self.error else []
        return Checked(
            self.document, findings.title(self.document), "refused" if errors else "valid", errors, self.update
        )


def run(options: argparse.Namespace) -> int:
    """Exit status 0: every object is accepted; 1: one is refused; 2: an input cannot be read, or a server gives no trace."""
    cache = Cache(None if options.no_cache else user_directory())
    documents = findings.read(options, cache.split)
    certain = [Explanation(document, certain=findings.decided(options, document)) for document in documents]
    accepted = [explanation.document for explanation in certain if explanation.certain is None]
    rules = STRICT if options.strict else WARN
    try:
        if options.server or options.kubeconfig:
            with contextlib.closing(ApiClient(endpoint_from_options(options))) as client:
                written = [
                    _explain_on_server(client, document, rules, write=options.write) for document in in_order(accepted)
                ]
        else:
            written = _explain_in_rounds(options, accepted, rules, cache)
    except RequestError as error:
        print(f"noxu: {error}", file=sys.stderr)
        return findings.UNREADABLE
    cache.tidy()
    explanations = [explanation for explanation in certain if explanation.certain is not None] + written
    checked = [explanation.checked for explanation in explanations]
    if options.output in reports.FORMATS:
        print(reports.FORMATS[options.output](checked, "explain-write"))
    elif options.output == "json":
        print(codec.pretty([_as_json(explanation) for explanation in explanations], sort_keys=False).decode())
    else:
        style = Style(colours=shown_on(sys.stdout))
        print("\n\n".join("\n".join(_as_text(explanation, style)) for explanation in explanations))
    return findings.exit_status(checked)


# -- in memory --------------------------------------------------------------------------------------------------------


def _explain_in_rounds(
    options: argparse.Namespace, documents: Sequence[Document], rules: Options, cache: Cache
) -> list[Explanation]:
    """The explanations of all documents in the order of their writes, except for accepted CRDs."""
    old, explanations = findings.former(options.old, cache.split), Results[Explanation]()
    check = Check(
        name="explain-write",
        find=partial(_explain_shard, rules, options.features[options.kubernetes[0]]),
        depends=None,
        as_json=_plain_values,
        from_json=_explanation_of,
        reads_text=False,
    )
    nothing_kept = Cache(None)  # the durations in a trace are those of this time
    written: list[Document] = []
    for members in findings.rounds(documents) if options.independent else [documents]:
        shared = findings.shared_with(members, documents) if options.independent else []
        results.add(explanations, check, results.split(members, shared, old), nothing_kept, options.jobs)
        written += in_order(members)
    return [item for item in explanations.of(written) if item.error or not is_crd(item.document.value)]


def _explain_shard(
    rules: Options, features: Features, shard: Shard, report: Progress
) -> list[tuple[Document, Explanation]]:
    return asyncio.run(in_memory.results(shard, features, partial(_write_in_memory, rules=rules), report))


def _plain_values(explanation: Explanation) -> Json:
    """An explanation without its document."""
    return [list(explanation.steps), explanation.error, explanation.update]


def _explanation_of(document: Document, values: Json) -> Explanation:
    steps, error, update = values
    return Explanation(document, steps, error, update=update)


async def _write_in_memory(
    plane: ControlPlane, document: Document, configurations: Configurations, rules: Options
) -> Explanation:
    trace: Trace = []
    update = Update({})
    error: Object | None = None
    try:
        current, _ = loading.as_v1(document)
        resource = loading.resource_of(plane, current.value)
        if resource is not None:
            await loading.ensure_namespace(plane, loading.namespace_of(resource, current.value))
        duplicates = current.strict if rules is STRICT else current.duplicates
        update, written = in_memory.update_of(plane, current.value, configurations)
        await loading.apply(plane, current.value, rules, duplicates=duplicates, trace=trace, replacement=update)
        written()
    except ApiError as refused:
        error = refused.status
    except LoadError as refused:
        error = bad_request(str(refused)).status
    return Explanation(document, as_json(trace), error, update=update.verb)


# -- on a server ------------------------------------------------------------------------------------------------------


def _explain_on_server(client: ApiClient, document: Document, rules: Options, *, write: bool) -> Explanation:
    """Raises RequestError."""
    value, name = document.value, loading.name_of(document.value)
    collection = _collection_path(client, document)
    if collection is None:
        text = f"{loading.no_matches(value)}: the server does not serve it; apply its CRD first"
        return Explanation(document, error=bad_request(text).status)
    query = {"fieldValidation": rules.field_validation, "fieldManager": loading.MANAGER}
    if not write:
        query["dryRun"] = "All"
    old = client.send("GET", f"{collection}/{quote(name)}") if name else None
    if old is None or old.status == 404 or old.value is None:
        reply = client.send("POST", collection, query, value, {HEADER: "1"})
    else:
        update = verb(old.value, value)
        if update == "replace":
            metadata = {"resourceVersion": old.value["metadata"]["resourceVersion"], **value["metadata"]}
            sent = {**value, "metadata": metadata}
        else:
            kind = by_group_kind().get((str(value.get("apiVersion")), document.kind))
            sent = updated(applied(old.value), value, old.value, None if kind is None else kind.struct)
        reply = client.send("PUT", f"{collection}/{quote(name)}", query, sent, {HEADER: "1"})
        return replace(_explanation(client, document, reply), update=update)
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


def _explanation(client: ApiClient, document: Document, reply: ServerReply) -> Explanation:
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
    "track_managers": "track field managers",
    "check_url": "check the URL",
    "prevent_escalation": "prevent escalation",
    "check_resource_version": "check the resourceVersion",
    "set_system_fields": "set system fields",
    "wait_for_controllers": "wait for controllers",
    "mutate": "mutating admission",
    "prune_mutated": "prune after admission",
    "default_mutated": "default after admission",
    "admit": "validating admission",
    "prune_applied": "prune what was applied",
}
_OMIT_CHANGES: Final = ("track_managers", "keep_times")
"""Stages whose changes (of managedFields) are not printed."""


def _as_text(explanation: Explanation, style: Style) -> Iterator[str]:
    """The lines of an explanation."""
    document, checked = explanation.document, explanation.checked
    title = f"{checked.title}: " if checked.title else ""
    result = "accepted" if checked.result == "valid" else checked.result
    yield f"{document.source}: {title}{reports.result(result, style)}{reports.update(checked)}"
    for step in explanation.steps:
        lines = list(_step_lines(step))
        if lines:
            stage: str = step["stage"]
            yield f"  {style.of(_TITLES.get(stage, stage), 'bold')} ({step['milliseconds']:g} ms)"
            yield from (f"    {line}" for line in lines)
    for finding in checked.findings:
        yield from reports.finding_lines(checked, finding, style)


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
        yield f"{note['path'] + ': ' if note.get('path') else ''}{_in_plain_words(note['message'])}{hint}"
        if note.get("rule"):
            yield f"  rule: {note['rule']}"
        yield from (f"  {name} = {value}" for name, value in (note.get("values") or {}).items())


def _in_plain_words(message: str) -> str:
    if "json: " not in message and NIL not in message:
        return message
    return "; ".join(f"{said.field}: {said.text}" if said.field else said.text for said in plain(message))


def _value_text(change: Object) -> str:
    if "value" not in change:
        return ""
    text = compact_json(change["value"])
    return f" = {text if len(text) <= MAX_VALUE_LENGTH else text[:MAX_VALUE_LENGTH] + '…'}"


def _as_json(explanation: Explanation) -> Json:
    document, checked = explanation.document, explanation.checked
    return {
        **findings.place_as_json(document),
        "apiVersion": document.value.get("apiVersion", ""),
        "kind": document.kind,
        "namespace": document.namespace,
        "name": document.name,
        "result": "accepted" if checked.result == "valid" else checked.result,
        "update": explanation.update or None,
        "findings": findings.as_json(checked.findings),
        "steps": list(explanation.steps),
        "status": explanation.error,
    }
