"""The schema of a kind as a tree, with what its rules cost and how stored objects use it; and what is wrong with a definition.

    GET  /_noxu/schema?type=widgets              of the definition that is stored
    POST /_noxu/schema {"definition": "…"}       of one that is not: JSON, or a text of YAML; nothing is stored

The findings are those of `noxu lint`, with its advice. How objects use a schema is counted over those that are stored, as they
are read at that version, up to MAX_COUNTED. What writes have shown is beside it, once that is counted (`noxu.control.coverage_calls`).
"""

from __future__ import annotations

import asyncio
from typing import Final

from noxu import cel
from noxu.api.errors import ApiError, bad_request
from noxu.api.field import FieldError
from noxu.control.arguments import INTEGER, TEXT, Argument
from noxu.control.calls import ControlCall, ControlRoute
from noxu.control.coverage_calls import ServerCoverage
from noxu.control.explaining import NO_DEFINITION, WRITTEN, decoded
from noxu.control.schema_tree import add_coverage, add_outcomes, count, tree
from noxu.control_plane import ControlPlane, resource_of
from noxu.coverage.counting import CountedWrite, add, counts
from noxu.coverage.trees import version_trees
from noxu.crd import lint
from noxu.crd import types as crd
from noxu.manifests.documents import is_crd
from noxu.registry import kind_names
from noxu.registry.conversion.converters import entries_at
from noxu.registry.offload import LOOP_LIMIT, offload
from noxu.registry.resource import Resource, prepared
from noxu.registry.stored_object import StoredObject, key_of, object_at
from noxu.schema.lint import explain as advice_on
from noxu.schema.structural import Structural
from noxu.values import Json, Object

MAX_COUNTED: Final = 10_000
DEFAULT_COUNTED: Final = 1_000
MAX_FINDINGS: Final = 200
_PORTION: Final = 100  # objects
_PORTION_BYTES: Final = 512 * 1024


async def stored_schema(call: ControlCall) -> Object:
    """The tree of a stored definition. Raises ApiError, StoreError."""
    plane = call.plane
    try:
        resource = kind_names.find(plane.served_resources.current, call.query["type"])
    except LookupError as error:
        raise ApiError(404, str(error), "NotFound", {}) from None
    if not resource.is_custom:
        raise bad_request(f"{resource.group_resource} is no custom resource: the schema of a built-in kind has no tree")
    definitions = resource_of(plane.served_resources, crd.GROUP, crd.RESOURCE)
    entry = (await plane.reader.collection(definitions)).entries[key_of(definitions, "", str(resource.group_resource))]
    definition = await offload(len(entry.stored), object_at, entry, definitions)
    answer = await _answer(plane, definition, call.query["version"] or resource.version, call.query["counted"])
    coverage = call.control.part(ServerCoverage)
    if coverage.has_begun and answer["tree"] is not None:
        schema = _schema_of(definition, answer["version"])
        answer["writes"] = await offload(LOOP_LIMIT + 1, _add_writes, answer, schema, await coverage.collected())
    return answer


async def sent_schema(call: ControlCall) -> Object:
    """The tree of a definition that is sent, and the findings about it. Raises ApiError, StoreError."""
    document = await decoded(call.body["definition"], "definition")
    if document is None or document.error or not is_crd(document.value):
        why = NO_DEFINITION if document is None or not document.error else document.error
        return {**described({}), "findings": [{"level": "error", "path": "", "message": why, "advice": ""}]}
    return await _answer(call.plane, document.value, call.body["version"], call.body["counted"])


async def _answer(plane: ControlPlane, definition: Object, version: str, counted: int) -> Object:
    if not 0 <= counted <= MAX_COUNTED:
        raise bad_request(f"counted: it is between 0 and {MAX_COUNTED}")
    answer = await offload(LOOP_LIMIT + 1, described, definition, version)
    live = plane.served_resources.current.find(answer["group"], answer["version"], answer["plural"])
    if live is not None and counted and answer["tree"] is not None:
        answer["counted"] = await _count_stored(plane, live, answer["tree"], counted)
    return answer


def _schema_of(definition: Object, version: str) -> Object:
    [found] = [each for each in definition["spec"]["versions"] if each["name"] == version]
    schema: Object = found["schema"]["openAPIV3Schema"]
    return schema


# -- what writes show --------------------------------------------------------------------------------------------------


def _add_writes(answer: Object, schema: Object, collected: Object) -> int:
    """Add what writes have shown to the tree of an answer, in place. Returns in how many writes."""
    of_kind = collected["counts"].get(answer["name"], {})
    [covered] = version_trees(answer["name"], {answer["version"]: schema}, of_kind)
    add_coverage(answer["tree"], covered)
    return int(covered["writes"])


# -- a definition ------------------------------------------------------------------------------------------------------


class CostsOfRules:
    """Makes the checkers of schemas (`crd.schemas.RuleCheckers`), and knows afterwards what their rules cost."""

    def __init__(self) -> None:
        self._made: list[cel.SchemaRules] = []

    def __call__(
        self, root: Structural, *, stored_rules: frozenset[str], stored_messages: frozenset[str], limit_each: bool
    ) -> cel.SchemaRules:
        made = cel.SchemaRules(root, stored_rules=stored_rules, stored_messages=stored_messages, limit_each=limit_each)
        self._made.append(made)
        return made

    def as_written(self, definition: Object) -> dict[str, int]:
        """The estimates by the paths of the rules in a definition."""
        return {lint.as_written(definition, path): cost for made in self._made for path, cost in made.costs.items()}


def described(definition: Object, version: str = "") -> Object:
    """The tree of one version, "": the one that is stored; and the findings about all of the definition."""
    costs = CostsOfRules()
    violations = lint.lint_crd(definition, checkers=costs) if definition else []
    findings = [
        *(_finding(definition, violation, _advice(definition, violation)) for violation in violations),
        *(_finding(definition, error, advice_on(error)) for error in lint.more_errors(definition)),
        *(
            {"level": "warning", "path": remark.path, "message": remark.message, "advice": remark.advice}
            for remark in lint.remarks(definition)
        ),
    ]
    spec = definition.get("spec") if isinstance(definition.get("spec"), dict) else {}
    assert isinstance(spec, dict)
    names = spec.get("names") if isinstance(spec.get("names"), dict) else {}
    assert isinstance(names, dict)
    versions = [each for each in spec.get("versions") or () if isinstance(each, dict)]
    number, shown = _version(versions, version)
    schema = (shown.get("schema") or {}).get("openAPIV3Schema")
    where = f"spec.versions[{number}].schema.openAPIV3Schema"
    return {
        "name": str((definition.get("metadata") or {}).get("name") or ""),
        "group": str(spec.get("group") or ""),
        "plural": str(names.get("plural") or ""),
        "kind": str(names.get("kind") or ""),
        "scope": str(spec.get("scope") or ""),
        "version": str(shown.get("name") or ""),
        "versions": [str(each.get("name")) for each in versions],
        "findings": findings[:MAX_FINDINGS],
        "tree": tree(schema, where, costs.as_written(definition)) if isinstance(schema, dict) else None,
    }


def _version(versions: list[Object], wanted: str) -> tuple[int, Object]:
    for number, version in enumerate(versions):
        if version.get("name") == wanted or (not wanted and version.get("storage")):
            return number, version
    return (0, versions[0]) if versions else (0, {})


def _advice(definition: Object, violation: FieldError) -> str:
    if lint.EXCEEDS in violation.detail:
        path = lint.as_written(definition, violation.field)
        if bounds := lint.advice_on_bounds(definition, path, cel.SchemaRules):
            return bounds
    return advice_on(violation)


def _finding(definition: Object, error: FieldError, advice: str) -> Object:
    path = lint.as_written(definition, error.field)
    return {"level": "error", "path": path, "message": error.body, "advice": advice}


# -- stored objects ----------------------------------------------------------------------------------------------------


async def _count_stored(plane: ControlPlane, live: Resource, shown: Json, most: int) -> Object:
    """Count how stored objects use a tree, which is changed in place. Returns how many were counted, and how many are left."""
    await prepared(live.versions)
    entries = list((await plane.reader.collection(live)).entries.values())
    portion: list[StoredObject] = []
    outcomes: Object = {}
    size = 0
    for number, entry in enumerate(entries[:most], 1):
        portion.append(entry)
        size += len(entry.stored)
        if len(portion) == _PORTION or size > _PORTION_BYTES or number == min(most, len(entries)):
            served = await entries_at(portion, live)
            await offload(LOOP_LIMIT + 1, _count, shown, outcomes, served, live)
            portion, size = [], 0
            await asyncio.sleep(0)
    add_outcomes(shown, outcomes)
    return {"objects": min(most, len(entries)), "remaining": max(0, len(entries) - most)}


def _count(shown: Json, outcomes: Object, entries: list[StoredObject], live: Resource) -> None:
    """Count in a tree and in the outcomes of its rules, both in place."""
    schema = live.schema
    for entry in entries:
        value = object_at(entry, live)
        count(shown, [value])
        if schema is not None and live.rules is not None:
            add(outcomes, counts(CountedWrite(schema, live.rules, value, None, [value]))["rules"])


_VERSION: Final = Argument(TEXT, "one of its versions; none: the one that is stored", "")
_COUNTED: Final = Argument(INTEGER, f"how many stored objects are counted, at most {MAX_COUNTED}", DEFAULT_COUNTED)
ROUTES: Final = (
    ControlRoute(
        "GET",
        "/_noxu/schema",
        stored_schema,
        "Show the schema of a kind as a tree: rules with their costs, and how stored objects use it.",
        {
            "type": Argument(TEXT, "a custom kind, by any of its names", required=True),
            "version": _VERSION,
            "counted": _COUNTED,
        },
    ),
    ControlRoute(
        "POST",
        "/_noxu/schema",
        sent_schema,
        "Likewise, of a definition that is not stored, with what is wrong with it.",
        body={
            "definition": Argument(WRITTEN, "a CustomResourceDefinition", required=True),
            "version": _VERSION,
            "counted": _COUNTED,
        },
    ),
)
