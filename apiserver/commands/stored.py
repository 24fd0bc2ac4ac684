"""`noxu validate --stored`: which stored objects do the CRDs of today refuse, and what of them is hidden?

The objects are in a data directory of which no server runs, or in a running server, of whatever make. From outside
there is no seeing what pruning hides: the server has taken it out. CRDs given as files are judged by in place of the
stored ones, which tells what a change would do before it is made.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from apiserver import loading
from apiserver.api import codec
from apiserver.api.field import FieldError
from apiserver.api.types import Json, Object
from apiserver.commands.cluster import Cluster, Unreachable, access
from apiserver.config import DEFAULT_DATA
from apiserver.crd import conditions, defaults, types
from apiserver.crd.versions import served_versions, storage_version
from apiserver.manifests import LoadError, checked, is_crd, read_paths
from apiserver.registry.custom import versions_of
from apiserver.registry.definition import definitions_resource
from apiserver.registry.entry import Entry, object_at
from apiserver.registry.resource import Versions
from apiserver.registry.verdict import judge
from apiserver.schema.structural import NoStructuralForm
from storage.snapshot import Snapshot, snapshot
from storage.types import Corrupt, Prefix, Unusable

UNSEEN: Final = "what pruning hides cannot be seen from outside: the server leaves it out"


class Failure(Exception):
    """It cannot be told which objects are valid; the message says why and what to do."""


class Source(Protocol):
    """Where the objects are. Methods raise Failure."""

    sees_hidden: bool
    """Are objects given as they are stored?"""

    def definitions(self) -> Iterator[Object]:
        """All CRDs."""
        ...

    def objects(self, crd: Object) -> Iterator[Object]:
        """The custom resources of a CRD, with their resourceVersions."""
        ...

    def damaged(self) -> list[str]:
        """What could not be read."""
        ...


class Problem(NamedTuple):
    """An object that there is something to say of."""

    crd: str
    api_version: str
    kind: str
    namespace: str
    name: str
    resource_version: str
    errors: list[FieldError]
    hidden: list[str]


@dataclass
class Report:
    objects: int = 0
    problems: list[Problem] = field(default_factory=list)
    by_crd: dict[str, int] = field(default_factory=dict)
    """How many objects each CRD has, if any."""
    remarks: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """What could not be judged."""

    @property
    def invalid(self) -> int:
        return sum(bool(one.errors) for one in self.problems)

    @property
    def hiding(self) -> int:
        return sum(bool(one.hidden) for one in self.problems)


def run(given: argparse.Namespace) -> int:
    """0: everything validates; 1: something does not, or cannot be judged."""
    report = Report()
    try:
        replacing = _definitions_in(given.files, report)
        with _source(given) as source:
            _judge_all(source, replacing, report)
            report.failures += source.damaged()
            sees_hidden = source.sees_hidden or bool(replacing)
    except (Failure, Unreachable, Unusable, Corrupt, LoadError) as error:
        print(f"noxu: {error}", file=sys.stderr)
        return 1
    if not sees_hidden:
        report.remarks.append(UNSEEN)
    for remark in report.remarks + report.failures:
        print(f"noxu: {remark}", file=sys.stderr)
    if given.output == "json":
        print(codec.pretty(_as_json(report, sees_hidden), sort_keys=False).decode())
    else:
        _tell(report)
    return 1 if report.invalid or report.failures else 0


@contextlib.contextmanager
def _source(given: argparse.Namespace) -> Iterator[Source]:
    if given.server or given.kubeconfig:
        with contextlib.closing(Cluster(access(given))) as cluster:
            yield Running(cluster)
        return
    directory = given.data or DEFAULT_DATA
    try:
        with snapshot(directory / "noxu.db") as found:
            yield AtRest(found)
    except Unusable as error:
        hint = ""
        if "in use" in str(error):
            hint = f"; ask it with --kubeconfig {directory / 'kubeconfig'}, or stop it"
        elif not (directory / "noxu.db").exists():
            hint = "; name a data directory with --data, or a running server with --server or --kubeconfig"
        raise Failure(f"{error}{hint}") from None


# -- where the objects are --------------------------------------------------------------------------------------------


class AtRest:
    """A data directory."""

    sees_hidden = True

    def __init__(self, found: Snapshot) -> None:
        self._found = found

    def definitions(self) -> Iterator[Object]:
        resource = definitions_resource().storage
        for one in self._found.values(Prefix(resource.collection)):
            yield object_at(Entry(one.key, one.value, one.revision), resource)

    def objects(self, crd: Object) -> Iterator[Object]:
        for one in self._found.values(Prefix(f"{crd['spec']['group']}/{crd['spec']['names']['plural']}")):
            value = codec.decode_stored(one.value)
            value["metadata"]["resourceVersion"] = str(one.revision)
            yield value

    def damaged(self) -> list[str]:
        return [
            f"{' '.join(key)}: damaged at revision {revision}; `noxu check` says more"
            for key, revision in self._found.damaged.items()
        ]


class Running:
    """A server."""

    sees_hidden = False

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def definitions(self) -> Iterator[Object]:
        for crd in self._cluster.list(f"/apis/{types.GROUP}/{types.VERSION}/{types.RESOURCE}"):
            yield defaults.default(types.decode(crd).value)

    def objects(self, crd: Object) -> Iterator[Object]:
        version = storage_version(crd)
        served = served_versions(crd)
        if not served:
            return iter(())
        spec = crd["spec"]
        version = version if version in served else served[0]
        return self._cluster.list(f"/apis/{spec['group']}/{version}/{spec['names']['plural']}")

    def damaged(self) -> list[str]:
        return []


# -- judging ----------------------------------------------------------------------------------------------------------


def _definitions_in(files: list[Path], report: Report) -> dict[str, Object]:
    """The CRDs in files, by name. Raises LoadError."""
    from apiserver.cel.schema_rules import SchemaRules
    from apiserver.crd.lint import lint_crd

    found = {}
    for document in loading.ready(checked(read_paths(files))):
        if not is_crd(document.value):
            report.remarks.append(f"{document.source}: {document.kind} {document.name} is no CRD, and not looked at")
            continue
        if violations := lint_crd(document.value, checkers=SchemaRules):
            told = "".join(f"\n  {violation}" for violation in violations)
            raise LoadError(f"{document.source}: servers would refuse {document.name}:{told}")
        found[document.name] = defaults.default(types.decode(document.value).value)
    return found


def _judge_all(source: Source, replacing: Mapping[str, Object], report: Report) -> None:
    stored = {crd["metadata"]["name"]: crd for crd in source.definitions()}
    report.remarks += [f"{name}: there is no such CRD, so there are no objects" for name in replacing.keys() - stored]
    for name, crd in sorted(stored.items()):
        if not conditions.is_true(crd, conditions.ESTABLISHED):
            continue
        new = replacing.get(name)
        judged = crd if new is None else {**new, "status": {**new["status"], "acceptedNames": new["spec"]["names"]}}
        try:
            _judge_objects(source.objects(crd), name, versions_of(judged, 0), report)
        except NoStructuralForm as error:
            report.failures.append(f"{name}: its objects cannot be judged, its schema is not structural: {error}")


def _judge_objects(objects: Iterator[Object], crd: str, versions: Versions, report: Report) -> None:
    for value in objects:
        metadata = value["metadata"]
        named = metadata.get("namespace") or "", metadata.get("name") or "", metadata.get("resourceVersion") or ""
        verdict = judge(value, versions)
        report.objects += 1
        report.by_crd[crd] = report.by_crd.get(crd, 0) + 1
        if verdict.errors or verdict.hidden:
            resource = verdict.resource
            report.problems.append(
                Problem(crd, resource.api_version, resource.kind, *named, verdict.errors, verdict.hidden)
            )


# -- telling ----------------------------------------------------------------------------------------------------------


def _tell(report: Report) -> None:
    for problem in report.problems:
        namespace = f"{problem.namespace}/" if problem.namespace else ""
        state = "no longer validates" if problem.errors else "validates"
        print(f"{problem.kind} {namespace}{problem.name} ({problem.api_version}): {state}")
        for error in problem.errors:
            print(f"  {error}".replace("\n", "\n  "))
        for path in problem.hidden:
            print(f"  hidden by pruning: {path}")
    hiding = f", {report.hiding} hold what pruning hides" if report.hiding else ""
    looked_at = f"{_counted(report.objects, 'object')} of {_counted(len(report.by_crd), 'CRD')}"
    print(f"{looked_at}: {report.invalid} no longer validate{hiding}")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _as_json(report: Report, sees_hidden: bool) -> Json:
    return {
        "problems": [_problem_as_json(problem, sees_hidden) for problem in report.problems],
        "remarks": report.remarks,
        "failures": report.failures,
        "summary": {
            "objects": report.objects,
            "invalid": report.invalid,
            "hiding": report.hiding if sees_hidden else None,
        },
    }


def _problem_as_json(problem: Problem, sees_hidden: bool) -> Object:
    return {
        "crd": problem.crd,
        "apiVersion": problem.api_version,
        "kind": problem.kind,
        "namespace": problem.namespace,
        "name": problem.name,
        "resourceVersion": problem.resource_version,
        "valid": not problem.errors,
        "errors": [{"field": one.field, "reason": one.reason, "message": one.body} for one in problem.errors],
        "hidden": problem.hidden if sees_hidden else None,
    }
