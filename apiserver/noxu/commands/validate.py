"""`noxu validate`: validate objects without a server.

The objects are written through the registry and the pipeline of the server, over a new store in memory: CRDs first, then
namespaces, then everything else in the order of the files. Results are kept, and used again while neither the files nor Noxu
change; objects that cannot affect each other may be written in several processes (see `shards`).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Final

from noxu import garbage
from noxu.api import codec
from noxu.commands import calls, findings, progress, reports, results
from noxu.commands.by_release import merged_documents
from noxu.commands.findings import Checked, DocumentOutcome, WriteRules
from noxu.commands.reports import Style
from noxu.commands.results import Check, Results, Shard
from noxu.features import Features
from noxu.manifests.documents import Document, LoadError
from noxu.manifests.manifest_cache import Cache, user_directory
from noxu.values import Json, Object
from noxu_storage.types import Progress

SCHEMA_BUNDLES: Final = "noxu.manifests.schema_bundles"
_KEPT: Final = range(400, 500)
"""The codes of errors that are kept: others, such as that of a timeout, may not occur again."""


def run(options: argparse.Namespace) -> int:
    """Exit status 0: nothing is refused; 1: an object is refused; 2: an input cannot be read."""
    if options.stored:
        from noxu.commands import stored

        return stored.run(options)
    with garbage.seldom_collected(ends=options.own_process):
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    cache = Cache(None if options.no_cache else user_directory())
    with progress.shown("validate", quiet=options.quiet) as report:
        with garbage.uncollected():
            documents, old = findings.read(options, cache.split), findings.former(options.old, cache.split)
        try:
            known = import_module(SCHEMA_BUNDLES).definitions(options.schemas, documents) if options.schemas else []
        except LoadError as error:
            calls.complain(str(error))
            return findings.UNREADABLE
        by_release = {
            release: _outcomes(options, features, [*documents, *known], old, cache, report)
            for release, features in options.features.items()
        }
    cache.tidy()
    checked = merged_documents(
        {release: [outcome.checked for outcome in outcomes] for release, outcomes in by_release.items()}
    )
    decisive = _decisive(by_release)
    for n in reversed(range(len(documents), len(checked))):
        if checked[n].result != "refused":  # what --schemas adds is only shown if it cannot be used
            del checked[n], decisive[n]
    if options.output in reports.FORMATS:
        print(reports.FORMATS[options.output](checked, "validate"))
    elif options.output == "json":
        print(codec.pretty(_as_json(decisive, checked), sort_keys=False).decode())
    else:
        _print_report(checked, reports.style(options))
    return findings.exit_status(checked)


def _decisive(by_release: Mapping[int, Sequence[DocumentOutcome]]) -> list[DocumentOutcome]:
    """Of each document the outcome in the newest release, or in the newest one that refuses it."""
    return [
        max(reversed(outcomes), key=lambda outcome: outcome.result == "refused")
        for outcomes in zip(*by_release.values(), strict=True)
    ]


def _outcomes(
    options: argparse.Namespace,
    features: Features,
    documents: Sequence[Document],
    old: Sequence[Document],
    cache: Cache,
    report: Progress,
) -> list[DocumentOutcome]:
    """The outcome of each document, in their order."""
    outcomes = Results[DocumentOutcome]()
    accepted = []
    for document in documents:
        if (certain := findings.decided(options, document)) is not None:
            outcomes[id(document)] = DocumentOutcome(
                document, document.namespace, certain.result, certain=certain.findings
            )
        else:
            accepted.append(document)

    def written(count: int, _: int) -> None:
        report(len(outcomes) + count, len(documents))

    check = _check(WriteRules(options.strict, features, options.ignore_unknown_kinds))
    for members in findings.rounds(accepted) if options.independent else [accepted]:
        shared = findings.shared_with(members, accepted) if options.independent else []
        results.add(outcomes, check, results.split(members, shared, old), cache, options.jobs, written)
    return outcomes.of(documents)


def _check(rules: WriteRules) -> Check[DocumentOutcome]:
    return Check(
        name="validate",
        find=partial(_write, rules),
        depends=tuple(rules),
        as_json=findings.outcome_as_json,
        from_json=findings.from_json,
        reads_text=False,
        kept=lambda outcome: outcome.error is None or outcome.error.code in _KEPT,
    )


def _write(rules: WriteRules, shard: Shard, report: Progress) -> list[tuple[Document, DocumentOutcome]]:
    import asyncio

    from noxu.commands.in_memory import validate  # takes long to import, and kept results do without it

    return asyncio.run(validate(shard, rules, report))


# -- output -----------------------------------------------------------------------------------------------------------


def _print_report(checked: Sequence[Checked], style: Style) -> None:
    for line in reports.lines(checked, style):
        print(line)
    counts = _counts(checked)
    objects = counts.pop("objects")
    listed = [
        style.of(f"{number} {result}", reports.COLOURS[result]) if number else f"{number} {result}"
        for result, number in counts.items()
        if number or result != "unreadable"
    ]
    warnings = sum(finding.level == "warning" for document in checked for finding in document.findings)
    hidden = f"; {reports.count(warnings, 'warning', style, 'yellow')}" if warnings and style.detail == "errors" else ""
    print(f"{objects} object{'' if objects == 1 else 's'}: {', '.join(listed)}{hidden}")


def _counts(checked: Sequence[Checked]) -> dict[str, int]:
    counts = {"objects": sum(document.result != "unreadable" for document in checked)}
    for result in ("valid", "refused", "skipped", "unreadable"):
        counts[result] = sum(document.result == result for document in checked)
    return counts


def _as_json(outcomes: Sequence[DocumentOutcome], checked: Sequence[Checked]) -> Json:
    objects = [_outcome_as_json(*pair) for pair in zip(outcomes, checked, strict=True)]
    return {"objects": objects, "summary": _counts(checked)}


def _outcome_as_json(outcome: DocumentOutcome, checked: Checked) -> Object:
    document = outcome.document
    return {
        **findings.place_as_json(document),
        "apiVersion": document.value.get("apiVersion", ""),
        "kind": document.kind,
        "namespace": outcome.namespace,
        "name": document.name,
        "result": outcome.result,
        "update": outcome.update or None,
        "findings": findings.as_json(checked.findings),
        "warnings": list(outcome.warnings),
        "status": None if outcome.error is None else outcome.error.status,
    }
