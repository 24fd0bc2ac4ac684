"""`noxu lint`: find out whether servers accept CRDs, and fix them.

`verdicts` examines one CRD. Verdicts are kept, and several processes may find them (see `results`). `--fix` writes the
structural v1 form where it is unambiguous (see `schema.completion`), to stdout or into the files (see `rewriting`).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from noxu.api import codec
from noxu.commands import findings, reports, results, rewriting
from noxu.commands.by_release import merged
from noxu.commands.findings import Checked
from noxu.commands.linted import Linted, Verdict, Wanted, print_fixed
from noxu.commands.reports import Style
from noxu.commands.results import Check, Results, Shard
from noxu.crd import v1beta1
from noxu.manifests.documents import Document, is_crd
from noxu.manifests.manifest_cache import Cache, user_directory
from noxu.schema.completion import CompletionNote
from noxu.schema.lint import REMARKS
from noxu.values import Json, Object
from noxu_storage.types import Progress


def run(options: argparse.Namespace) -> int:
    """Exit status 0: all CRDs are structural, or have been fixed; 1: some are not; 2: an input cannot be read."""
    cache = Cache(None if options.no_cache else user_directory())
    old = findings.former(options.old, cache.split)
    if options.in_place or options.diff:
        status = rewriting.rewrite(options, cache.split, partial(lint, options, old, cache))
        cache.tidy()
        return status
    documents = findings.read(options, cache.split)
    report = LintReport.of(options, documents, lint(options, old, cache, documents))
    cache.tidy()
    if options.output in reports.FORMATS:
        print(reports.FORMATS[options.output](report.checked, "lint"))
    elif options.output == "json":
        print(codec.pretty(report.as_json(), sort_keys=False).decode())
    elif options.fix:
        _write_fixed(report, reports.style(options))
    else:
        _print_report(report, reports.style(options))
    return findings.exit_status(report.checked)


# -- verdicts ---------------------------------------------------------------------------------------------------------


def lint(
    options: argparse.Namespace, old: Sequence[Document], cache: Cache, documents: Iterable[Document]
) -> Results[Linted]:
    """The verdicts on the CRDs among documents, each with the former CRD of its name."""
    crds = [crd for crd in documents if findings.decided(options, crd) is None and is_crd(crd.value)]
    by_release: dict[int, Results[Linted]] = {}
    for release in options.kubernetes:
        linted = by_release[release] = Results[Linted]()
        results.add(linted, _check(options, release), results.by_file(crds, old), cache, options.jobs)
    together = Results[Linted]()
    together.add((crd, _merged({release: found[id(crd)] for release, found in by_release.items()})) for crd in crds)
    return together


def _merged(by_release: Mapping[int, Linted]) -> Linted:
    """The verdicts of several releases as one: with the findings of all, and the fix of the newest one."""
    document, verdict = [*by_release.values()][-1]
    listed = by_release.items()
    return Linted(
        document,
        verdict._replace(
            findings=merged({release: linted.verdict.findings for release, linted in listed}),
            is_structural=all(linted.verdict.is_structural for _, linted in listed),
            is_fixable=all(linted.verdict.is_fixable for _, linted in listed),
        ),
    )


def _check(options: argparse.Namespace, release: int) -> Check[Linted]:
    wanted = Wanted(options.strict, options.fix, options.fix or options.output == "json", release)
    return Check("lint", partial(_find, wanted), wanted, _verdict_as_json, _linted)


def _find(wanted: Wanted, shard: Shard, _: Progress) -> list[tuple[Document, Linted]]:
    from noxu.commands import verdicts  # takes long to import, and kept verdicts do without it

    old = {document.name: document.value for document in shard.old}
    return [
        (document, Linted(document, verdicts.verdict(document, wanted, old.get(document.name))))
        for document in shard.documents
    ]


def _verdict_as_json(linted: Linted) -> Json:
    verdict = linted.verdict
    listed = [findings.plain_values(finding) for finding in verdict.findings]
    return [listed, verdict.is_structural, verdict.is_fixable, list(map(list, verdict.changes)), verdict.fixed]


def _linted(document: Document, value: Json) -> Linted:
    """Raises TypeError, ValueError for what `_verdict_as_json` has not made."""
    listed, structural, fixable, changes, fixed = value
    return Linted(
        document,
        Verdict(
            list(map(findings.from_plain, listed)),
            structural,
            fixable,
            [CompletionNote(*change) for change in changes],
            fixed,
        ),
    )


# -- report -----------------------------------------------------------------------------------------------------------


@dataclass
class LintReport:
    """What is known about the documents. `checked` has all of them, in their order."""

    fix: bool
    checked: list[Checked]
    linted: list[tuple[Linted, Checked]]

    @classmethod
    def of(
        cls, options: argparse.Namespace, documents: Iterable[Document], linted_by_id: Mapping[int, Linted]
    ) -> LintReport:
        report = cls(options.fix, [], [])
        for document in documents:
            if (linted := linted_by_id.get(id(document))) is not None:
                checked = linted.checked
                report.linted.append((linted, checked))
            else:
                certain = findings.decided(options, document)
                checked = certain or Checked(document, findings.title(document), "skipped")
            report.checked.append(checked)
        if not report.linted and not any(listed.findings for listed in report.checked) and not options.allow_empty:
            report.checked.append(findings.nothing(options.files, "no CustomResourceDefinition found"))
        return report

    def with_result(self, result: findings.Result) -> list[Checked]:
        linted = {id(checked) for _, checked in self.linted}
        return [checked for checked in self.checked if checked.result == result and id(checked) not in linted]

    def as_json(self) -> Json:
        return {
            "crds": [_as_json(linted, checked, self.fix) for linted, checked in self.linted],
            "skipped": [
                {**findings.place_as_json(item.document), "kind": item.document.kind, "name": item.document.name}
                for item in self.with_result("skipped")
            ],
            "rejected": [
                {**findings.place_as_json(item.document), "findings": findings.as_json(item.findings)}
                for item in self.with_result("refused")
            ],
            "unreadable": [
                {**findings.place_as_json(item.document), "message": item.document.error}
                for item in self.with_result("unreadable")
            ],
        }


def _as_json(linted: Linted, checked: Checked, fix: bool) -> Object:
    result: Object = {
        **findings.place_as_json(linted.document),
        "name": linted.document.name,
        "apiVersion": linted.api_version,
        "structural": linted.verdict.is_structural,
        "findings": findings.as_json(checked.findings),
        "fixable": linted.verdict.is_fixable,
    }
    if fix:
        result["changes"] = [note._asdict() for note in linted.verdict.changes]
        result["fixed"] = linted.written
    return result


# -- text -------------------------------------------------------------------------------------------------------------


def _print_report(report: LintReport, style: Style) -> None:
    groups = reports.repeated(report.checked) if style.groups and style.detail != "errors" else {}
    for skipped in report.with_result("skipped") if style.detail == "all" else ():
        why = "is of a kind to skip" if is_crd(skipped.document.value) else "is not a CustomResourceDefinition"
        print(f"{skipped.document.source}: {reports.result('skipped', style)}: {skipped.title} {why}")
    for linted, checked in report.linted:
        single = reports.ungrouped(checked, groups)
        if style.shows(single):
            _print_linted(linted, single, style)
    reports.print_findings(report.with_result("refused") + report.with_result("unreadable"))
    for line in reports.group_lines(groups, style):
        print(line)
    if len(report.checked) > 1:
        print(_summary(report, style))


_NOT_FIXED: Final = {*REMARKS, "duplicate-key"}


def _print_linted(linted: Linted, checked: Checked, style: Style) -> None:
    errors = sum(finding.level == "error" for finding in checked.findings)
    old = v1beta1.is_v1beta1(linted.document.value)
    state = reports.count(errors, "violation", style, "red") if errors else style.of("structural", "green")
    hint = "; `noxu lint --fix` writes it as v1, the only version that servers accept" if old and not errors else ""
    print(f"{linted.document.source}: {checked.title}: {state}{hint}")
    for finding in filter(style.tells, checked.findings):
        for line in reports.finding_lines(checked, finding, style):
            print(line)
    remarks = any(finding.level == "error" and finding.rule in _NOT_FIXED for finding in checked.findings)
    if errors and linted.verdict.is_fixable and not remarks:
        print("  `noxu lint --fix` fixes all of this")


def _summary(report: LintReport, style: Style) -> str:
    """`3 CRDs: 2 structural, 1 with 5 violations; 7 warnings; 2 skipped`."""
    crds = [checked for _, checked in report.linted]
    wrong = sum(crd.has_errors for crd in crds)
    levels = Counter(finding.level for crd in crds for finding in crd.findings)
    parts = [reports.count(len(crds) - wrong, "structural,", style, "green").rstrip(",")]
    parts += [f"{wrong} with {reports.count(levels['error'], 'violation', style, 'red')}"] if wrong else []
    texts = [f"{len(crds)} CRD{'' if len(crds) == 1 else 's'}: {', '.join(parts)}"]
    texts += [reports.count(levels["warning"], "warning", style, "yellow")] if levels["warning"] else []
    for result in ("skipped", "refused", "unreadable"):
        if count := len(report.with_result(result)):
            texts.append(style.of(f"{count} {result}", reports.COLOURS[result]))
    return "; ".join(texts)


def _write_fixed(report: LintReport, style: Style) -> None:
    written = []
    groups = reports.repeated(report.checked) if style.groups else {}
    for linted, checked in report.linted:
        print_fixed(linted, reports.ungrouped(checked, groups))
        if linted.written is not None:
            written.append(codec.to_yaml(linted.written).decode())
    reports.print_findings(report.with_result("refused") + report.with_result("unreadable"))
    for line in reports.group_lines(groups, reports.on_stderr()):
        print(line, file=sys.stderr)
    print("---\n".join(written), end="")
