"""`noxu lint`: find out whether servers accept CRDs, and fix them.

The violations are those that a server reports when the CRD is created or, if there is a former one, updated; for a
v1beta1 CRD, those of its v1 form. `--fix` writes the structural v1 form where it is unambiguous (see
`schema.completion`), to stdout or into the files (see `rewriting`). A CRD in which something is not understood, such as
an unknown field or a key that occurs twice, is reported and not changed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from noxu.apiserver.api import codec
from noxu.apiserver.api.field import FieldError
from noxu.apiserver.cel import SchemaRules
from noxu.apiserver.commands import findings, inputs, reports, rewriting
from noxu.apiserver.commands.findings import Checked, Finding
from noxu.apiserver.crd import bounds, lint, v1beta1
from noxu.apiserver.manifests import Document, is_crd
from noxu.apiserver.schema.completion import Note
from noxu.apiserver.schema.lint import explain
from noxu.apiserver.values import Json, Object

DUPLICATE: Final = "Keep one of them: the fix of a file would lose the other."


def run(options: argparse.Namespace) -> int:
    """Exit status 0: all CRDs are structural, or have been fixed; 1: some are not; 2: an input cannot be read."""
    old = {each.name: each.value for each in inputs.former(options.old) if is_crd(each.value)}
    if options.in_place or options.diff:
        return rewriting.rewrite(options, lambda document: Linted(document, old.get(document.name), options.strict))
    report = Report.of(options, inputs.read(options), old)
    if options.output in reports.FORMATS:
        print(reports.FORMATS[options.output](report.checked, "lint"))
    elif options.output == "json":
        print(codec.pretty(report.as_json(), sort_keys=False).decode())
    elif options.fix:
        _write_fixed(report)
    else:
        _print_report(report)
    return findings.exit_status(report.checked)


# -- findings ---------------------------------------------------------------------------------------------------------


@dataclass
class Linted:
    """One CRD: its violations, and its fixed form. `old` is the former CRD of the same name; `strict` makes warnings errors."""

    document: Document
    old: Object | None = None
    strict: bool = False

    @cached_property
    def findings(self) -> list[Finding]:
        """The violations of the CRD as it is, and what servers accept though it is not what the author means."""
        crd = self.document.value
        violations = lint.lint_crd(crd, checkers=SchemaRules, old=self.old)
        more = lint.more_errors(crd)
        errors = findings.of_errors(self.document, violations, self.advise)
        errors += [each._replace(rule="incomplete") for each in findings.of_errors(self.document, more, explain)]
        return self.repeated + errors + self.remarks

    @property
    def remarks(self) -> list[Finding]:
        level: findings.Level = "error" if self.strict else "warning"
        return [
            findings.finding(self.document, level, each.rule, each.message, each.path, each.advice)
            for each in lint.remarks(self.document.value)
        ]

    def advise(self, violation: FieldError) -> str:
        """Advice on how to fix a violation."""
        general = explain(violation)
        if bounds.EXCEEDS not in violation.detail:
            return general
        path = lint.as_written(self.document.value, violation.field)
        return bounds.advice(self.document.value, path, SchemaRules) or general

    @cached_property
    def repeated(self) -> list[Finding]:
        """Keys that occur twice."""
        found = findings.of_warnings(self.document, self.document.duplicates)
        return [each._replace(level="error", advice=DUPLICATE) for each in found]

    @cached_property
    def fixed(self) -> lint.Fixed:
        return lint.fix(self.document.value, checkers=SchemaRules)

    @property
    def changes(self) -> list[Note]:
        """What `--fix` changes, nothing if it does not write the CRD."""
        notes = self.fixed.notes
        has_status = notes and any((self.document.value.get("status") or {}).values())
        return [*notes, Note("status", "dropped, servers set it")] if has_status else notes

    @property
    def unfixed(self) -> list[Finding]:
        """What `--fix` cannot fix; nothing if it can fix everything."""
        return self.repeated + findings.of_errors(self.document, self.fixed.violations, self.advise)

    @property
    def api_version(self) -> str:
        return str(self.document.value.get("apiVersion", ""))

    @property
    def title(self) -> str:
        return f"{self.document.name} ({self.api_version.rpartition('/')[2]})".strip()

    @cached_property
    def written(self) -> Object | None:
        """The CRD to write: the given one if nothing is to be fixed. None if it has no structural form."""
        if self.fixed.crd is None or self.repeated:
            return None
        return presentable(self.fixed.crd, self.document.value) if self.fixed.notes else self.document.value

    def checked(self, *, fix: bool) -> Checked:
        found = self.unfixed if fix else self.findings
        refused = any(finding.level == "error" for finding in found)
        return Checked(self.document, self.title, "refused" if refused else "valid", found)


def presentable(fixed: Object, given: Object) -> Object:
    """The fixed CRD without status and without the fields that the server fills in and the original does not have."""
    given_spec = given.get("spec") or {}
    given_names = given_spec.get("names") or {}
    spec = {
        name: value for name, value in fixed["spec"].items() if name != "conversion" or given_spec.get("conversion")
    }
    filled_in = [name for name in ("singular", "listKind") if not given_names.get(name)]
    spec["names"] = {name: value for name, value in spec["names"].items() if name not in filled_in}
    return {"apiVersion": fixed["apiVersion"], "kind": fixed["kind"], "metadata": fixed["metadata"], "spec": spec}


@dataclass
class Report:
    """What is known about the documents. `checked` has all of them, in their order."""

    fix: bool
    checked: list[Checked]
    linted: list[tuple[Linted, Checked]]

    @classmethod
    def of(cls, options: argparse.Namespace, documents: Iterable[Document], old: Mapping[str, Object]) -> Report:
        report = cls(options.fix, [], [])
        for document in documents:
            checked = inputs.decided(options, document)
            if checked is None and is_crd(document.value):
                linted = Linted(document, old.get(document.name), options.strict)
                checked = linted.checked(fix=options.fix)
                report.linted.append((linted, checked))
            report.checked.append(checked or Checked(document, inputs.title(document), "skipped"))
        if not report.linted and not any(each.findings for each in report.checked) and not options.allow_empty:
            report.checked.append(inputs.nothing(options, "no CustomResourceDefinition found"))
        return report

    def with_result(self, result: findings.Result) -> list[Checked]:
        linted = {id(checked) for _, checked in self.linted}
        return [each for each in self.checked if each.result == result and id(each) not in linted]

    def as_json(self) -> Json:
        return {
            "crds": [_as_json(linted, checked, self.fix) for linted, checked in self.linted],
            "skipped": [
                {**where(each.document), "kind": each.document.kind, "name": each.document.name}
                for each in self.with_result("skipped")
            ],
            "rejected": [
                {**where(each.document), "findings": findings.as_json(each.findings)}
                for each in self.with_result("refused")
            ],
            "unreadable": [
                {**where(each.document), "message": each.document.error} for each in self.with_result("unreadable")
            ],
        }


def where(document: Document) -> Object:
    line, column = document.position() or (None, None)
    return {"file": document.file, "document": document.number, "line": line, "column": column}


def _as_json(linted: Linted, checked: Checked, fix: bool) -> Object:
    result: Object = {
        **where(linted.document),
        "name": linted.document.name,
        "apiVersion": linted.api_version,
        "structural": not any(finding.level == "error" for finding in linted.findings),
        "findings": findings.as_json(checked.findings),
        "fixable": linted.written is not None,
    }
    if fix:
        result["changes"] = [note._asdict() for note in linted.changes]
        result["fixed"] = linted.written
    return result


# -- text -------------------------------------------------------------------------------------------------------------


def _print_report(report: Report) -> None:
    for each in report.with_result("skipped"):
        why = "is of a kind to skip" if is_crd(each.document.value) else "is not a CustomResourceDefinition"
        print(f"{each.document.source}: skipped: {each.title} {why}")
    for linted, checked in report.linted:
        _print_linted(linted, checked)
    reports.print_findings(report.with_result("refused") + report.with_result("unreadable"))


def _print_linted(linted: Linted, checked: Checked) -> None:
    errors = sum(finding.level == "error" for finding in checked.findings)
    old = v1beta1.is_v1beta1(linted.document.value)
    state = f"{errors} violation{'s' if errors > 1 else ''}" if errors else "structural"
    hint = "; `noxu lint --fix` writes it as v1, the only version that servers accept" if old and not errors else ""
    print(f"{linted.document.source}: {linted.title}: {state}{hint}")
    for finding in checked.findings:
        for line in reports.finding_lines(checked, finding):
            print(line)
    if errors and linted.written is not None:
        print("  `noxu lint --fix` fixes all of this")


def _write_fixed(report: Report) -> None:
    written = []
    for linted, checked in report.linted:
        print_fixed(linted, checked)
        if linted.written is not None:
            written.append(codec.to_yaml(linted.written).decode())
    reports.print_findings(report.with_result("refused") + report.with_result("unreadable"))
    print("---\n".join(written), end="")


def print_fixed(linted: Linted, checked: Checked) -> None:
    """Print to stderr what was fixed, or why nothing was."""
    about = f"{linted.document.source}: {linted.title}"
    if linted.written is None:
        print(f"{about}: cannot be fixed, not changed", file=sys.stderr)
        for finding in checked.findings:
            for line in reports.finding_lines(checked, finding):
                print(line, file=sys.stderr)
        return
    for note in linted.changes:
        print(f"{about}: {note}", file=sys.stderr)
