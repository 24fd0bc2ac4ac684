"""The verdict of `noxu lint` on one CRD: its violations, how to fix them, and its fixed form.

The violations are those that a server reports when the CRD is created or, if there is a former one, updated; for a
v1beta1 CRD, those of its v1 form. A CRD in which something is not understood, such as an unknown field or a key that
occurs twice, is not fixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

from noxu.api.field import FieldError
from noxu.cel import SchemaRules
from noxu.commands import findings
from noxu.commands.findings import Finding
from noxu.commands.linted import Verdict, Wanted
from noxu.crd import lint
from noxu.crd.schemas import RuleCheckers
from noxu.manifests.documents import Document
from noxu.schema.completion import CompletionNote
from noxu.schema.lint import explain
from noxu.values import Object

DUPLICATE: Final = "Keep one of them: the fix of a file would lose the other."


def verdict(document: Document, wanted: Wanted, old: Object | None = None) -> Verdict:
    """The verdict on a CRD. `old` is the former one of the same name."""
    crd = _Crd(document, wanted, old)
    warnings = [*crd.repeated, *crd.narrowings, *crd.remarks]
    errors = [*crd.violations, *(warnings if wanted.strict else ())]
    if not (wanted.fixable or errors):
        return Verdict(warnings, is_structural=True, is_fixable=True)
    violations = crd.left if wanted.fix else crd.violations
    changes = crd.changes if crd.is_fixable and wanted.fix else []
    return Verdict(
        [*violations, *warnings], not errors, crd.is_fixable, changes, crd.replacement if wanted.fix else None
    )


@dataclass
class _Crd:
    document: Document
    wanted: Wanted
    old: Object | None

    @cached_property
    def _checkers(self) -> RuleCheckers:
        return partial(SchemaRules, release=self.wanted.release)

    @cached_property
    def violations(self) -> list[Finding]:
        """The violations of the CRD as it is."""
        return self._violations_of(self.document.value)

    def _violations_of(self, crd: Object) -> list[Finding]:
        errors = findings.of_errors(
            self.document, lint.lint_crd(crd, checkers=self._checkers, old=self.old), self._advise
        )
        more = findings.of_errors(self.document, lint.more_errors(crd), explain)
        return [*errors, *(violation._replace(rule="incomplete") for violation in more)]

    @property
    def left(self) -> list[Finding]:
        """The violations that are left when everything is fixed that can be."""
        if not self.is_fixable or self.replacement is None:
            return self.violations
        return self._violations_of(self.replacement)

    @cached_property
    def remarks(self) -> list[Finding]:
        """What servers accept though it is not what the author means."""
        return [
            findings.finding(self.document, self._level, remark.rule, remark.message, remark.path, remark.advice)
            for remark in lint.remarks(self.document.value)
        ]

    @cached_property
    def narrowings(self) -> list[Finding]:
        """What the former CRD serves, keeps or accepts, and this one does not."""
        narrowings = [] if self.old is None else lint.upgrade(self.old, self.document.value)
        return findings.of_upgrade(self.document, narrowings, self.violations, self._level)

    @property
    def is_fixable(self) -> bool:
        return self._fixed.crd is not None and not (self.repeated and self._fixed.notes)

    @property
    def changes(self) -> list[CompletionNote]:
        """What fixing changes."""
        notes = self._fixed.notes
        has_status = notes and any((self.document.value.get("status") or {}).values())
        return [*notes, CompletionNote("status", "dropped, servers set it")] if has_status else notes

    @property
    def replacement(self) -> Object | None:
        """The fixed CRD; None if nothing is to be fixed, or it cannot be fixed."""
        fixed = self._fixed
        if not (self.is_fixable and fixed.notes):
            return None
        assert fixed.crd is not None
        return presentable(fixed.crd, self.document.value)

    @property
    def _level(self) -> findings.Level:
        return "error" if self.wanted.strict else "warning"

    @cached_property
    def repeated(self) -> list[Finding]:
        """Keys that occur twice. Servers accept them, unless a client asks for strict validation; a fix would lose one."""
        duplicates = findings.of_warnings(self.document, self.document.duplicates)
        return [warning._replace(level=self._level, advice=DUPLICATE) for warning in duplicates]

    @cached_property
    def _fixed(self) -> lint.Fixed:
        return lint.fix(self.document.value, checkers=self._checkers)

    def _advise(self, violation: FieldError) -> str:
        """Advice on how to fix a violation."""
        general = explain(violation)
        if lint.EXCEEDS not in violation.detail:
            return general
        path = lint.as_written(self.document.value, violation.field)
        return lint.advice_on_bounds(self.document.value, path, self._checkers) or general


def presentable(fixed: Object, original: Object) -> Object:
    """The fixed CRD without status and without the fields that the server fills in and the original does not have."""
    original_spec = original.get("spec") or {}
    original_names = original_spec.get("names") or {}
    spec = {
        name: value for name, value in fixed["spec"].items() if name != "conversion" or original_spec.get("conversion")
    }
    filled_in = [name for name in ("singular", "listKind") if not original_names.get(name)]
    spec["names"] = {name: value for name, value in spec["names"].items() if name not in filled_in}
    return {"apiVersion": fixed["apiVersion"], "kind": fixed["kind"], "metadata": fixed["metadata"], "spec": spec}
