"""`noxu validate`: validate objects without a server.

The objects are written through the registry and the pipeline of the server, over a new store in memory: CRDs first, then
namespaces, then everything else in the order of the files. Results are kept, and used again while neither the files nor Noxu
change; objects that cannot affect each other may be written in several processes (see `shards`).
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from typing import Final

from noxu.apiserver.api import codec
from noxu.apiserver.commands import findings, inputs, outcomes, progress, reports, shards
from noxu.apiserver.commands.cache import Cache, user_directory
from noxu.apiserver.commands.findings import Checked
from noxu.apiserver.commands.outcomes import Outcome, Rules
from noxu.apiserver.commands.shards import Shard
from noxu.apiserver.manifests import Document
from noxu.apiserver.values import Json, Object
from noxu.storage.types import Progress, no_progress

Done = Callable[[Iterable[Outcome]], None]
_SELDOM: Final = (100_000, 20, 20)
_KEPT: Final = range(400, 500)
"""The codes of errors that are kept: others, such as that of a timeout, may not occur again."""


def run(options: argparse.Namespace) -> int:
    """Exit status 0: nothing is refused; 1: an object is refused; 2: an input cannot be read."""
    if options.stored:
        from noxu.apiserver.commands import stored

        return stored.run(options)
    cache = Cache(None if options.no_cache else user_directory())
    with _seldom_collected(), progress.shown("validate", quiet=options.quiet) as report:
        documents, old = inputs.read(options, cache.split), inputs.former(options.old, cache.split)
        found = _outcomes(options, documents, old, cache, report)
    cache.tidy()
    checked = [outcome.checked for outcome in found]
    if options.output in reports.FORMATS:
        print(reports.FORMATS[options.output](checked, "validate"))
    elif options.output == "json":
        print(codec.pretty(_as_json(found, checked), sort_keys=False).decode())
    else:
        _print_report(checked)
    return findings.exit_status(checked)


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Collect garbage seldom: documents are no garbage, and looking for it in them takes a fifth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _outcomes(
    options: argparse.Namespace, documents: Sequence[Document], old: Sequence[Document], cache: Cache, report: Progress
) -> list[Outcome]:
    """The outcome of each document, in their order."""
    found: dict[int, Outcome] = {}
    accepted = []
    for document in documents:
        if (certain := inputs.decided(options, document)) is not None:
            found[id(document)] = Outcome(document, document.namespace, certain.result, certain=certain.findings)
        else:
            accepted.append(document)

    def done(results: Iterable[Outcome]) -> None:
        found.update((id(outcome.document), outcome) for outcome in results)

    def written(count: int, _: int) -> None:
        report(len(found) + count, len(documents))

    rules = Rules(options.strict, options.features, options.ignore_unknown_kinds)
    for members in inputs.rounds(accepted) if options.independent else [accepted]:
        shared = inputs.shared_with(members, accepted) if options.independent else []
        missing = [shard for shard in shards.split(members, shared, old) if not _restore(shard, rules, cache, done)]
        if options.jobs > 1 and len(missing) > 1:
            _write_in_processes(missing, rules, options.jobs, done)
        elif missing:
            done(_write(shards.merged(missing), rules, written))
        for shard in missing:
            _keep(shard, rules, cache, [found[id(document)] for document in shard.documents])
    return [found[id(document)] for document in documents]


def _write(shard: Shard, rules: Rules, report: Progress) -> list[Outcome]:
    import asyncio

    from noxu.apiserver.commands.in_memory import validate  # takes long to import, and kept results do without it

    return asyncio.run(validate(shard.documents, rules, old=shard.old, shared=shard.shared, report=report))


# -- processes --------------------------------------------------------------------------------------------------------


def _write_in_processes(missing: Sequence[Shard], rules: Rules, jobs: int, done: Done) -> None:
    merged = [shards.merged(batch) for batch in shards.batches(missing, jobs)]
    with ProcessPoolExecutor(len(merged)) as pool:
        bare = [Shard(*([document._replace(text=None) for document in part] for part in shard)) for shard in merged]
        for shard, results in zip(merged, pool.map(_write_bare, bare, [rules] * len(bare)), strict=True):
            done(outcomes.from_json(shard.documents[n], value) for n, value in results)


def _write_bare(shard: Shard, rules: Rules) -> list[tuple[int, Json]]:
    """In another process: (the index of a document, its outcome)."""
    places = {id(document): n for n, document in enumerate(shard.documents)}
    found = _write(shard, rules, no_progress)
    return [(places[id(outcome.document)], outcomes.as_json(outcome)) for outcome in found]


# -- kept results -----------------------------------------------------------------------------------------------------


def _restore(shard: Shard, rules: Rules, cache: Cache, done: Done) -> bool:
    """Use the kept outcomes of a shard. Returns whether there are some."""
    kept = cache.get("validate", *_parts(shard, rules))
    with suppress(LookupError, TypeError, ValueError):
        done([outcomes.from_json(document, value) for document, value in zip(shard.documents, kept, strict=True)])
        return True
    return False


def _keep(shard: Shard, rules: Rules, cache: Cache, found: Sequence[Outcome]) -> None:
    if all(outcome.error is None or outcome.error.code in _KEPT for outcome in found):
        cache.put([outcomes.as_json(outcome) for outcome in found], "validate", *_parts(shard, rules))


def _parts(shard: Shard, rules: Rules) -> list[bytes]:
    """What the outcomes of a shard depend on."""
    parts = [repr(tuple(rules)).encode()]
    for documents in shard:
        parts.append(str(len(documents)).encode())
        for document in documents:
            assert document.text is not None
            parts += [f"{document.file}\0{document.number}\0{document.path}".encode(), document.text.digest]
    return parts


# -- output -----------------------------------------------------------------------------------------------------------


def _print_report(checked: Sequence[Checked]) -> None:
    for line in reports.lines(checked):
        print(line)
    counts = _counts(checked)
    objects, unreadable = counts.pop("objects"), counts.pop("unreadable")
    listed = [f"{count} {result}" for result, count in counts.items()]
    listed += [f"{unreadable} unreadable"] if unreadable else []
    print(f"{objects} object{'' if objects == 1 else 's'}: {', '.join(listed)}")


def _counts(checked: Sequence[Checked]) -> dict[str, int]:
    counts = {"objects": sum(each.result != "unreadable" for each in checked)}
    for result in ("valid", "refused", "skipped", "unreadable"):
        counts[result] = sum(each.result == result for each in checked)
    return counts


def _as_json(found: Sequence[Outcome], checked: Sequence[Checked]) -> Json:
    objects = [_outcome_as_json(*pair) for pair in zip(found, checked, strict=True)]
    return {"objects": objects, "summary": _counts(checked)}


def _outcome_as_json(outcome: Outcome, checked: Checked) -> Object:
    document = outcome.document
    line, column = document.position() or (None, None)
    return {
        "file": document.file,
        "document": document.number,
        "line": line,
        "column": column,
        "apiVersion": document.value.get("apiVersion", ""),
        "kind": document.kind,
        "namespace": outcome.namespace,
        "name": document.name,
        "result": outcome.result,
        "findings": findings.as_json(checked.findings),
        "warnings": list(outcome.warnings),
        "status": None if outcome.error is None else outcome.error.status,
    }
