"""Run tests of kuttl: each against a control plane of its own in memory, in a namespace of its own.

A step deletes, applies, and then waits for what it asserts, as kuttl does (internal/step/step.go). Nothing sleeps: the clock of
the control plane stands still. When the controllers have done everything that they have to do, the assertions are judged; if
one fails, the clock goes on to the next thing that is due, until the timeout of the step:

    00:00.0   the Deployment is applied; a pod is created, and is not ready for 2 s       spec.replicas is asserted, and is there
    00:00.0   status.readyReplicas is asserted, and is missing: the next thing is due at 00:02.0
    00:02.0   it is 1: the step has passed

So a step that fails takes no longer than one that passes. After a step that fails, the others of its test are not run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Final, NamedTuple

from noxu import cel
from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.api.field import NIL, ROOT, child
from noxu.api.field import Path as FieldPath
from noxu.cases.judging import projected
from noxu.cases.outcomes import diff
from noxu.cases.running import Observe, nothing
from noxu.clock import AdjustableClock
from noxu.config import Config
from noxu.control import clock as object_time
from noxu.control.settling import settled
from noxu.control_plane import ControlPlane, Seams, assemble, running
from noxu.features import of_release
from noxu.kuttl.matching import mismatches, nearest
from noxu.kuttl.steps import KuttlStep, KuttlTest, SharedConditions, StepProblem
from noxu.manifests import loading
from noxu.manifests.documents import Document
from noxu.manifests.files import LoadError
from noxu.registry.access import User
from noxu.registry.conversion.converters import entry_at
from noxu.registry.draft import ENCODED, Action, Body, DeleteOptions, Options, WriteRequest
from noxu.registry.offload import without_threads
from noxu.registry.resource import Resource
from noxu.registry.stored_object import key_of, object_at
from noxu.releases import NEWEST
from noxu.values import Object
from noxu_storage.memory import MemoryStore

USER: Final = User("noxu-test", "", ("system:masters", "system:authenticated"))
MERGE_PATCH: Final = "application/merge-patch+json"
LEAST: Final = 0.1
"""Seconds of object time between two looks."""
_LISTED: Final = 5
"""How many names a message lists."""


class StepFailure(NamedTuple):
    """Why a step fails: a field of one of its documents, a sentence, and the lines of a diff, if there is one."""

    document: Document
    field: FieldPath
    message: str
    diff: Sequence[str] = ()


class StepOutcome(NamedTuple):
    step: KuttlStep
    failures: Sequence[StepFailure] = ()


class KuttlOutcome(NamedTuple):
    """What came of the steps that ran. `problems`: why none of them could be."""

    test: KuttlTest
    release: int
    steps: Sequence[StepOutcome] = ()
    problems: Sequence[StepProblem] = ()


def run(
    tests: Sequence[KuttlTest], nodes: int | None = None, releases: Sequence[int] = (), observe: Observe = nothing
) -> list[KuttlOutcome]:
    """The outcomes of tests, in their order, as each of these releases of Kubernetes. `nodes`: how many are simulated."""
    return asyncio.run(_run(tests, nodes, releases or (NEWEST,), observe))


async def _run(
    tests: Sequence[KuttlTest], nodes: int | None, releases: Sequence[int], observe: Observe
) -> list[KuttlOutcome]:
    outcomes = []
    with without_threads():
        for test in tests:
            for release in releases:
                if test.problems:
                    outcomes.append(KuttlOutcome(test, release, problems=test.problems))
                    break  # the same as any release
                outcomes.append(await _test(test, nodes, release, observe))
    return outcomes


async def _test(test: KuttlTest, nodes: int | None, release: int, observe: Observe) -> KuttlOutcome:
    clock = AdjustableClock()
    clock.freeze(clock.now().replace(microsecond=0) + timedelta(seconds=1))  # objects have times of whole seconds
    config = Config(nodes=nodes, features=of_release(release))
    async with running(assemble(config, MemoryStore(), Seams(clock=clock))) as plane:
        if refused := await _given(plane, test):
            return KuttlOutcome(test, release, problems=refused)
        await loading.ensure_namespace(plane, test.namespace)
        observe(plane)
        under_way = _RunningTest(plane, clock, test.namespace)
        outcomes: list[StepOutcome] = []
        for step in test.steps:
            outcomes.append(StepOutcome(step, await under_way.run(step)))
            if outcomes[-1].failures:
                break
        return KuttlOutcome(test, release, outcomes)


async def _given(plane: ControlPlane, test: KuttlTest) -> list[StepProblem]:
    """Load what a server begins with. Returns what is refused."""
    try:
        ready = loading.ready(test.given)
        errors = await loading.load(plane, ready, create_namespaces=True)
    except LoadError as error:
        errors = list(error.args)
    return [StepProblem(Document({}, str(test.directory)), ROOT, str(error)) for error in errors]


class _RunningTest:
    """A test whose control plane runs."""

    def __init__(self, plane: ControlPlane, clock: AdjustableClock, namespace: str) -> None:
        self._plane, self._clock, self._namespace = plane, clock, namespace

    async def run(self, step: KuttlStep) -> list[StepFailure]:
        failures = await self._delete(step)
        if not failures:
            for document in step.applied:
                failures += await self._apply(document)
        return failures or await self._until(partial(self._check, step), step.timeout)

    async def _until(self, check: Callable[[], Awaitable[list[StepFailure]]], seconds: float) -> list[StepFailure]:
        """What a check says last: it says nothing, or the time is up."""
        controllers = self._plane.all_controllers
        end = self._clock.now() + timedelta(seconds=seconds)
        while True:
            await settled(controllers)
            failures = await check()
            now, due = self._clock.now(), self._clock.state.due
            if not failures or now >= end:
                return failures
            next_look = end if due is None else min(end, max(due, now + timedelta(seconds=LEAST)))
            await object_time.advance(self._clock, controllers, to=next_look)

    # -- writing

    async def _delete(self, step: KuttlStep) -> list[StepFailure]:
        """Delete what a step names, and wait until it is gone."""
        gone: list[tuple[Resource, Object, Document, FieldPath]] = []
        for wanted, document, field in step.deleted:
            resource = loading.resource_of(self._plane, wanted)
            if resource is None:
                return [StepFailure(document, field, loading.no_matches(wanted))]
            named: Object = {
                "metadata": {name: wanted[name] for name in ("name", "namespace", "labels") if name in wanted}
            }
            for value in await self._objects(resource, named):
                gone.append((resource, value, document, field))
                try:
                    await self._plane.writer.write(self._request(Action.DELETE, resource, value))
                except ApiError as error:
                    if error.reason != "NotFound":
                        return [StepFailure(document, field, error.message)]

        async def still_there() -> list[StepFailure]:
            found = [
                StepFailure(
                    document, field, f"{_title(resource, value)} still exists {step.timeout:g} s after its deletion"
                )
                for resource, value, document, field in gone
                if await self._objects(resource, value, uid=value["metadata"]["uid"])
            ]
            return found[:1]

        return await self._until(still_there, step.timeout) if gone else []

    async def _apply(self, document: Document) -> list[StepFailure]:
        """Create an object, or merge it into the one that exists, as kuttl's CreateOrUpdate does."""
        value = document.value
        resource = loading.resource_of(self._plane, value)
        if resource is None:
            return [StepFailure(document, "kind", f"{loading.no_matches(value)}: apply its CRD in a step before")]
        exists = loading.name_of(value) and await self._objects(resource, value)
        request = self._request(Action.PATCH if exists else Action.CREATE, resource, value)
        try:
            await self._plane.writer.write(request)
        except ApiError as error:
            return list(_refused(document, error))
        return []

    def _request(self, action: Action, resource: Resource, value: Object) -> WriteRequest:
        media_type = MERGE_PATCH if action is Action.PATCH else ENCODED
        sends = action is not Action.DELETE
        return WriteRequest(
            action,
            resource,
            self._namespace_of(resource, value),
            "" if action is Action.CREATE else loading.name_of(value),
            body=Body(codec.encode(value, sort_keys=False), media_type) if sends else Body(b""),
            options=Options(field_manager=USER.name),
            delete_options=DeleteOptions(propagation="" if sends else "Background"),
            user=USER,
            features=self._plane.features,
            authorize=self._plane.authorize,
        )

    def _namespace_of(self, resource: Resource, value: Object) -> str:
        metadata = value.get("metadata") or {}
        return str(metadata.get("namespace") or self._namespace) if resource.namespaced else ""

    # -- judging

    async def _objects(self, resource: Resource, wanted: Object, uid: str = "") -> list[Object]:
        """The object with a name, or all objects with the labels; with `uid`, only if it is still that one."""
        namespace, name = self._namespace_of(resource, wanted), loading.name_of(wanted)
        entries = (await self._plane.reader.collection(resource)).entries
        if name:
            entry = entries.get(key_of(resource, namespace, name))
            found = [] if entry is None else [object_at(await entry_at(entry, resource), resource)]
            return [value for value in found if uid in ("", value["metadata"].get("uid"))]
        labels = (wanted.get("metadata") or {}).get("labels") or {}
        partition = key_of(resource, namespace, "").partition
        values = [
            object_at(await entry_at(entry, resource), resource)
            for key, entry in list(entries.items())
            if key.partition == partition
        ]
        return [value for value in values if labels.items() <= (value["metadata"].get("labels") or {}).items()]

    async def _check(self, step: KuttlStep) -> list[StepFailure]:
        failures = []
        for document in step.asserted:
            failures += await self._present(document)
        if step.conditions is not None:
            failures += await self._conditions(step.conditions)
        for document in step.errors:
            failures += await self._absent(document)
        return failures

    def _expected(self, document: Document) -> tuple[Resource, Object] | None:
        """What a document expects, in its namespace; None if its kind is not served."""
        resource = loading.resource_of(self._plane, document.value)
        if resource is None:
            return None
        namespace = self._namespace_of(resource, document.value)
        metadata = {**(document.value.get("metadata") or {}), **({"namespace": namespace} if namespace else {})}
        return resource, {**document.value, "metadata": metadata}

    async def _present(self, document: Document) -> list[StepFailure]:
        if (found := self._expected(document)) is None:
            return [StepFailure(document, "kind", loading.no_matches(document.value))]
        resource, expected = found
        objects = await self._objects(resource, expected)
        if not objects:
            return [StepFailure(document, ROOT, await self._missing(resource, expected))]
        best = nearest(expected, objects)
        assert best is not None
        nearest_object, differing = best
        if not differing:
            return []
        field, message = differing[0]
        said = f"{_title(resource, nearest_object)}: {field}: {message}"
        if len(objects) > 1:
            said = f"none of {len(objects)} {resource.plural} matches, the nearest is {said}"
        if len(differing) > 1:
            said += f" (and {len(differing) - 1} more)"
        return [StepFailure(document, field, said, diff(expected, projected(expected, nearest_object)))]

    async def _missing(self, resource: Resource, expected: Object) -> str:
        """That there is no such object, and which there are."""
        metadata = expected["metadata"]
        where = f" in namespace {metadata['namespace']}" if resource.namespaced else ""
        others = await self._objects(resource, {"metadata": {"namespace": metadata.get("namespace", "")}})
        names = [each["metadata"]["name"] for each in others]
        listed = ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
        there = f"there are {listed}" if names else "there are none"
        if metadata.get("name"):
            return f"{_title(resource, expected)} does not exist: {there}"
        if metadata.get("labels"):
            labels = ",".join(f"{name}={value}" for name, value in metadata["labels"].items())
            return f"no {resource.plural}{where} have the labels {labels}: {there}"
        return f"there are no {resource.plural}{where}"

    async def _absent(self, document: Document) -> list[StepFailure]:
        if (found := self._expected(document)) is None:  # kuttl fails, too: a misspelt kind would never be there
            return [StepFailure(document, "kind", loading.no_matches(document.value))]
        resource, expected = found
        matching = [each for each in await self._objects(resource, expected) if not any(mismatches(expected, each))]
        if not matching:
            return []
        more = f" (and {len(matching) - 1} more)" if len(matching) > 1 else ""
        said = f"{_title(resource, matching[0])} matches what must not be there{more}"
        return [StepFailure(document, ROOT, said)]

    async def _conditions(self, conditions: SharedConditions) -> list[StepFailure]:
        values: dict[str, Object] = {}
        for n, (name, reference) in enumerate(conditions.objects.items()):
            resource = loading.resource_of(self._plane, reference)
            named: Object = {"metadata": {part: reference.get(part, "") for part in ("name", "namespace")}}
            objects = [] if resource is None else await self._objects(resource, named)
            if resource is None or not objects:
                said = (
                    loading.no_matches(reference)
                    if resource is None
                    else await self._missing_reference(resource, named)
                )
                return [StepFailure(conditions.document, f"resourceRefs[{n}]", said)]
            values[name] = objects[0]
        every = [_untrue(condition, values) for condition in conditions.every]
        some = [_untrue(condition, values) for condition in conditions.some]
        failures = [
            StepFailure(conditions.document, child(f"assertAll[{n}]", "celExpr"), f"{conditions.every[n].text}: {said}")
            for n, said in enumerate(every)
            if said
        ]
        if some and all(some):
            reasons = "; ".join(
                f"{condition.text}: {said}" for condition, said in zip(conditions.some, some, strict=True)
            )
            failures.append(StepFailure(conditions.document, "assertAny", f"none of them is true: {reasons}"))
        return failures

    async def _missing_reference(self, resource: Resource, named: Object) -> str:
        metadata = {**named["metadata"], "namespace": self._namespace_of(resource, named)}
        return await self._missing(resource, {"metadata": metadata})


def _untrue(condition: cel.AwaitedCondition, values: Mapping[str, Object]) -> str:
    """Why a condition does not hold, "" if it does."""
    value, error, _ = condition.evaluate_together(values)
    return error or (
        "" if value is True else "it is false" if value is False else "its value is neither true nor false"
    )


def _refused(document: Document, error: ApiError) -> Iterator[StepFailure]:
    """An error of the server, with the fields that it names."""
    causes = (error.details or {}).get("causes") if error.reason == "Invalid" else None
    fields = [cause for cause in causes or () if cause.get("field")]
    for cause in fields:
        field = cause["field"].removeprefix(NIL)
        yield StepFailure(document, field, f"it is refused: {field}: {cause['message']}")
    if not fields:
        yield StepFailure(document, ROOT, f"it is refused: {error.message}")


def _title(resource: Resource, value: Object) -> str:
    """`Pod shop/a`."""
    metadata = value["metadata"]
    namespace = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{resource.kind} {namespace}{metadata['name']}"
