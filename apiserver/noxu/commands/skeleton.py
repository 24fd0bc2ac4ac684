"""`noxu skeleton`: print the skeletons of schemas, as the provisional pruning KEP defines them.

A skeleton is a schema without value validations. It is printed for each schema of each CRD, or for a bare OpenAPI schema.
Where a value would be a struct and a map at the same time, it is ambiguous what to prune: these violations of the KEP's
Restriction 1 are errors. With former CRDs, fields that their skeletons have and the new ones lack are warnings.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.api.field import OMIT, ROOT, invalid
from noxu.api.field import Path as FieldPath
from noxu.commands import findings, reports, results
from noxu.commands.findings import Checked, Finding
from noxu.commands.results import Check, Results, Shard
from noxu.crd import types, v1beta1
from noxu.go.structs import DecodedStruct, decode
from noxu.manifests.documents import NO_KIND, Document, is_crd, joined, split
from noxu.manifests.manifest_cache import Cache, user_directory
from noxu.schema.skeleton import restriction_1_violations, skeleton
from noxu.values import Json, Object
from noxu_storage.types import Progress

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


Former = Mapping[tuple[str, str], Schema]
"""The schemas of former CRDs, by CRD and version."""


class Skeleton(NamedTuple):
    """The skeleton of a schema, and what is found in the schema."""

    value: Object
    crd: str
    version: str
    findings: Sequence[Finding]

    @property
    def title(self) -> str:
        return f"{self.crd} {self.version}".strip()


class Printed(NamedTuple):
    """A document with the skeletons of its schemas."""

    checked: Checked
    skeletons: Sequence[Skeleton] = ()


def run(options: argparse.Namespace) -> int:
    """Exit status 0: printed; 1: Restriction 1 is violated, or a schema is invalid; 2: an input cannot be read."""
    cache = Cache(None if options.no_cache else user_directory())
    documents, old = findings.read(options, cache.split), findings.former(options.old, cache.split)
    by_document, unsure = Results[Printed](), []
    for document in documents:
        if (certain := _certain(options, document)) is not None:
            by_document[id(document)] = Printed(certain)
        else:
            unsure.append(document)
    results.add(by_document, _check(options), results.by_file(unsure, old), cache, options.jobs)
    cache.tidy()
    printed = by_document.of(documents)
    if not any(item.skeletons or item.checked.findings for item in printed) and not options.allow_empty:
        printed.append(Printed(findings.nothing(options.files, "no schema found")))
    checked = [item.checked for item in printed]
    skeletons = [(item.checked, skeleton) for item in printed for skeleton in item.skeletons]
    if options.output in reports.FORMATS:
        print(reports.FORMATS[options.output](checked, "skeleton"))
    elif options.output == "json":
        print(codec.pretty([_as_json(*pair) for pair in skeletons], sort_keys=False).decode())
        reports.print_findings(outcome for outcome in checked if outcome.result == "unreadable")
    else:
        print("---\n".join(_as_yaml(item) for _, item in skeletons), end="")
        reports.print_findings(checked)
    return findings.exit_status(checked)


def _as_yaml(shown: Skeleton) -> str:
    title = f"# {shown.title}\n" if shown.title else ""
    return title + codec.to_yaml(shown.value).decode()


def _as_json(checked: Checked, shown: Skeleton) -> Object:
    return {
        "file": checked.document.file,
        "document": checked.document.number,
        "crd": shown.crd,
        "version": shown.version,
        "skeleton": shown.value,
        "violations": [finding.field for finding in shown.findings if finding.rule == "restriction-1"],
        "findings": findings.as_json(shown.findings),
    }


# -- findings ---------------------------------------------------------------------------------------------------------


def _certain(options: argparse.Namespace, document: Document) -> Checked | None:
    """The result that is certain before the schemas of a document are looked at."""
    if _bare_schema(document) is not None:
        return None
    skipped = None if is_crd(document.value) else Checked(document, findings.title(document), "skipped")
    return findings.decided(options, document) or skipped


def _check(options: argparse.Namespace) -> Check[Printed]:
    return Check("skeleton", partial(_find, options.strict), options.strict, _printed_as_json, _printed_from_json)


def _find(strict: bool, shard: Shard, _: Progress) -> list[tuple[Document, Printed]]:
    former = {(schema.crd, schema.version): schema for document in shard.old for schema in _schemas_in(document)}
    return [(document, _printed(document, former, "error" if strict else "warning")) for document in shard.documents]


def _printed_as_json(printed: Printed) -> Json:
    checked, skeletons = printed
    listed = list(map(findings.plain_values, checked.findings))
    return [
        checked.title,
        checked.result,
        listed,
        [[*item[:-1], list(map(findings.plain_values, item.findings))] for item in skeletons],
    ]


def _printed_from_json(document: Document, value: Json) -> Printed:
    """Raises TypeError, ValueError for what `_printed_as_json` has not made."""
    title, result, listed, skeletons = value
    return Printed(
        Checked(document, title, result, list(map(findings.from_plain, listed))),
        [
            Skeleton(value, crd, version, list(map(findings.from_plain, some)))
            for value, crd, version, some in skeletons
        ],
    )


def _printed(document: Document, former: Former, level: findings.Level) -> Printed:
    bare = _bare_schema(document)
    title = findings.title(document)
    if bare is not None:
        document, title = document._replace(error=""), ""  # a schema is no object, and needs no kind
    decoded = _decoded(document.value) if bare is None else decode(types.SCHEMA, bare)
    if decoded.error:
        errors = findings.of_errors(document, [invalid(ROOT, OMIT, decoded.error)])
        return Printed(Checked(document, title, "refused", errors))
    schemas = list(_schemas_of_crd(decoded.value)) if bare is None else [Schema(decoded.value)]
    unknown = [findings.finding(document, level, "unknown-field", "unknown field", path) for path in decoded.unknown]
    violations = [
        (schema, [*_restriction_1(document, schema), *_lost(document, schema, former, level)]) for schema in schemas
    ]
    everything = [*unknown, *(finding for _, some in violations for finding in some)]
    refused = any(finding.level == "error" for finding in everything)
    skeletons = [Skeleton(skeleton(schema.value), schema.crd, schema.version, some) for schema, some in violations]
    return Printed(Checked(document, title, "refused" if refused else "valid", everything), skeletons)


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
    """The schemas of a CRD; none if it cannot be decoded."""
    if not (decoded := _decoded(document.value)).error:
        yield from _schemas_of_crd(decoded.value)


def _bare_schema(document: Document) -> Object | None:
    """The schema in a document that is no object; None if there is none."""
    if document.error != NO_KIND or document.text is None or document.path:
        return None
    value = next(part.decoded.value for part in split(document.text.body) if part.decoded)
    return value if isinstance(value, dict) else None


def _decoded(crd: Object) -> DecodedStruct:
    return v1beta1.decode(crd) if v1beta1.is_v1beta1(crd) else types.decode(crd)


def _schemas_of_crd(crd: Object) -> Iterator[Schema]:
    spec, name = crd["spec"], crd["metadata"].get("name", "")
    if (schema := (spec.get("validation") or {}).get("openAPIV3Schema")) is not None:
        yield Schema(schema, name, "", _SHARED_SCHEMA)
    for n, version in enumerate(spec.get("versions") or []):
        if (schema := (version.get("schema") or {}).get("openAPIV3Schema")) is not None:
            yield Schema(schema, name, version["name"], f"spec.versions[{n}].{_VERSION_SCHEMA}")
