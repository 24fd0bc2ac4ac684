"""A CRD with its verdict: the questions of `noxu lint`, its findings, and the report about a fix."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple

from noxu.commands import reports
from noxu.commands.findings import Checked, Finding
from noxu.manifests.documents import Document
from noxu.releases import NEWEST
from noxu.schema.completion import CompletionNote
from noxu.values import Object


class Wanted(NamedTuple):
    """`strict`: warnings are errors. `fix`: what remains when the CRD is fixed. `fixable`: whether that is possible, in any case.

    `release`: of Kubernetes, which judges the rules.
    """

    strict: bool = False
    fix: bool = False
    fixable: bool = False
    release: int = NEWEST


class Verdict(NamedTuple):
    """What is found out about a CRD.

    `findings`: of the CRD as it is or, with `--fix`, those that cannot be fixed. `fixed` replaces the CRD, None if it has
    no violations, or cannot be fixed.
    """

    findings: Sequence[Finding]
    is_structural: bool
    is_fixable: bool
    changes: Sequence[CompletionNote] = ()
    fixed: Object | None = None


class Linted(NamedTuple):
    """A CRD with its verdict."""

    document: Document
    verdict: Verdict

    @property
    def api_version(self) -> str:
        return str(self.document.value.get("apiVersion", ""))

    @property
    def written(self) -> Object | None:
        """The CRD to write: the given one if nothing is to be fixed. None if it has no structural form."""
        verdict = self.verdict
        return (verdict.fixed or self.document.value) if verdict.is_fixable else None

    @property
    def checked(self) -> Checked:
        refused = any(finding.level == "error" for finding in self.verdict.findings)
        name = self.document.name or self.document.kind
        title = f"{name} ({self.api_version.rpartition('/')[2]})"
        return Checked(self.document, title, "refused" if refused else "valid", self.verdict.findings)


def print_fixed(linted: Linted, checked: Checked) -> None:
    """Print to stderr what was fixed, and what cannot be; and the warnings, which are not fixed."""
    about = f"{linted.document.source}: {checked.title}"
    style = reports.on_stderr()
    if linted.written is None:
        print(f"{about}: {style.of('cannot be fixed', 'red')}, not changed", file=sys.stderr)
    for note in linted.verdict.changes:
        print(f"{about}: {note}", file=sys.stderr)
    for finding in checked.findings:
        for line in reports.finding_lines(checked, finding, style):
            print(line, file=sys.stderr)
