"""`noxu diff OLD NEW`: what breaks when the CRDs in some files take the place of others (`noxu.upgrades.changes`).

The same command compares two moments of a running server (`noxu.commands.past`): its arguments say which.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Final

from noxu.api import codec
from noxu.commands import findings, reports
from noxu.commands.findings import FOUND, UNREADABLE, Checked, Finding
from noxu.commands.reports import Style
from noxu.generation.pages import code_span, table_cell
from noxu.go.text import compact_json
from noxu.manifests.documents import STDIN, Document, is_crd
from noxu.observability.logs import shown_on
from noxu.upgrades.changes import EFFECTS, ChangedDefinition, DefinitionChange, Effect, compared
from noxu.values import Object

_COLOURS: Final = {"breaking": "red", "unknown": "yellow", "compatible": "green"}
_MANY: Final = 3
"""Changes that are the same but for their fields are printed one by one up to this number."""


def run(options: argparse.Namespace) -> int:
    """Exit status 0: nothing breaks; 1: something does; 2: an input cannot be read, or has no CRD."""
    # a hint to pipe something names the other side, and there is none for the first one
    to_stdin = f"{options.command} {options.old[0]}" if str(options.old[0]) != STDIN else ""
    sides = [_definitions(options.old, ""), _definitions(options.files, to_stdin)]
    unreadable = [checked for _, refused in sides for checked in refused]
    if unreadable:
        reports.print_findings(unreadable)
        return UNREADABLE
    (old, _), (new, _) = sides
    changed = compared(old, new, examples=not options.no_examples)
    print("\n".join(_OUTPUTS[options.output](changed, options)))
    counted = EFFECTS[:2] if options.strict else EFFECTS[:1]
    return FOUND if any(definition.count(effect) for definition in changed for effect in counted) else 0


def _definitions(paths: Sequence[object], command: str) -> tuple[list[Document], list[Checked]]:
    """(the CRDs of some paths, what cannot be read). `command`: the one that would read stdin for them."""
    read = argparse.Namespace(files=paths, allow_empty=True, command=command)
    documents = findings.read(read)
    refused = [
        Checked(document, "", "unreadable", findings.unreadable(document)) for document in documents if document.error
    ]
    found = [document for document in documents if is_crd(document.value)]
    if not found and not refused:
        nothing = Document({}, ", ".join(map(str, paths)), 0, error="contains no CRD")
        refused.append(Checked(nothing, "", "unreadable", findings.unreadable(nothing)))
    return found, refused


# -- text ------------------------------------------------------------------------------------------------------------


def _text(changed: Sequence[ChangedDefinition], options: argparse.Namespace) -> Iterator[str]:
    style = Style(colours=shown_on(sys.stdout))
    for definition in changed:
        counts = _listed({effect: definition.count(effect) for effect in EFFECTS}, style)
        if definition.changes or options.verbose:
            yield f"{definition.name}: {counts or 'no change'}"
        shown = [change for change in definition.changes if options.verbose or change.effect != "compatible"]
        for _, group in groupby(shown, key=lambda change: (change.effect, change.rule, change.message)):
            changes = list(group)
            listed = changes if options.verbose or len(changes) <= _MANY else changes[:_MANY]
            for change in listed:
                yield from _lines(definition, change, style)
            if len(listed) < len(changes):
                yield f"    and {len(changes) - len(listed)} more fields; --verbose lists them"
    yield _summary(changed, style)


def _lines(definition: ChangedDefinition, change: DefinitionChange, style: Style) -> Iterator[str]:
    place = _place(definition, change)
    about = f"{change.where}: " if change.where else ""
    effect = style.of(change.effect, _COLOURS[change.effect])
    yield reports.indented(f"{f'{place}: ' if place else ''}{effect}: {about}{change.message}")
    if change.example is not None and change.effect != "compatible":
        yield style.of(f"    {_shown_by(change)}", "dim")


def _shown_by(change: DefinitionChange) -> str:
    """`shown by {"spec":{"size":11}}: spec.size: …`."""
    assert change.example is not None
    content = {
        name: value for name, value in change.example.value.items() if name not in ("apiVersion", "kind", "metadata")
    }
    return f"shown by {compact_json(content)}: {change.example.now}".replace("\n", " ")


def _place(definition: ChangedDefinition, change: DefinitionChange) -> str:
    if definition.document is None or not change.path:
        return ""
    found = findings.finding(definition.document, "error", change.rule, change.message, change.path)
    return reports.place(Checked(definition.document, "", "refused"), found)


def _summary(changed: Sequence[ChangedDefinition], style: Style) -> str:
    counts = _totals(changed)
    listed = _listed(counts, style)
    changes = f"{listed} change{'' if sum(counts.values()) == 1 else 's'}"
    return f"{reports.count(len(changed), 'CRD')}: {changes if listed else 'nothing has changed'}"


def _totals(changed: Sequence[ChangedDefinition]) -> dict[Effect, int]:
    return {effect: sum(definition.count(effect) for definition in changed) for effect in EFFECTS}


def _listed(counts: dict[Effect, int], style: Style) -> str:
    return ", ".join(style.of(f"{number} {effect}", _COLOURS[effect]) for effect, number in counts.items() if number)


# -- other formats ---------------------------------------------------------------------------------------------------


def _json(changed: Sequence[ChangedDefinition], _: argparse.Namespace) -> Iterator[str]:
    definitions = [_definition_as_json(definition) for definition in changed]
    yield codec.pretty({"definitions": definitions, "summary": {**_totals(changed)}}, sort_keys=False).decode().rstrip()


def _definition_as_json(definition: ChangedDefinition) -> Object:
    place = findings.place_as_json(definition.document) if definition.document else {}
    return {
        "name": definition.name,
        **place,
        "changes": [
            {
                "effect": change.effect,
                "rule": change.rule,
                "version": change.version,
                "field": change.field,
                "message": change.message,
                "path": change.path,
                "example": None if change.example is None else {"object": change.example.value, "result": change.example.now},
            }
            for change in definition.changes
        ],
    }  # fmt: skip


def _markdown(changed: Sequence[ChangedDefinition], _: argparse.Namespace) -> Iterator[str]:
    """A comment for a pull request."""
    yield f"**{_summary(changed, reports.PLAIN)}**"
    rows = [
        (definition, change) for definition in changed for change in definition.changes if change.effect != "compatible"
    ]
    if rows:
        yield from ("", "| | CRD | field | change | shown by |", "|---|---|---|---|---|")
    for definition, change in rows:
        field = code_span(change.where) if change.where else ""
        message = table_cell(change.message)
        example = code_span(_shown_by(change).removeprefix("shown by ")) if change.example else ""
        yield f"| {' | '.join((change.effect, table_cell(definition.name), field, message, example))} |"


def _report(name: str) -> Callable[[Sequence[ChangedDefinition], argparse.Namespace], Iterator[str]]:
    """One of the formats that all commands have."""

    def written(changed: Sequence[ChangedDefinition], options: argparse.Namespace) -> Iterator[str]:
        yield reports.FORMATS[name]([_checked(definition) for definition in changed], options.command)

    return written


def _checked(definition: ChangedDefinition) -> Checked:
    document = definition.document or definition.former
    assert document is not None
    found = [_finding(document, change) for change in definition.changes if change.effect != "compatible"]
    title = f"CustomResourceDefinition {definition.name}"
    return Checked(document, title, "refused" if definition.count("breaking") else "valid", found)


def _finding(document: Document, change: DefinitionChange) -> Finding:
    advice = "" if change.example is None else _shown_by(change)
    level: findings.Level = "error" if change.effect == "breaking" else "warning"
    found = findings.finding(document, level, change.rule, change.message, change.path, advice)
    return found._replace(field=change.where)


_OUTPUTS: Final[dict[str, Callable[[Sequence[ChangedDefinition], argparse.Namespace], Iterator[str]]]] = {
    "text": _text,
    "json": _json,
    "markdown": _markdown,
    **{name: _report(name) for name in reports.FORMATS},
}
