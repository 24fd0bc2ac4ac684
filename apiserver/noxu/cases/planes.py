"""A control plane in memory with what cases are given, and the writes of cases to it.

Every case begins with what is given: its write is a dry run, and its old object is stored as it is before, and removed after
that. So cases do not affect each other, and files with the same given objects share a control plane.

The old object is older than the rules: neither the schema nor a policy judges it. `patch` and `apply` are sent as such; an
`object` that updates `old` gets its resourceVersion, and replaces it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.cases.case_files import Case, CaseProblem
from noxu.cases.outcomes import CaseResult
from noxu.control_plane import WITHOUT_CONTROLLERS, ControlPlane, assemble, running
from noxu.features import ADMISSION_GROUP, of_release
from noxu.manifests import loading, restoring
from noxu.manifests.documents import Document, LoadError, in_order
from noxu.registry.access import User
from noxu.registry.conversion.converters import at_storage_version
from noxu.registry.draft import ENCODED, Action, Body, DeleteOptions, Options, Outcome, WriteRequest, Written
from noxu.registry.resource import Resource
from noxu.registry.stored_object import StoredObject, object_at
from noxu.registry.trace import Trace
from noxu.releases import NEWEST
from noxu.values import Json, Object, copy
from noxu_storage.memory import MemoryStore
from noxu_storage.types import Conflict

USER: Final = "noxu-test"
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY: Final = "application/apply-patch+yaml"


WEBHOOKS: Final = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


class UnusableCase(ValueError):
    """Why a case, or what it is given, cannot be used. `field` is in the case or in `given`."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.problem = CaseProblem(field, message)


@asynccontextmanager
async def given_plane(
    given: Mapping[str, Sequence[Document]], release: int = NEWEST
) -> AsyncIterator[tuple[ControlPlane, list[CaseProblem]]]:
    """A control plane of a release of Kubernetes, with CRDs, objects and policies; and which of them it has refused."""
    config = replace(WITHOUT_CONTROLLERS, features=of_release(release))
    async with running(assemble(config, MemoryStore())) as plane:
        problems = []
        for name in ("crds", "objects", "policies"):  # objects are older than policies
            for document in in_order(given.get(name, ())):
                problems += [CaseProblem(f"given.{name}", said) for said in await _load(plane, document)]
        yield plane, problems


async def _load(plane: ControlPlane, document: Document) -> list[str]:
    try:
        current, _ = loading.as_v1(document)
        if (resource := loading.resource_of(plane, current.value)) is not None:
            await loading.ensure_namespace(plane, loading.namespace_of(resource, current.value))
        await loading.apply(plane, current.value)
    except LoadError as error:
        return [f"{document.place()}: {error}"]
    except ApiError as error:
        return loading.refusals(document, error)
    return []


# -- one case ----------------------------------------------------------------------------------------------------------


async def run(plane: ControlPlane, case: Case, *, traced: bool) -> CaseResult:
    """What the write of a case does. Raises UnusableCase."""
    subject = case.object or case.old
    assert subject is not None
    resource = loading.resource_of(plane, subject)
    if resource is None:
        field = "object" if case.object else "old"
        raise UnusableCase(field, f"{loading.no_matches(subject)}: `given.crds` has to have its definition")
    if webhook := await _webhook(plane, case, resource):
        why = f"the webhook {webhook} in `given` would be asked, and there is no server that answers: leave it out of `given`"
        raise UnusableCase("object" if case.object else "old", f"{why}, or test it with the fixture of pytest")
    namespace = loading.namespace_of(resource, subject)
    await loading.ensure_namespace(plane, namespace)
    old = None if case.old is None else await _store_old(plane, case.old)
    try:
        return await _write(plane, case, resource, old, traced=traced)
    finally:
        if old is not None:
            await plane.persistence.remove(old)


async def _webhook(plane: ControlPlane, case: Case, resource: Resource) -> str:
    """An admission webhook whose rules include the write of a case, "" if there is none. Selectors and conditions do not count."""
    operation = "CREATE" if case.old is None else "DELETE" if "delete" in case.written else "UPDATE"
    for plural in WEBHOOKS:
        configurations = plane.served_resources.current.find(ADMISSION_GROUP, "v1", plural)
        assert configurations is not None
        for entry in (await plane.reader.collection(configurations)).entries.values():
            for hook in object_at(entry, configurations).get("webhooks") or ():
                is_exact = hook.get("matchPolicy") == "Exact"
                if any(_includes(rule, operation, resource, is_exact=is_exact) for rule in hook.get("rules") or ()):
                    return str(hook["name"])
    return ""


def _includes(rule: Object, operation: str, resource: Resource, *, is_exact: bool) -> bool:
    """Whether a rule of a webhook includes a write of an object. `is_exact`: not those at other versions."""
    wanted = {"operations": operation, "apiGroups": resource.group, "resources": resource.plural}
    if is_exact:
        wanted["apiVersions"] = resource.version
    return all({value, "*", "*/*"} & {*rule.get(name, ())} for name, value in wanted.items())


async def _store_old(plane: ControlPlane, value: Object) -> StoredObject:
    try:
        stored = await restoring.store(plane, value)
    except Conflict:
        raise UnusableCase(
            "old", "`given` has an object of this name: `old` is one that is there only for this case"
        ) from None
    except ApiError as error:
        raise UnusableCase("old", error.message) from None
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise UnusableCase("old", f"it has not the form of its kind: {error}") from None
    if stored is None:
        raise UnusableCase("old", "it has no metadata.name, or its kind is not served")
    return stored


async def _write(
    plane: ControlPlane, case: Case, resource: Resource, old: StoredObject | None, *, traced: bool
) -> CaseResult:
    request = _request(plane, case, resource, old)
    outcome, trace = Outcome(), Trace()
    if resource.deprecation_text:
        outcome.warnings.append(resource.deprecation_text)
    try:
        written = await plane.writer.write(request, outcome, trace if traced else None)
    except ApiError as error:
        return CaseResult(error, outcome.warnings, pruned=outcome.unknown, trace=trace)
    result = CaseResult(None, outcome.warnings, _body(written, resource), outcome.unknown, trace=trace)
    return result if "convert" not in case.written else await _converted(plane, case, resource, result)


def _request(plane: ControlPlane, case: Case, resource: Resource, old: StoredObject | None) -> WriteRequest:
    subject = case.object or case.old
    assert subject is not None
    action, name, body = _action(case, subject, old)
    options = Options(
        dry_run=True,
        field_manager=USER,
        field_validation=case.written.get("fieldValidation", "Warn"),
        force=action is Action.APPLY,
    )
    return WriteRequest(
        action,
        resource,
        loading.namespace_of(resource, subject),
        name,
        body=body,
        options=options,
        delete_options=DeleteOptions(dry_run=True),
        options_sent=_options_sent(action),
        user=_user(case.written.get("user")),
        features=plane.features,
        authorize=plane.authorize,
    )


def _action(case: Case, subject: Object, old: StoredObject | None) -> tuple[Action, str, Body]:
    """What is done to the object, its name in the URL, and the body."""
    if old is None:
        return Action.CREATE, "", Body(codec.encode(subject, sort_keys=False), ENCODED)
    name = loading.name_of(subject)
    if "delete" in case.written:
        return Action.DELETE, name, Body(b"")
    if case.apply is not None:
        return Action.APPLY, name, Body(codec.encode(case.apply, sort_keys=False), APPLY)
    if "patch" in case.written:
        patch = case.written["patch"]
        media_type = JSON_PATCH if isinstance(patch, list) else MERGE_PATCH
        return Action.PATCH, name, Body(codec.encode(patch, sort_keys=False), media_type)
    metadata = {"resourceVersion": str(old.revision), **subject["metadata"]}
    return Action.REPLACE, name, Body(codec.encode({**subject, "metadata": metadata}, sort_keys=False), ENCODED)


def _options_sent(action: Action) -> Object:
    """The options as admission sees them."""
    kinds = {Action.CREATE: "CreateOptions", Action.REPLACE: "UpdateOptions", Action.DELETE: "DeleteOptions"}
    kind = kinds.get(action, "PatchOptions")
    return {"kind": kind, "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]}


def _user(given: Json) -> User:
    """A user has the group that every authenticated one has."""
    given = given or {"name": USER}
    extra = tuple((name, tuple(values)) for name, values in (given.get("extra") or {}).items())
    groups = dict.fromkeys([*(given.get("groups") or ()), "system:authenticated"])
    return User(given["name"], str(given.get("uid") or ""), tuple(groups), extra)


def _body(written: Written, resource: Resource) -> Object:
    body: Object = codec.decode_stored(written.body(resource)) if written.entry or written.value else {"metadata": {}}
    return body


# -- conversion --------------------------------------------------------------------------------------------------------


async def _converted(plane: ControlPlane, case: Case, resource: Resource, result: CaseResult) -> CaseResult:
    """The object at another version, and back. Raises UnusableCase."""
    assert result.stored is not None
    version = case.written["convert"]
    other = plane.served_resources.current.find(resource.group, version, resource.plural)
    if other is None or not resource.is_custom:
        raise UnusableCase("convert", f"{resource.group_resource} is not served at {version}")
    if await _has_webhook(plane, resource):
        raise UnusableCase("convert", "its definition converts by a webhook, which is not called without a server")
    try:
        # copies, because what is lost is removed in place
        there = (await at_storage_version(copy(result.stored), other, 0)).values[0]
        back = (await at_storage_version(copy(there), resource, 0)).values[0]
    except ApiError as error:
        raise UnusableCase("convert", error.message) from None
    return result._replace(converted=there, returned=back)


async def _has_webhook(plane: ControlPlane, resource: Resource) -> bool:
    definitions = plane.served_resources.current.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    assert definitions is not None
    entry = await plane.reader.get(definitions, "", f"{resource.plural}.{resource.group}")
    conversion = object_at(entry, definitions)["spec"].get("conversion") or {}
    return bool(conversion.get("strategy") == "Webhook")
