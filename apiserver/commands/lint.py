"""`noxu lint`: would servers take these CRDs, and if not, what is to be done?

What is found is what a server would say when the CRD is created; of a v1beta1 CRD, what v1 says to it. With `--fix` the
structural v1 form is written, where there is only one (see `schema.completion`): to stdout, or into the files. What
stands in a file beside the CRDs stays there to the byte, and so do CRDs with nothing to change. Of those that are
rewritten the comments go, but for those at the top.
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

from apiserver.api import codec
from apiserver.api.field import FieldError
from apiserver.api.types import Json, Object
from apiserver.api.values import copy
from apiserver.cel.schema_rules import SchemaRules
from apiserver.crd import lint, v1beta1
from apiserver.manifests import Document, LoadError, Part, files, is_crd, is_list, looks_like_json, read_paths, split
from apiserver.schema.lint import explain

HOISTED: Final = "(spec.validation is what servers call a schema that all versions have in common)"


def run(given: argparse.Namespace) -> int:
    """0: all CRDs are structural, or are now; 1: not all of them; also if a file cannot be read."""
    if given.in_place:
        return max([_rewrite(path) for path in given.files], default=0)
    report = Report.of(read_paths(given.files))
    for document in report.unreadable if given.output == "text" else ():
        print(f"{document.source}: {document.error}", file=sys.stderr)
    if given.output == "json":
        print(codec.pretty(report.as_json(fix=given.fix), sort_keys=False).decode())
    elif given.fix:
        _write_fixed(report)
    else:
        _tell(report)
    return 1 if report.unreadable or any(not finding.is_fine(given.fix) for finding in report.findings) else 0


# -- findings ---------------------------------------------------------------------------------------------------------


@dataclass
class Finding:
    """One CRD, and what there is to say about it."""

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

    def is_fine(self, fix: bool) -> bool:
        return self.fixed.crd is not None if fix else not self.violations

    @property
    def written(self) -> Object | None:
        """The CRD as it is to be: as it stands if there is nothing to change. None if it has no structural form."""
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
            "skipped": [{**where(one), "kind": one.kind, "name": one.name} for one in self.skipped],
            "unreadable": [{**where(one), "message": one.error} for one in self.unreadable],
        }


def where(document: Document) -> Object:
    return {"file": document.file, "document": document.number}


def _finding_as_json(finding: Finding, fix: bool) -> Object:
    told: Object = {
        **where(finding.document),
        "name": finding.document.name,
        "apiVersion": finding.api_version,
        "structural": not finding.violations,
        "violations": [
            {"field": one.field, "reason": one.reason, "message": one.body, "advice": explain(one)}
            for one in finding.violations
        ],
        "fixable": finding.fixed.crd is not None,
    }
    if fix:
        told["changes"] = [note._asdict() for note in finding.fixed.notes]
        told["fixed"] = finding.written
    return told


# -- text -------------------------------------------------------------------------------------------------------------


def _tell(report: Report) -> None:
    for document in report.skipped:
        print(f"{document.source}: skipped, {document.kind} {document.name} is no CustomResourceDefinition")
    for finding in report.findings:
        _tell_finding(finding)
    if not report.findings and not report.unreadable:
        print("noxu: no CustomResourceDefinition in there", file=sys.stderr)


def _tell_finding(finding: Finding) -> None:
    count = len(finding.violations)
    if not count:
        old = "; `noxu lint --fix` writes it as v1, which is all that servers take"
        print(f"{finding.title}: structural{old if v1beta1.is_v1beta1(finding.document.value) else ''}")
        return
    print(f"{finding.title}: {count} violation{'s' if count > 1 else ''}")
    _tell_violations(finding.violations, sys.stdout)
    if not v1beta1.is_v1beta1(finding.document.value) and any(
        one.field.startswith("spec.validation") for one in finding.violations
    ):
        print(f"  {HOISTED}")
    if finding.fixed.crd is not None:
        print("  `noxu lint --fix` can do all of this")


def _tell_violations(violations: Iterable[FieldError], out: TextIO) -> None:
    for violation in violations:
        print(f"  {violation}\n    {explain(violation)}", file=out)


# -- mending ----------------------------------------------------------------------------------------------------------


def _write_fixed(report: Report) -> None:
    written = []
    for finding in report.findings:
        _tell_fixed(finding)
        if finding.written is not None:
            written.append(codec.to_yaml(finding.written).decode())
    print("---\n".join(written), end="")


def _tell_fixed(finding: Finding) -> None:
    fixed = finding.fixed
    if fixed.crd is None:
        print(f"{finding.title}: has no structural form, left as it is", file=sys.stderr)
        _tell_violations(fixed.violations, sys.stderr)
    for note in fixed.notes if fixed.crd is not None else ():
        print(f"{finding.title}: {note}", file=sys.stderr)


def presentable(fixed: Object, given: Object) -> Object:
    """A CRD as people write it: without status, which is the server's, and what servers fill in by themselves."""
    given_spec = given.get("spec") or {}
    given_names = given_spec.get("names") or {}
    spec = {name: one for name, one in fixed["spec"].items() if name != "conversion" or given_spec.get("conversion")}
    filled_in = [name for name in ("singular", "listKind") if not given_names.get(name)]
    spec["names"] = {name: one for name, one in spec["names"].items() if name not in filled_in}
    return {"apiVersion": fixed["apiVersion"], "kind": fixed["kind"], "metadata": fixed["metadata"], "spec": spec}


def _rewrite(path: Path) -> int:
    """Mend a file, or those in a directory, where they stand."""
    try:
        return max([_rewrite_file(file) for file in files(path)], default=0)
    except LoadError as error:
        print(f"noxu: {error}", file=sys.stderr)
    except OSError as error:
        print(f"noxu: {error.filename or path}: {error.strerror or error}", file=sys.stderr)
    return 1


def _rewrite_file(path: Path) -> int:
    """Raises OSError."""
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
        mended, fine = _mended(Document(part.decoded.value, str(path), number))
        status = status if fine else 1
        if mended is not None:
            parts[n] = Part(_rewritten(part.text, mended, json=looks_like_json(body) and len(parts) == 1))
    rewritten = b"".join(part.text for part in parts)
    if rewritten != body:
        _replace(path.resolve(), rewritten)
        print(f"{path}: rewritten", file=sys.stderr)
    return status


def _mended(document: Document) -> tuple[Json, bool]:
    """What a document is to be instead, None if it stays; and whether all CRDs in it are fine then."""
    changed, fine = False, True
    top: list[Json] = [copy(document.value)]
    todo: list[tuple[list[Json], int]] = [(top, 0)]
    while todo:
        holder, n = todo.pop()
        value = holder[n]
        if is_list(value):
            todo += [(value["items"], n) for n in reversed(range(len(value["items"])))]
        elif is_crd(value):
            finding = Finding(document._replace(value=value))
            _tell_fixed(finding)
            if finding.written is None:
                fine = False
            elif finding.fixed.notes:
                holder[n], changed = finding.written, True
    return (top[0] if changed else None), fine


def _rewritten(text: bytes, value: Json, *, json: bool) -> bytes:
    """A document in place of another: it begins with the same comments, and ends as that one did."""
    if json:
        return codec.pretty(value, sort_keys=False).rstrip(b"\n") + b"\n"
    head = _HEAD.match(text)
    end = b"\n" if text.endswith(b"\n") else b""
    return (head[0] if head else b"") + codec.to_yaml(value).rstrip(b"\n") + end


_HEAD: Final = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\r?\n)*")  # empty lines and comments


def _replace(path: Path, body: bytes) -> None:
    """All or nothing, with the same permissions."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
        os.chmod(temporary, path.stat().st_mode)  # noqa: PTH101
        os.replace(temporary, path)  # noqa: PTH105 - atomic on every platform
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
