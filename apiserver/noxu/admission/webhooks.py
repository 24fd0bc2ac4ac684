"""Admission webhooks: which are called for a request, in which order, and the effect (plugin/webhook/{mutating,validating}).

Mutating webhooks are called one after the other: configurations by name, webhooks as listed; each sees the changes of
those before, and the first denial ends the calls. If one has changed the object, those before it with reinvocationPolicy
IfNeeded are called again in a second round. Validating webhooks are called concurrently.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from noxu.admission import reviews
from noxu.admission.attributes import Attributes, refusal
from noxu.admission.configured import CompiledConfigurations
from noxu.admission.expressions import ConditionError
from noxu.admission.inputs import for_conditions, inputs_of
from noxu.admission.matching import matched
from noxu.admission.metrics import CALL_FAILED, INTERNAL, NO_ERROR, WebhookType
from noxu.admission.reviews import Hook, Response, hooks_of
from noxu.api import errors
from noxu.api.errors import ApiError
from noxu.api.names import qualified_name
from noxu.apply.patch import MAX_COPIED
from noxu.features import ADMISSION_GROUP
from noxu.go.text import compact_json, quote
from noxu.registry.offload import offload
from noxu.registry.reader import Reader
from noxu.registry.resource import Resource
from noxu.registry.trace import HookCall, Note
from noxu.values import Object, equal
from noxu.webhook.client import BadAnswer, Caller, CallFailed, Unusable

_MAX_TIMEOUT: Final = 30  # seconds
_EXEMPT: Final = frozenset(
    (ADMISSION_GROUP, f"{kind}{what}")
    for kind in ("Validating", "Mutating")
    for what in ("WebhookConfiguration", "AdmissionPolicy", "AdmissionPolicyBinding")
)
"""The kinds for which no webhook is called, in any version (upstream's IsExemptAdmissionConfigurationResource)."""
_NO_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_MUTATION: Final = "mutation.webhook.admission.k8s.io"
_PATCH: Final = "patch.webhook.admission.k8s.io"
_VALIDATION: Final = "validating.webhook.admission.k8s.io"

log = logging.getLogger("noxu")


class _Webhooks:
    """The common parts of both plug-ins. `local` are the webhooks in this process, which come last."""

    mutating: bool

    def __init__(
        self,
        configurations: Resource,
        caller: Caller,
        local: Sequence[Hook] = (),
    ) -> None:
        self._caller = caller
        self._configured = CompiledConfigurations(configurations, hooks_of)
        self._local = local

    async def _hooks(self, reader: Reader) -> Iterable[Hook]:
        configured = await self._configured.all(reader)
        return [*(hook for hooks in configured for hook in hooks), *self._local]

    async def _matched(self, hook: Hook, request: Attributes) -> Resource | None:
        """The version at which the webhook needs the objects, None if it is not called. Raises ApiError."""
        if (request.resource.group, request.resource.kind) in _EXEMPT:
            return None  # webhooks must not prevent changes of their configuration
        resource = await matched(hook.criteria, request)
        if resource is not None and hook.selector_error:
            raise errors.internal_error(hook.selector_error)
        if resource is None or not hook.conditions:
            return resource
        inputs = for_conditions(await inputs_of(request, resource, None))
        try:
            return resource if await hook.compiled.met(inputs, request.draft.weight, fail=hook.fails_closed) else None
        except ConditionError as error:
            raise refusal(request, str(error)) from None


Objects = tuple[Object | None, Object | None]


async def _objects(request: Attributes, resource: Resource, *, mutating: bool) -> Objects:
    """(new object, old object). Raises ApiError if they cannot be converted; upstream wraps that error once or twice."""
    try:
        return await request.new_at(resource), await request.old_at(resource)
    except ApiError as error:
        wrapped = errors.internal_error(error.message)
        raise errors.internal_error(wrapped.message) if mutating else wrapped from None


async def _review(
    hook: Hook, caller: Caller, request: Attributes, resource: Resource, objects: Objects, *, mutating: bool
) -> Response:
    """Call a webhook with `objects`, which are at this version of the request's resource.

    Raises CallFailed, and ApiError if it denies the request or does not support a dry run.
    """
    if request.dry_run:
        if hook.side_effects is None:
            raise CallFailed("Webhook SideEffects is nil")
        if hook.side_effects not in _NO_SIDE_EFFECTS:
            raise errors.bad_request(f"admission webhook {quote(hook.name)} does not support dry run")
    version = next((version for version in hook.versions if version in reviews.VERSIONS), None)
    if version is None:
        versions = ", ".join(reviews.VERSIONS)
        text = f"webhook does not accept known AdmissionReview versions ({versions})"
        raise CallFailed(f"could not create admission objects: {text}")
    if hook.endpoint is None:
        raise CallFailed(f"could not get REST client: {hook.client_error}")
    uid = request.draft.environment.identifiers.new_uid()
    body = await offload(request.draft.weight, _written, request, resource, uid, *objects, version)
    try:
        reply = await (hook.caller or caller)(hook.endpoint, body, timeout=min(hook.timeout, _left(request)))
    except Unusable as error:
        raise CallFailed(f"could not get REST client: {error.text}") from None
    except CallFailed as error:
        failed = BadAnswer if isinstance(error, BadAnswer) else CallFailed
        raise failed(f"failed to call webhook: {error.text}") from None
    try:
        response = await offload(len(reply.body), partial(reviews.read, mutating=mutating), reply, version, uid)
    except CallFailed as error:
        raise BadAnswer(error.text) from None
    draft = request.draft
    for key, value in response.annotations:
        _annotate(request, f"{hook.name}/{key}", value)
    draft.outcome.warnings += response.warnings
    if response.operations:
        draft.weight += _weight(response.operations, len(reply.body), draft.weight)
    if not response.allowed:
        raise reviews.denial(hook.name, response.status)
    return response


def _left(request: Attributes) -> int:
    """The seconds until the request's deadline, rounded up as upstream does."""
    left = request.draft.request.deadline - asyncio.get_running_loop().time()
    return max(math.ceil(min(left, _MAX_TIMEOUT)), 1)


def _weight(operations: Sequence[Object], length: int, weight: int) -> int:
    """The maximum number of bytes by which a patch of that length lets an object of that weight grow."""
    copies = sum(1 for operation in operations if operation and operation.get("op") == "copy")
    return length + min(copies * (weight + length), MAX_COPIED)


def _written(
    request: Attributes, resource: Resource, uid: str, new: Object | None, old: Object | None, version: str
) -> bytes:
    return reviews.written(reviews.question(request, resource, uid, new, old), version)


def _failed(hook: Hook, failure: CallFailed) -> ApiError | None:
    """The error after a failed call, None with failurePolicy Ignore."""
    text = f"failed calling webhook {quote(hook.name)}: {failure.text}"
    logged = "its answer cannot be used" if isinstance(failure, BadAnswer) else quote(failure.text)  # in one line
    log.warning(
        "Failed calling webhook, failing %s %s: %s", "closed" if hook.fails_closed else "open", hook.name, logged
    )
    return errors.internal_error(text) if hook.fails_closed else None


def _annotate(request: Attributes, key: str, value: str) -> None:
    """Add an audit annotation, unless its key is invalid or exists already."""
    if key.count("/") == 1 and not qualified_name(key):
        request.draft.outcome.audit_annotations.setdefault(key, value)


def _count(request: Attributes, hook: Hook, type_: WebhookType, start: float, error: Exception | None = None) -> None:
    """Count a call. `error` is a CallFailed, or the ApiError that refuses the request."""
    metrics, operation = request.metrics, request.operation
    code, error_type, rejected = 200, "", error is not None
    if isinstance(error, CallFailed):
        code, error_type, rejected = 500 if hook.endpoint is None else 503, CALL_FAILED, hook.fails_closed
        if not rejected:
            metrics.webhook_failed_open(hook.name, type_)
    elif isinstance(error, ApiError):
        code, error_type = (error.code, NO_ERROR) if isinstance(error, reviews.Denial) else (0, INTERNAL)
    if rejected:
        metrics.webhook_rejected(hook.name, type_, operation, error_type, code)
    metrics.webhook(hook.name, type_, operation, start, code=code, rejected=rejected)


def _trace(request: Attributes, hook: Hook, start: float, outcome: str = "", operations: Sequence[Object] = ()) -> None:
    """Add a call to the write's trace, and to its calls."""
    if (calls := request.draft.outcome.calls) is not None:
        calls.append(HookCall(hook.name, time.perf_counter() - start, outcome, len(operations)))
    if request.draft.outcome.trace is not None:
        request.draft.record(
            f"webhook {hook.name}",
            patch=operations,
            notes=[Note("", outcome)] if outcome else (),
            seconds=time.perf_counter() - start,
        )


# -- mutating ---------------------------------------------------------------------------------------------------------


@dataclass
class _Reinvocation:
    """The webhooks to call again."""

    called: set[str] = field(default_factory=set)
    to_reinvoke: set[str] = field(default_factory=set)
    output: Object | None = None
    """The object after the webhooks."""

    def changed(self) -> None:
        """The webhooks called so far with reinvocationPolicy IfNeeded are called again."""
        self.to_reinvoke |= self.called
        self.called = set()


class MutatingWebhooks(_Webhooks):
    """The plug-in."""

    mutating = True

    async def admit(self, request: Attributes) -> None:
        """Raises ApiError."""
        reinvocation: _Reinvocation = request.plugin_state.setdefault(MutatingWebhooks, _Reinvocation())
        if request.round and not equal(reinvocation.output, await request.new_at(request.resource)):
            reinvocation.changed()
        for n, hook in enumerate(await self._hooks(request.reader)):
            resource = await self._matched(hook, request)
            if resource is not None and (not request.round or hook.uid in reinvocation.to_reinvoke):
                await self._call(hook, request, resource, reinvocation, f"round_{request.round}_index_{n}")
        reinvocation.output = await request.new_at(request.resource)

    async def _call(
        self, hook: Hook, request: Attributes, resource: Resource, reinvocation: _Reinvocation, place: str
    ) -> None:
        start, changed = time.perf_counter(), False
        try:
            objects = await _objects(request, resource, mutating=True)
            response = await _review(hook, self._caller, request, resource, objects, mutating=True)
            changed = await self._patch(hook, request, resource, response, place)
            _count(request, hook, "admit", start)
            _trace(request, hook, start, operations=response.operations)
        except CallFailed as failure:
            _count(request, hook, "admit", start, failure)
            _trace(request, hook, start, failure.text)
            error = _failed(hook, failure)
            if error is not None:
                raise error from None
            _annotate(request, f"failed-open.{_MUTATION}/{place}", hook.name)
        except ApiError as error:
            _count(request, hook, "admit", start, error)
            _trace(request, hook, start, error.message)
            raise
        finally:
            request.draft.outcome.webhook_seconds += time.perf_counter() - start
            about: Object = {"configuration": hook.configuration, "webhook": hook.name}
            _annotate(request, f"{_MUTATION}/{place}", _json({**about, "mutated": changed}))
        if changed:
            reinvocation.changed()
            request.reinvoke = True
        if hook.reinvoke:
            reinvocation.called.add(hook.uid)

    async def _patch(self, hook: Hook, request: Attributes, resource: Resource, response: Response, place: str) -> bool:
        """Whether the object is another one now. Raises ApiError."""
        operations = response.operations
        if not operations:
            return False
        before = await request.new_at(resource)
        if before is None:
            why = f"admission webhook {quote(hook.name)} attempted to modify the object, which is not supported for this operation"
            raise errors.internal_error(why)
        new = await offload(request.draft.weight, reviews.patched, request, resource, before, operations)
        about = {"configuration": hook.configuration, "webhook": hook.name, "patch": list(operations)}
        _annotate(request, f"{_PATCH}/{place}", _json({**about, "patchType": reviews.JSON_PATCH}))
        if equal(before, new):
            return False
        request.put(resource, new)
        return True


def _json(value: Object) -> str:
    return compact_json(value, sort_keys=False)


# -- validating -------------------------------------------------------------------------------------------------------


class ValidatingWebhooks(_Webhooks):
    """The plug-in."""

    mutating = False

    async def validate(self, request: Attributes) -> None:
        """Raises ApiError: the first in the order of the configurations."""
        calls: list[tuple[Hook, Resource, Objects]] = []
        for hook in await self._hooks(request.reader):
            resource = await self._matched(hook, request)
            if resource is not None:
                calls.append((hook, resource, await _objects(request, resource, mutating=False)))
        start = time.perf_counter()
        outcomes = await asyncio.gather(*(self._call(n, *call, request) for n, call in enumerate(calls)))
        request.draft.outcome.webhook_seconds += time.perf_counter() - start
        for error in outcomes:
            if error is not None:
                raise error

    async def _call(
        self, n: int, hook: Hook, resource: Resource, objects: Objects, request: Attributes
    ) -> ApiError | None:
        """The error that refuses the request, None if it is admitted."""
        start = time.perf_counter()
        try:
            await _review(hook, self._caller, request, resource, objects, mutating=False)
            _count(request, hook, "validating", start)
            _trace(request, hook, start)
        except CallFailed as failure:
            _count(request, hook, "validating", start, failure)
            _trace(request, hook, start, failure.text)
            error = _failed(hook, failure)
            if error is None:
                _annotate(request, f"failed-open.{_VALIDATION}/round_0_index_{n}", hook.name)
            return error
        except ApiError as error:
            _count(request, hook, "validating", start, error)
            _trace(request, hook, start, error.message)
            return error
        return None
