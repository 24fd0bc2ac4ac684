"""`noxu skeleton`: print the skeletons of schemas, as the provisional pruning KEP defines them.

A skeleton is a schema without value validations. It is printed for each schema of each CRD, or for a bare OpenAPI schema.
Where a value would be a struct and a map at the same time, it is ambiguous what to prune: these violations of the KEP's
Restriction 1 are errors. With former CRDs, fields that their skeletons have and the new ones lack are warnings.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from noxu.apiserver.api import codec
from noxu.apiserver.api.field import OMIT, ROOT, invalid
from noxu.apiserver.api.field import Path as FieldPath
from noxu.apiserver.commands import findings, inputs, reports
from noxu.apiserver.commands.findings import Checked, Finding
from noxu.apiserver.crd import types, v1beta1
from noxu.apiserver.go.structs import Decoded, decode
from noxu.apiserver.manifests import NO_KIND, Document, is_crd, joined, split
from noxu.apiserver.records import NamedTuple
from noxu.apiserver.schema.skeleton import restriction_1_violations, skeleton
from noxu.apiserver.values import Object

RESTRICTION_1: Final = "Forbidden: properties and additionalProperties or patternProperties in one skeleton"
_VERSION_SCHEMA: Final = "schema.openAPIV3Schema"
_SHARED_SCHEMA: Final = "spec.validation.openAPIV3Schema"
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"


class Schema(NamedTuple):
    """A schema, the CRD and version that it belongs to, and its path in the CRD. All of them are "" for a bare schema."""

    value: Object
    crd: str = ""
    version: str = ""
    path: FieldPath = ""

    @property
    def title(self) -> str:
        return f"{self.crd} {self.version}".strip()


Former = Mapping[tuple[str, str], Schema]
"""The schemas of former CRDs, by CRD and version."""


class Printed(NamedTuple):
    """A document with its schemas, and for each schema the findings about it."""

    checked: Checked
    schemas: Sequence[tuple[Schema, Sequence[Finding]]] = ()


def run(options: argparse.Namespace) -> int:
    """Exit status 0: printed; 1: Restriction 1 is violated, or a schema is invalid; 2: an input cannot be read."""
    former = {
        (schema.crd, schema.version): schema
        for document in inputs.former(options.old)
        for schema in _schemas_in(document)
    }
    printed = [_printed(options, document, former) for document in inputs.read(options)]
    if not any(each.schemas or each.checked.findings for each in printed) and not options.allow_empty:
        printed.append(Printed(inputs.nothing(options, "no schema found")))
    checked = [each.checked for each in printed]
    schemas = [(each.checked, *pair) for each in printed for pair in each.schemas]
    if options.output in reports.FORMATS:
        print(reports.FORMATS[options.output](checked, "skeleton"))
    elif options.output == "json":
        print(codec.pretty([_as_json(*each) for each in schemas], sort_keys=False).decode())
        reports.print_findings(each for each in checked if each.result == "unreadable")
    else:
        print("---\n".join(_as_yaml(schema) for _, schema, _ in schemas), end="")
        reports.print_findings(checked)
    return findings.exit_status(checked)


def _as_yaml(schema: Schema) -> str:
    title = f"# {schema.title}\n" if schema.title else ""
    return title + codec.to_yaml(skeleton(schema.value)).decode()


def _as_json(checked: Checked, schema: Schema, found: Sequence[Finding]) -> Object:
    return {
        "file": checked.document.file,
        "document": checked.document.number,
        "crd": schema.crd,
        "version": schema.version,
        "skeleton": skeleton(schema.value),
        "violations": [finding.field for finding in found if finding.rule == "restriction-1"],
        "findings": findings.as_json(found),
    }


# -- findings ---------------------------------------------------------------------------------------------------------


def _printed(options: argparse.Namespace, document: Document, former: Former) -> Printed:
    bare = _bare_schema(document)
    certain = inputs.decided(options, document) if bare is None else None
    if certain is not None:
        return Printed(certain)
    if bare is None and not is_crd(document.value):
        return Printed(Checked(document, inputs.title(document), "skipped"))
    title = inputs.title(document)
    if bare is not None:
        document, title = document._replace(error=""), ""  # a schema is no object, and needs no kind
    decoded = _decoded(document.value) if bare is None else decode(types.SCHEMA, bare)
    if decoded.error:
        errors = findings.of_errors(document, [invalid(ROOT, OMIT, decoded.error)])
        return Printed(Checked(document, title, "refused", errors))
    schemas = list(_schemas_of_crd(decoded.value)) if bare is None else [Schema(decoded.value)]
    level: findings.Level = "error" if options.strict else "warning"
    unknown = [findings.finding(document, level, "unknown-field", "unknown field", path) for path in decoded.unknown]
    found = [
        (schema, [*_restriction_1(document, schema), *_lost(document, schema, former, level)]) for schema in schemas
    ]
    everything = [*unknown, *(finding for _, some in found for finding in some)]
    refused = any(finding.level == "error" for finding in everything)
    return Printed(Checked(document, title, "refused" if refused else "valid", everything), found)


def _restriction_1(document: Document, schema: Schema) -> Iterator[Finding]:
    for path in restriction_1_violations(schema.value):
        where = joined(schema.path, path)
        why = RESTRICTION_1 if where else f"the root: {RESTRICTION_1}"
        yield findings.finding(document, "error", "restriction-1", why, where)


def _lost(document: Document, schema: Schema, former: Former, level: findings.Level) -> Iterator[Finding]:
    """Fields that the former schema kept, and that are pruned now."""
    before = former.get((schema.crd, schema.version))
    if before is not None:
        why = "the former schema keeps this field; now it is pruned"
        for path in _lost_fields(skeleton(before.value), skeleton(schema.value), schema.value, schema.path):
            yield findings.finding(document, level, "no-longer-kept", why, path)


def _lost_fields(old: Object, new: Object, schema: Object, path: FieldPath) -> Iterator[FieldPath]:
    """The properties in one skeleton that another one prunes, whose `schema` may preserve unknown fields."""
    values, below = new.get("additionalProperties"), joined(path, "properties")
    for name, inner in (old.get("properties") or {}).items():
        kept = (new.get("properties") or {}).get(name, values if isinstance(values, dict) else None)
        if kept is not None:
            yield from _lost_fields(inner, kept, (schema.get("properties") or {}).get(name, {}), f"{below}[{name}]")
        elif not (schema.get(_PRESERVE) or values is True):
            yield f"{below}[{name}]"
    for keyword in ("items", "additionalProperties"):
        if isinstance(old.get(keyword), dict) and isinstance(new.get(keyword), dict):
            inner = schema.get(keyword)
            below = joined(path, keyword)
            yield from _lost_fields(old[keyword], new[keyword], inner if isinstance(inner, dict) else {}, below)


# -- schemas ----------------------------------------------------------------------------------------------------------


def _schemas_in(document: Document) -> Iterator[Schema]:
    """The schemas of a document that is a valid CRD."""
    if is_crd(document.value) and not (decoded := _decoded(document.value)).error:
        yield from _schemas_of_crd(decoded.value)


def _bare_schema(document: Document) -> Object | None:
    """The schema in a document that is no object; None if there is none."""
    if document.error != NO_KIND or document.text is None or document.path:
        return None
    value = next(part.decoded.value for part in split(document.text.body) if part.decoded)
    return value if isinstance(value, dict) else None


def _decoded(crd: Object) -> Decoded:
    return v1beta1.decode(crd) if v1beta1.is_v1beta1(crd) else types.decode(crd)


def _schemas_of_crd(crd: Object) -> Iterator[Schema]:
    spec, name = crd["spec"], crd["metadata"].get("name", "")
    if (schema := (spec.get("validation") or {}).get("openAPIV3Schema")) is not None:
        yield Schema(schema, name, "", _SHARED_SCHEMA)
    for n, version in enumerate(spec.get("versions") or []):
        if (schema := (version.get("schema") or {}).get("openAPIV3Schema")) is not None:
            yield Schema(schema, name, version["name"], f"spec.versions[{n}].{_VERSION_SCHEMA}")
