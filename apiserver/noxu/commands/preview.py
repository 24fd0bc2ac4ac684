"""`noxu preview`: what new CRDs change for the objects that are stored (`noxu.upgrades.effects`).

The objects are where `noxu validate --stored` reads them, in a running server, a data directory or etcd, or in files together
with their former CRDs (`--old`). They are read in pages, one by one, and of each CRD only counts and the first objects are kept.
With `--requests` a recording says which clients would be answered in another way (`noxu.recordings.upgraded_requests`).
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.api.field import Path
from noxu.commands import calls, findings, progress, reports, stored
from noxu.commands.findings import FOUND, UNREADABLE, Checked, Finding
from noxu.commands.stored import ObjectsOfDefinitions, RefusedDefinition, StoredReport, ValidationError
from noxu.crd import conditions, types
from noxu.manifests import loading
from noxu.manifests.documents import Document, checked, is_crd, read_paths
from noxu.recordings import lines
from noxu.recordings.lines import NoRecording, ServerRecording
from noxu.recordings.upgraded_requests import EFFECTS_ON_REQUESTS, ClientPreview, UpgradedDefinition, clients_of
from noxu.registry.custom import versions_of
from noxu.schema.structural import NoStructuralForm
from noxu.upgrades.effects import EFFECTS_ON_OBJECTS, DefinitionPreview, effect_of, versions_gone
from noxu.values import Object
from noxu_storage.types import Progress


def run(options: argparse.Namespace) -> int:
    """Exit status 0: nothing is refused or lost; 1: something is; 2: something cannot be read."""
    report = StoredReport()
    try:
        new = stored.definitions_in(options.files, report, f"{options.command} -f")
        with _source(options) as source, progress.shown("preview", quiet=options.quiet) as show:
            recording = None if options.requests is None else lines.read(options.requests)
            previews = list(_previews(source, new, options.limit, show, recording))
            failures = source.unreadable()
    except RefusedDefinition as error:
        print(f"noxu: {error}", file=sys.stderr)
        return FOUND
    except (*stored.UNREADABLE_ERRORS, NoRecording) as error:
        print(f"noxu: {error}", file=sys.stderr)
        return UNREADABLE
    except NoStructuralForm as error:
        print(f"noxu: a former CRD has no structural schema: {error}", file=sys.stderr)
        return UNREADABLE
    known = {preview.name for preview in previews}
    report.remarks += [f"{name}: there is no former CRD, so it has no objects" for name in sorted(new.keys() - known)]
    for remark in [*report.remarks, *failures]:
        print(f"noxu: {remark}", file=sys.stderr)
    print("\n".join(_OUTPUTS[options.output](previews)))
    breaks = any(preview.breaks or (options.strict and preview.changes) for preview in previews)
    return UNREADABLE if failures else FOUND if breaks else 0


class UpgradePreview(NamedTuple):
    """A CRD with what happens to its objects, and to the requests of clients if there is a recording."""

    objects: DefinitionPreview
    clients: Sequence[ClientPreview] = ()

    @property
    def name(self) -> str:
        return self.objects.name

    @property
    def breaks(self) -> bool:
        return self.objects.breaks or any(client.breaks for client in self.clients)

    @property
    def changes(self) -> bool:
        return bool(self.objects.counts) or any(client.counts for client in self.clients)


def _source(options: argparse.Namespace) -> contextlib.AbstractContextManager[ObjectsOfDefinitions]:
    return contextlib.nullcontext(FormerManifests(options.old)) if options.old else stored.source_of(options)


class FormerManifests:
    """CRDs and their objects in files. Raises LoadError."""

    sees_hidden = True

    def __init__(self, paths: Sequence[FilePath]) -> None:
        documents = loading.ready(checked(read_paths(paths)))
        self._definitions = [document.value for document in documents if is_crd(document.value)]
        self._objects = [document.value for document in documents if not is_crd(document.value)]

    def definitions(self) -> Iterator[Object]:
        for value in self._definitions:
            crd = types.default(types.decode(value).value)
            established = [{"type": conditions.ESTABLISHED, "status": "True"}]
            yield {**crd, "status": {**crd["status"], "conditions": established, "acceptedNames": crd["spec"]["names"]}}

    def objects(self, crd: Object) -> Iterator[Object]:
        spec = crd["spec"]
        for value in self._objects:
            group = str(value.get("apiVersion") or "").rpartition("/")[0]
            is_of_kind = (group, value.get("kind")) == (spec["group"], spec["names"]["kind"])
            if is_of_kind and isinstance(value.get("metadata"), dict):
                place = {"namespace": "default"} if spec["scope"] == "Namespaced" else {}
                yield {**value, "metadata": {**place, **value["metadata"]}}

    def count(self, crds: Iterable[Object]) -> int:
        return sum(1 for crd in crds for _ in self.objects(crd))

    def unreadable(self) -> list[str]:
        return []


def _previews(
    source: ObjectsOfDefinitions,
    new: dict[str, Object],
    limit: int,
    show: Progress,
    recording: ServerRecording | None,
) -> Iterator[UpgradePreview]:
    """The preview of each CRD that is in both, by name."""
    old = {crd["metadata"]["name"]: crd for crd in source.definitions()}
    both = [name for name in sorted(new) if name in old and conditions.is_true(old[name], conditions.ESTABLISHED)]
    total, done = source.count(old[name] for name in both), 0
    upgraded = {name: _upgraded(old[name], new[name]) for name in both}
    clients = {} if recording is None else clients_of(recording.lines, upgraded, limit)
    for name in both:
        preview = DefinitionPreview(name, limit, list(versions_gone(old[name], new[name])))
        for value in source.objects(old[name]):
            show(done, total)
            preview.add(_title(value), effect_of(value, *upgraded[name]))
            done += 1
        yield UpgradePreview(preview, [each for _, each in sorted(clients.get(name, {}).items())])


def _upgraded(crd: Object, later: Object) -> UpgradedDefinition:
    """Raises ValidationError."""
    accepted = {**later, "status": {**later["status"], "acceptedNames": later["spec"]["names"]}}
    try:
        return UpgradedDefinition(versions_of(crd, 0), versions_of(accepted, 0))
    except (KeyError, TypeError):
        name = crd["metadata"]["name"]
        raise ValidationError(f"the former CRD {name} is invalid; `noxu lint` says more") from None


def _title(value: Object) -> str:
    """`Widget default/large`."""
    metadata = value["metadata"]
    names = [name for name in (metadata.get("namespace"), metadata.get("name")) if name]
    return f"{value.get('kind')} {'/'.join(map(str, names))}"


# -- output ----------------------------------------------------------------------------------------------------------


def _text(previews: Sequence[UpgradePreview]) -> Iterator[str]:
    yield from calls.table(_rows(previews))
    if clients := _client_rows(previews):
        yield from ("", *calls.table(clients))
    for preview in previews:
        for level, sentence in _sentences(preview):
            yield f"{preview.name}: {'' if level == 'error' else f'{level}: '}{sentence}"


def _rows(previews: Sequence[UpgradePreview]) -> list[list[str]]:
    titles = ["crd", "objects", *EFFECTS_ON_OBJECTS]
    return [
        titles,
        *(
            [each.name, str(each.objects), *(str(each.counts[name]) for name in EFFECTS_ON_OBJECTS)]
            for each in (preview.objects for preview in previews)
        ),
    ]


def _client_rows(previews: Sequence[UpgradePreview]) -> list[list[str]]:
    """The clients with their requests, below the titles; [] without a client."""
    rows = [
        [preview.name, each.client, str(each.requests), *(str(each.counts[name]) for name in EFFECTS_ON_REQUESTS)]
        for preview in previews
        for each in preview.clients
    ]
    return [["crd", "client", "requests", *EFFECTS_ON_REQUESTS], *rows] if rows else []


def _sentences(preview: UpgradePreview) -> Iterator[tuple[findings.Level, str]]:
    """What happens, with its level."""
    yield from _of_objects(preview.objects)
    for client in preview.clients:
        for level, sentence in _of_client(client):
            yield level, f"{client.client}: {sentence}"


def _of_client(client: ClientPreview) -> Iterator[tuple[findings.Level, str]]:
    for version, number in client.versions.most_common():
        yield "error", f"{reports.count(number, 'request')} for version {version}, which is no longer served"
    for step, request, error in client.listed:
        yield "error", f"step {step}: {request} would be refused: {error}".replace("\n", " ")
    if (more := client.counts["refused"] - len(client.listed)) > 0:
        yield "error", f"{reports.count(more, 'more request')} would be refused; --limit lists more"
    for (verb, path), number in client.pruned.most_common():
        yield "error", f"{path} is lost in what it {verb}, in {reports.count(number, 'request')}"
    for (verb, path), number in client.defaulted.most_common():
        yield "warning", f"{path} gets a default in what it {verb}, in {reports.count(number, 'request')}"


def _of_objects(preview: DefinitionPreview) -> Iterator[tuple[findings.Level, str]]:
    for sentence in preview.versions:
        yield "error", sentence
    for title, effect in preview.listed:
        level: findings.Level = "error" if effect.refused or effect.unreadable else "warning"
        if effect.unreadable:
            yield level, f"{title} cannot be read: it is stored in a version that is gone, {effect.unreadable}"
        what = "is refused" if effect.refused else "would be refused if it were created anew"
        for error in effect.errors:
            yield level, f"{title} {what}: {error}".replace("\n", " ")
    listed = len(preview.listed)
    affected = sum(preview.counts[name] for name in ("refused", "forgiven"))
    if affected > listed:
        yield "warning", f"{affected - listed} more objects are refused, or would be; --limit lists more"
    for path, number in preview.pruned.most_common():
        yield "error", f"{path} is pruned in {reports.count(number, 'object')}"
    for path, number in preview.defaulted.most_common():
        yield "warning", f"{path} gets a default in {reports.count(number, 'object')}"


def _json(previews: Sequence[UpgradePreview]) -> Iterator[str]:
    yield codec.pretty({"definitions": list(map(_as_json, previews))}, sort_keys=False).decode().rstrip()


def _as_json(upgrade: UpgradePreview) -> Object:
    preview = upgrade.objects
    return {
        "name": preview.name,
        "objects": preview.objects,
        **{name: preview.counts[name] for name in EFFECTS_ON_OBJECTS},
        "versions": preview.versions,
        "prunedFields": dict(preview.pruned),
        "defaultedFields": dict(preview.defaulted),
        "listed": [
            {
                "object": title,
                "refused": effect.refused,
                "forgiven": effect.forgiven,
                "unreadable": bool(effect.unreadable),
                "errors": [{"field": error.field, "message": error.body} for error in effect.errors],
                "pruned": effect.pruned,
                "defaulted": effect.defaulted,
            }
            for title, effect in preview.listed
        ],
        "clients": [
            {
                "client": client.client,
                "requests": client.requests,
                **{_IN_JSON.get(name, name): client.counts[name] for name in EFFECTS_ON_REQUESTS},
                "versionsGone": dict(client.versions),
                "prunedFields": _by_verb(client.pruned),
                "defaultedFields": _by_verb(client.defaulted),
                "listed": [each._asdict() for each in client.listed],
            }
            for client in upgrade.clients
        ],
    }


_IN_JSON: Final = {"not served": "notServed"}


def _by_verb(counter: Mapping[tuple[str, Path], int]) -> Object:
    """`{"writes": {"spec.size": 3}}`."""
    verbs = dict.fromkeys(verb for verb, _ in counter)
    return {verb: {path: number for (of, path), number in counter.items() if of == verb} for verb in verbs}


def _junit(previews: Sequence[UpgradePreview]) -> Iterator[str]:
    yield reports.junit(list(map(_checked, previews)), "preview")


def _checked(preview: UpgradePreview) -> Checked:
    found = [Finding(level, "preview", sentence) for level, sentence in _sentences(preview)]
    title = f"CustomResourceDefinition {preview.name}"
    return Checked(Document({}, preview.name), title, "refused" if preview.breaks else "valid", found)


def _markdown(previews: Sequence[UpgradePreview]) -> Iterator[str]:
    """A comment for a pull request."""
    for titles, *rows in filter(None, (_rows(previews), _client_rows(previews))):
        yield f"| {' | '.join(title.capitalize() if title != 'crd' else 'CRD' for title in titles)} |"
        yield "|---" * len(titles) + "|"
        for row in rows:
            yield f"| {' | '.join(row)} |"
        yield ""
    said = [(preview.name, level, sentence) for preview in previews for level, sentence in _sentences(preview)]
    for name, level, sentence in said:
        yield f"- {'❌' if level == 'error' else '⚠️'} `{name}`: {sentence}"


_OUTPUTS: Final[dict[str, Callable[[Sequence[UpgradePreview]], Iterator[str]]]] = {
    "text": _text,
    "json": _json,
    "junit": _junit,
    "markdown": _markdown,
}
