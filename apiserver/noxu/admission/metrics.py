"""The metrics of admission (apiserver's pkg/admission/metrics, and the metrics of the policies' plug-ins).

A step is all of mutating or of validating admission. Durations are in seconds.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, Literal, TypeVar

from noxu.api.errors import ApiError
from noxu.instruments import Counter, Family, Histogram

T = TypeVar("T")
Step = Literal["admit", "validate"]
WebhookType = Literal["admit", "validating"]
"""The step of a webhook, which upstream calls differently."""

STEP_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)
_POLICY_BUCKETS: Final = (0.0000005, 0.001, 0.01, 0.1, 1.0)
_MAX_CODE: Final = 600
_REJECTED: Final = ("false", "true")

INTERNAL: Final = "apiserver_internal_error"
CALL_FAILED: Final = "calling_webhook_error"
NO_ERROR: Final = "no_error"


class AdmissionMetrics:
    """The instruments of one chain."""

    def __init__(self) -> None:
        self.steps = Histogram(
            "apiserver_admission_step_admission_duration_seconds",
            "Admission sub-step latency histogram in seconds, broken out for each operation and API resource and step type "
            "(validate or admit).",
            ("type", "operation", "rejected"),
            STEP_BUCKETS,
        )
        self.plugins = Histogram(
            "apiserver_admission_controller_admission_duration_seconds",
            "Admission controller latency histogram in seconds, identified by name and broken out for each operation and "
            "API resource and type (validate or admit).",
            ("name", "type", "operation", "rejected"),
            STEP_BUCKETS,
        )
        self._webhooks = Histogram(
            "apiserver_admission_webhook_admission_duration_seconds",
            "Admission webhook latency histogram in seconds, identified by name and broken out for each operation and API "
            "resource and type (validate or admit).",
            ("name", "type", "operation", "rejected"),
            (*STEP_BUCKETS, 10, 25),
        )
        self._webhook_requests = Counter(
            "apiserver_admission_webhook_request_total",
            "Admission webhook request total, identified by name and broken out for each admission type (validating or "
            "admit) and operation. Additional labels specify whether the request was rejected or not and an HTTP status "
            "code. Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
            "name",
            "type",
            "operation",
            "code",
            "rejected",
        )
        self._webhook_rejections = Counter(
            "apiserver_admission_webhook_rejection_count",
            "Admission webhook rejection count, identified by name and broken out for each admission type (validating or "
            "admit) and operation. Additional labels specify an error type (calling_webhook_error or "
            "apiserver_internal_error if an error occurred; no_error otherwise) and optionally a non-zero rejection code "
            "if the webhook rejects the request with an HTTP status code (honored by the apiserver when the code is "
            "greater or equal to 400). Codes greater than 600 are truncated to 600, to keep the metrics cardinality "
            "bounded.",
            "name",
            "type",
            "operation",
            "error_type",
            "rejection_code",
        )
        self._webhooks_failed_open = Counter(
            "apiserver_admission_webhook_fail_open_count",
            "Admission webhook fail open count, identified by name and broken out for each admission type (validating or "
            "admit).",
            "name",
            "type",
        )
        self._policy_checks = Counter(
            "apiserver_validating_admission_policy_check_total",
            "Validation admission policy check total, labeled by policy and further identified by binding and enforcement "
            "action taken.",
            "policy",
            "policy_binding",
            "error_type",
            "enforcement_action",
        )
        self._policy_seconds = Histogram(
            "apiserver_validating_admission_policy_check_duration_seconds",
            "Validation admission latency for individual validation expressions in seconds, labeled by policy and further "
            "including binding and enforcement action taken.",
            ("policy", "policy_binding", "error_type", "enforcement_action"),
            _POLICY_BUCKETS,
        )
        self._mutations = Counter(
            "apiserver_mutating_admission_policy_check_total",
            "Mutation admission policy check total, labeled by policy and further identified by binding.",
            "policy",
            "policy_binding",
            "error_type",
        )
        self._mutation_seconds = Histogram(
            "apiserver_mutating_admission_policy_check_duration_seconds",
            "Mutation admission latency for individual mutation expressions in seconds, labeled by policy and binding.",
            ("policy", "policy_binding", "error_type"),
            _POLICY_BUCKETS,
        )

    def families(self) -> list[Family]:
        return [metric.family() for metric in vars(self).values()]

    # -- steps and plug-ins

    def step(
        self, step: Step, operation: str, begin: Callable[[T], Awaitable[None] | None], request: T
    ) -> Awaitable[None] | None:
        """Call a function that admits a request, and measure it until what it returns has been awaited."""
        start, rejected, waiting = time.perf_counter(), True, None
        try:
            waiting = begin(request)
            rejected = False
        finally:
            if waiting is None:
                self.steps.observe((step, operation, _REJECTED[rejected]), time.perf_counter() - start)
        return None if waiting is None else self._rest_of(step, operation, waiting, start)

    async def _rest_of(self, step: Step, operation: str, waiting: Awaitable[None], start: float) -> None:
        rejected = True
        try:
            await waiting
            rejected = False
        finally:
            self.steps.observe((step, operation, _REJECTED[rejected]), time.perf_counter() - start)

    @contextlib.contextmanager
    def plugin(self, name: str, step: Step, operation: str) -> Iterator[None]:
        """Measure a plug-in."""
        start, rejected = time.perf_counter(), False
        try:
            yield
        except ApiError:
            rejected = True
            raise
        finally:
            self.plugins.observe((name, step, operation, _REJECTED[rejected]), time.perf_counter() - start)

    # -- webhooks

    def webhook(
        self, name: str, type_: WebhookType, operation: str, start: float, *, code: int, rejected: bool
    ) -> None:
        """A webhook was called at `start`. `code` is that of its answer or of the error, 0 if it was not called."""
        code, word = min(code, _MAX_CODE), _REJECTED[rejected]
        self._webhook_requests.add((name, type_, operation, str(code), word))
        self._webhooks.observe((name, type_, operation, word), time.perf_counter() - start)

    def webhook_rejected(self, name: str, type_: WebhookType, operation: str, error_type: str, code: int) -> None:
        """A request was refused because of a webhook: the reason, and the code of the error."""
        self._webhook_rejections.add((name, type_, operation, error_type, str(min(code, _MAX_CODE))))

    def webhook_failed_open(self, name: str, type_: WebhookType) -> None:
        """A webhook failed, and the request was admitted."""
        self._webhooks_failed_open.add((name, type_))

    # -- policies

    def policy(self, policy: str, binding: str, message: str, action: str, seconds: float) -> None:
        """A validation of a policy was not satisfied, or failed: what followed, and how long it took."""
        labels = (policy, binding, error_type(message), action)
        self._policy_checks.add(labels)
        self._policy_seconds.observe(labels, seconds)

    def mutation(self, policy: str, binding: str, error: str, seconds: float) -> None:
        """A mutation of a policy was evaluated. `error` is its error, "" if it succeeded."""
        labels = (policy, binding, error_type(error) if error else NO_ERROR)
        self._mutations.add(labels)
        self._mutation_seconds.observe(labels, seconds)


def error_type(message: str) -> str:
    """The kind of an error by its message (ErrorType of upstream's policies): also for one that is no error but a denial."""
    if message.startswith("compilation"):
        return "compile_error"
    if message.startswith("validation failed due to running out of cost budget"):
        return "out_of_budget"
    return "invalid_error"
