"""`noxu validate --stored`: find the stored objects that their current CRDs refuse, and fields that pruning hides.

The objects are in a data directory that no server uses, in etcd, or in any running Kubernetes API server. Over the API,
fields that pruning hides cannot be detected: the server leaves them out. CRDs given as files replace the stored ones,
which shows the effect of a change before it is made.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from noxu.api import codec
from noxu.api.field import FieldError
from noxu.cel import SchemaRules
from noxu.commands import progress
from noxu.commands.api_client import ApiClient, RequestError
from noxu.commands.findings import FOUND, UNREADABLE
from noxu.commands.places import StoreState, UnusablePlace, opened
from noxu.config import StartError
from noxu.crd import conditions, types
from noxu.crd.lint import lint_crd
from noxu.crd.types import served_versions, storage_version
from noxu.manifests import loading
from noxu.manifests.documents import LoadError, checked, is_crd, read_paths
from noxu.registry import storage_form
from noxu.registry.builtin import definitions_resource
from noxu.registry.custom import versions_of
from noxu.registry.resource import Versions
from noxu.registry.storage_form import as_json
from noxu.registry.stored_object import StoredObject, object_at
from noxu.registry.strategies import revalidate
from noxu.schema.structural import NoStructuralForm
from noxu.values import Json, Object
from noxu_storage.types import (
    Corrupt,
    OpenError,
    Prefix,
    Progress,
    Unavailable,
)

HIDDEN_UNKNOWN: Final = "fields that pruning hides cannot be detected over the API: the server leaves them out"


class ValidationError(Exception):
    """The objects cannot be validated; the message says why and what to do."""


class RefusedDefinition(Exception):
    """Servers would refuse a CRD in the files; the message says why."""


class ObjectsOfDefinitions(Protocol):
    """Where the objects are. Methods raise RequestError, Corrupt."""

    sees_hidden: bool
    """Whether objects are returned unpruned, with the fields that reads hide."""

    def definitions(self) -> Iterator[Object]:
        """All CRDs."""
        ...

    def objects(self, crd: Object) -> Iterator[Object]:
        """The custom resources of a CRD, with their resourceVersions."""
        ...

    def count(self, crds: Iterable[Object]) -> int:
        """The number of their custom resources, 0 if it is not known."""
        ...

    def unreadable(self) -> list[str]:
        """Messages about objects that could not be read."""
        ...


class StoredProblem(NamedTuple):
    """An object that is invalid, or has hidden fields."""

    crd: str
    api_version: str
    kind: str
    namespace: str
    name: str
    resource_version: str
    errors: list[FieldError]
    hidden: list[str]


@dataclass
class StoredReport:
    objects: int = 0
    problems: list[StoredProblem] = field(default_factory=list)
    by_crd: dict[str, int] = field(default_factory=dict)
    """How many objects each CRD has, if any."""
    remarks: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """What could not be validated."""

    @property
    def invalid(self) -> int:
        return sum(bool(problem.errors) for problem in self.problems)

    @property
    def with_hidden(self) -> int:
        return sum(bool(problem.hidden) for problem in self.problems)


def run(options: argparse.Namespace) -> int:
    """Exit status 0: all objects are valid; 1: some are invalid; 2: some cannot be validated."""
    report = StoredReport()
    try:
        replacements = definitions_in(options.files, report, options.command)
        with source_of(options) as source, progress.shown("validate", quiet=options.quiet) as show:
            _validate_all(source, replacements, report, show)
            report.failures += source.unreadable()
            sees_hidden = source.sees_hidden or bool(replacements)
    except RefusedDefinition as error:
        print(f"noxu: {error}", file=sys.stderr)
        return FOUND
    except (ValidationError, RequestError, StartError, OpenError, Corrupt, Unavailable, LoadError) as error:
        print(f"noxu: {error}", file=sys.stderr)
        return UNREADABLE
    if not sees_hidden:
        report.remarks.append(HIDDEN_UNKNOWN)
    for remark in report.remarks + report.failures:
        print(f"noxu: {remark}", file=sys.stderr)
    if options.output == "json":
        print(codec.pretty(_as_json(report, sees_hidden), sort_keys=False).decode())
    else:
        _print_report(report)
    return UNREADABLE if report.failures else FOUND if report.invalid else 0


@contextlib.contextmanager
def source_of(options: argparse.Namespace) -> Iterator[ObjectsOfDefinitions]:
    try:
        with opened(options, "validate in it") as place:
            yield ServedCustomResources(place) if isinstance(place, ApiClient) else StoredCustomResources(place)
    except UnusablePlace as error:
        raise ValidationError(str(error)) from None


# -- where the objects are --------------------------------------------------------------------------------------------


class StoredCustomResources:
    """What a data directory that no server uses, or etcd, has stored."""

    sees_hidden = True

    def __init__(self, snapshot: StoreState) -> None:
        self._snapshot = snapshot
        self._undecodable: list[str] = []

    def definitions(self) -> Iterator[Object]:
        resource = definitions_resource().storage
        for key, value, revision in self._snapshot.values(Prefix(resource.collection)):
            yield object_at(StoredObject(key, value, revision), resource)

    def objects(self, crd: Object) -> Iterator[Object]:
        for key, stored, revision in self._snapshot.values(_prefix(crd)):
            try:
                value = codec.decode_stored(as_json(stored))
                value["metadata"]["resourceVersion"] = str(revision)
            except (ValueError, LookupError, TypeError):  # what another program has written
                self._undecodable.append(f"{' '.join(key)}: cannot be decoded; see `noxu check`")
            else:
                yield value

    def count(self, crds: Iterable[Object]) -> int:
        return sum(self._snapshot.count(_prefix(crd)) for crd in crds)

    def unreadable(self) -> list[str]:
        return [
            *(
                f"{' '.join(key)}: corrupt at revision {revision}; see `noxu check`"
                for key, revision in self._snapshot.corrupt.items()
            ),
            *self._undecodable,
        ]


def _prefix(crd: Object) -> Prefix:
    """That of the keys of a CRD's custom resources."""
    return Prefix(storage_form.custom_collection(crd["spec"]["group"], crd["spec"]["names"]["plural"]))


class ServedCustomResources:
    """A server, over its API."""

    sees_hidden = False

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    def definitions(self) -> Iterator[Object]:
        for crd in self._client.list(f"/apis/{types.GROUP}/{types.VERSION}/{types.RESOURCE}"):
            yield types.default(types.decode(crd).value)

    def objects(self, crd: Object) -> Iterator[Object]:
        version = storage_version(crd)
        served = served_versions(crd)
        if not served:
            return iter(())
        spec = crd["spec"]
        version = version if version in served else served[0]
        return self._client.list(f"/apis/{spec['group']}/{version}/{spec['names']['plural']}")

    def count(self, crds: Iterable[Object]) -> int:
        return 0

    def unreadable(self) -> list[str]:
        return []


# -- validation -------------------------------------------------------------------------------------------------------


def definitions_in(files: list[Path], report: StoredReport, command: str) -> dict[str, Object]:
    """The CRDs in files, by name; `command` as for `read_paths`. Raises LoadError."""
    definitions = {}
    for document in loading.ready(checked(read_paths(files, command=command))):
        if not is_crd(document.value):
            report.remarks.append(f"{document.source}: {document.kind} {document.name} is not a CRD, and is ignored")
            continue
        if violations := lint_crd(document.value, checkers=SchemaRules):
            listed = "".join(f"\n  {violation}" for violation in violations)
            raise RefusedDefinition(f"{document.source}: servers would refuse {document.name}:{listed}")
        definitions[document.name] = types.default(types.decode(document.value).value)
    return definitions


def _validate_all(
    source: ObjectsOfDefinitions, replacements: Mapping[str, Object], report: StoredReport, show: Progress
) -> None:
    stored = {crd["metadata"]["name"]: crd for crd in source.definitions()}
    report.remarks += [f"{name}: the CRD does not exist, so it has no objects" for name in replacements.keys() - stored]
    total = source.count(stored.values())
    for name, crd in sorted(stored.items()):
        if not conditions.is_true(crd, conditions.ESTABLISHED):
            continue
        new = replacements.get(name)
        definition = crd if new is None else {**new, "status": {**new["status"], "acceptedNames": new["spec"]["names"]}}
        try:
            objects = _shown(source.objects(crd), report, show, total)
            _validate_objects(objects, name, versions_of(definition, 0), report)
        except NoStructuralForm as error:
            report.failures.append(
                f"{name}: its objects cannot be validated, because its schema is not structural: {error}"
            )


def _shown(objects: Iterator[Object], report: StoredReport, show: Progress, total: int) -> Iterator[Object]:
    """The objects, showing how many of all have been validated."""
    for value in objects:
        show(report.objects, total)
        yield value


def _validate_objects(objects: Iterator[Object], crd: str, versions: Versions, report: StoredReport) -> None:
    for value in objects:
        metadata = value["metadata"]
        named = metadata.get("namespace") or "", metadata.get("name") or "", metadata.get("resourceVersion") or ""
        result = revalidate(value, versions)
        report.objects += 1
        report.by_crd[crd] = report.by_crd.get(crd, 0) + 1
        if result.errors or result.hidden:
            resource = result.resource
            report.problems.append(
                StoredProblem(crd, resource.api_version, resource.kind, *named, result.errors, result.hidden)
            )


# -- output -----------------------------------------------------------------------------------------------------------


def _print_report(report: StoredReport) -> None:
    for problem in report.problems:
        namespace = f"{problem.namespace}/" if problem.namespace else ""
        state = "no longer validates" if problem.errors else "validates"
        print(f"{problem.kind} {namespace}{problem.name} ({problem.api_version}): {state}")
        for error in problem.errors:
            print(f"  {error}".replace("\n", "\n  "))
        for path in problem.hidden:
            print(f"  hidden by pruning: {path}")
    hiding = f", {report.with_hidden} with fields hidden by pruning" if report.with_hidden else ""
    validated = f"{_count(report.objects, 'object')} of {_count(len(report.by_crd), 'CRD')}"
    print(f"{validated}: {report.invalid} no longer validate{hiding}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _as_json(report: StoredReport, sees_hidden: bool) -> Json:
    return {
        "problems": [_problem_as_json(problem, sees_hidden) for problem in report.problems],
        "remarks": report.remarks,
        "failures": report.failures,
        "summary": {
            "objects": report.objects,
            "invalid": report.invalid,
            "hiding": report.with_hidden if sees_hidden else None,
        },
    }


def _problem_as_json(problem: StoredProblem, sees_hidden: bool) -> Object:
    return {
        "crd": problem.crd,
        "apiVersion": problem.api_version,
        "kind": problem.kind,
        "namespace": problem.namespace,
        "name": problem.name,
        "resourceVersion": problem.resource_version,
        "valid": not problem.errors,
        "errors": [{"field": error.field, "reason": error.reason, "message": error.body} for error in problem.errors],
        "hidden": problem.hidden if sees_hidden else None,
    }
