"""`noxu lint`: find out whether servers accept CRDs, and fix them.

The violations are those that a server reports when the CRD is created; for a v1beta1 CRD, those of its v1 form. `--fix`
writes the structural v1 form where it is unambiguous (see `schema.completion`), to stdout or into the files. Other
documents in a file do not change by a byte, nor do CRDs without violations. A CRD that is rewritten loses its comments,
except for those at its top.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, TextIO

from noxu.apiserver.api import codec
from noxu.apiserver.api.field import FieldError
from noxu.apiserver.cel import SchemaRules
from noxu.apiserver.crd import lint, v1beta1
from noxu.apiserver.manifests import (
    Document,
    LoadError,
    Part,
    files,
    is_crd,
    is_list,
    looks_like_json,
    read_paths,
    split,
)
from noxu.apiserver.schema.lint import explain
from noxu.apiserver.values import Json, Object, copy

SHARED_SCHEMA: Final = "(servers report a schema that all versions share as spec.validation)"


def run(options: argparse.Namespace) -> int:
    """Exit status 0: all CRDs are structural, or have been fixed; 1: some are not, or a file cannot be read."""
    if options.in_place:
        return max([_rewrite(path) for path in options.files], default=0)
    report = Report.of(read_paths(options.files))
    for document in report.unreadable if options.output == "text" else ():
        print(f"{document.source}: {document.error}", file=sys.stderr)
    if options.output == "json":
        print(codec.pretty(report.as_json(fix=options.fix), sort_keys=False).decode())
    elif options.fix:
        _write_fixed(report)
    else:
        _print_report(report)
    return 1 if report.unreadable or any(not finding.is_structural(options.fix) for finding in report.findings) else 0


# -- findings ---------------------------------------------------------------------------------------------------------


@dataclass
class Finding:
    """One CRD: its violations, and its fixed form."""

    document: Document

    @cached_property
    def violations(self) -> list[FieldError]:
        return lint.lint_crd(self.document.value, checkers=SchemaRules)

    @cached_property
    def fixed(self) -> lint.Fixed:
        return lint.fix(self.document.value, checkers=SchemaRules)

    @property
    def api_version(self) -> str:
        return str(self.document.value.get("apiVersion", ""))

    @property
    def title(self) -> str:
        return f"{self.document.source}: {self.document.name} ({self.api_version.rpartition('/')[2]})"

    def is_structural(self, fix: bool) -> bool:
        return self.fixed.crd is not None if fix else not self.violations

    @property
    def written(self) -> Object | None:
        """The CRD to write: the given one if nothing is to be fixed. None if it has no structural form."""
        if self.fixed.crd is None:
            return None
        return presentable(self.fixed.crd, self.document.value) if self.fixed.notes else self.document.value


@dataclass
class Report:
    findings: list[Finding]
    skipped: list[Document]
    unreadable: list[Document]

    @classmethod
    def of(cls, documents: Iterable[Document]) -> Report:
        report = cls([], [], [])
        for document in documents:
            if document.error:
                report.unreadable.append(document)
            elif is_crd(document.value):
                report.findings.append(Finding(document))
            else:
                report.skipped.append(document)
        return report

    def as_json(self, *, fix: bool) -> Json:
        return {
            "crds": [_finding_as_json(finding, fix) for finding in self.findings],
            "skipped": [{**where(each), "kind": each.kind, "name": each.name} for each in self.skipped],
            "unreadable": [{**where(each), "message": each.error} for each in self.unreadable],
        }


def where(document: Document) -> Object:
    return {"file": document.file, "document": document.number}


def _finding_as_json(finding: Finding, fix: bool) -> Object:
    result: Object = {
        **where(finding.document),
        "name": finding.document.name,
        "apiVersion": finding.api_version,
        "structural": not finding.violations,
        "violations": [
            {
                "field": violation.field,
                "reason": violation.reason,
                "message": violation.body,
                "advice": explain(violation),
            }
            for violation in finding.violations
        ],
        "fixable": finding.fixed.crd is not None,
    }
    if fix:
        result["changes"] = [note._asdict() for note in finding.fixed.notes]
        result["fixed"] = finding.written
    return result


# -- text -------------------------------------------------------------------------------------------------------------


def _print_report(report: Report) -> None:
    for document in report.skipped:
        print(f"{document.source}: skipped: {document.kind} {document.name} is not a CustomResourceDefinition")
    for finding in report.findings:
        _print_finding(finding)
    if not report.findings and not report.unreadable:
        print("noxu: no CustomResourceDefinition found", file=sys.stderr)


def _print_finding(finding: Finding) -> None:
    count = len(finding.violations)
    if not count:
        old = "; `noxu lint --fix` writes it as v1, the only version that servers accept"
        print(f"{finding.title}: structural{old if v1beta1.is_v1beta1(finding.document.value) else ''}")
        return
    print(f"{finding.title}: {count} violation{'s' if count > 1 else ''}")
    _print_violations(finding.violations, sys.stdout)
    if not v1beta1.is_v1beta1(finding.document.value) and any(
        violation.field.startswith("spec.validation") for violation in finding.violations
    ):
        print(f"  {SHARED_SCHEMA}")
    if finding.fixed.crd is not None:
        print("  `noxu lint --fix` fixes all of this")


def _print_violations(violations: Iterable[FieldError], out: TextIO) -> None:
    for violation in violations:
        print(f"  {violation}\n    {explain(violation)}", file=out)


# -- fixing -----------------------------------------------------------------------------------------------------------


def _write_fixed(report: Report) -> None:
    written = []
    for finding in report.findings:
        _print_fixed(finding)
        if finding.written is not None:
            written.append(codec.to_yaml(finding.written).decode())
    print("---\n".join(written), end="")


def _print_fixed(finding: Finding) -> None:
    fixed = finding.fixed
    if fixed.crd is None:
        print(f"{finding.title}: has no structural form, not changed", file=sys.stderr)
        _print_violations(fixed.violations, sys.stderr)
    for note in fixed.notes if fixed.crd is not None else ():
        print(f"{finding.title}: {note}", file=sys.stderr)


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


def _rewrite(path: Path) -> int:
    """Fix a file, or the files of a directory, in place. Returns the exit status."""
    try:
        return max([_rewrite_file(file) for file in files(path)], default=0)
    except LoadError as error:
        print(f"noxu: {error}", file=sys.stderr)
    except OSError as error:
        print(f"noxu: {error.filename or path}: {error.strerror or error}", file=sys.stderr)
    return 1


def _rewrite_file(path: Path) -> int:
    """Fix a file in place. Returns the exit status. Raises OSError."""
    body = path.read_bytes()
    parts, number, status = split(body), 0, 0
    for n, part in enumerate(parts):
        if not part.is_document:
            continue
        number += 1
        if part.decoded is None:
            print(f"{Document({}, str(path), number).source}: {part.error}", file=sys.stderr)
            status = 1
            continue
        fixed, structural = _fix(Document(part.decoded.value, str(path), number))
        status = status if structural else 1
        if fixed is not None:
            parts[n] = Part(_replacement(part.text, fixed, json=looks_like_json(body) and len(parts) == 1))
    rewritten = b"".join(part.text for part in parts)
    if rewritten != body:
        _replace(path.resolve(), rewritten)
        print(f"{path}: rewritten", file=sys.stderr)
    return status


def _fix(document: Document) -> tuple[Json, bool]:
    """The fixed document, None if it does not change; and whether all CRDs in it are structural."""
    changed, structural = False, True
    top: list[Json] = [copy(document.value)]
    todo: list[tuple[list[Json], int]] = [(top, 0)]
    while todo:
        holder, n = todo.pop()
        value = holder[n]
        if is_list(value):
            todo += [(value["items"], n) for n in reversed(range(len(value["items"])))]
        elif is_crd(value):
            finding = Finding(document._replace(value=value))
            _print_fixed(finding)
            if finding.written is None:
                structural = False
            elif finding.fixed.notes:
                holder[n], changed = finding.written, True
    return (top[0] if changed else None), structural


def _replacement(text: bytes, value: Json, *, json: bool) -> bytes:
    """The text of a document that replaces `text`: with the same comments at its top, and the same end.

    >>> _replacement(b"# a CRD\\n\\nkind: x", {"kind": "y"}, json=False)
    b'# a CRD\\n\\nkind: y'
    """
    if json:
        return codec.pretty(value, sort_keys=False).rstrip(b"\n") + b"\n"
    head = _HEAD.match(text)
    end = b"\n" if text.endswith(b"\n") else b""
    return (head[0] if head else b"") + codec.to_yaml(value).rstrip(b"\n") + end


_HEAD: Final = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\r?\n)*")  # empty lines and comments


def _replace(path: Path, body: bytes) -> None:
    """Replace a file atomically, with the same permissions."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
        os.chmod(temporary, path.stat().st_mode)  # noqa: PTH101
        os.replace(temporary, path)  # noqa: PTH105 - atomic on every platform
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
