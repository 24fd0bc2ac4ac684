"""One configured webhook (admissionregistration.k8s.io/v1 MutatingWebhook and ValidatingWebhook), compiled.

Errors in a configuration are kept in its hook: they are reported to the requests that it matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from noxu.admission import reviews
from noxu.admission.expressions import MatchConditions
from noxu.admission.matching import Criteria, criteria_of_webhook
from noxu.values import Object, cached_property
from noxu.webhook.client import Caller, Endpoint, Unusable, endpoint_of


@dataclass(eq=False)
class Hook:
    """One configured webhook. It is called by `caller`, over the network if that is None."""

    uid: str
    configuration: str
    name: str
    criteria: Criteria
    endpoint: Endpoint | None = None
    client_error: str = ""
    """The error of its client configuration, if it has no endpoint."""
    selector_error: str = ""
    """The error of its selectors: a request that matches its rules fails."""
    caller: Caller | None = None
    conditions: Sequence[Object] = ()
    fails_closed: bool = True
    """failurePolicy Fail."""
    side_effects: str | None = "None"
    timeout: int = 10
    versions: Sequence[str] = reviews.VERSIONS
    reinvoke: bool = False
    """reinvocationPolicy IfNeeded."""

    @cached_property
    def compiled(self) -> MatchConditions:
        return MatchConditions(self.conditions)


def hooks_of(configuration: Object) -> list[Hook]:
    """Compile the webhooks of a decoded and defaulted configuration."""
    name, count_of = configuration["metadata"]["name"], dict[str, int]()
    hooks = []
    for hook in configuration.get("webhooks") or ():
        n = count_of[hook["name"]] = count_of.get(hook["name"], -1) + 1
        hooks.append(_hook(hook, name, f"{name}/{hook['name']}/{n}"))
    return hooks


def _hook(hook: Object, configuration: str, uid: str) -> Hook:
    endpoint, client_error, selector_error = None, "", ""
    try:
        endpoint = endpoint_of(hook["clientConfig"])
    except Unusable as error:
        client_error = error.text
    try:
        criteria = criteria_of_webhook(hook)
    except ValueError as error:
        selector_error = str(error)
        criteria = criteria_of_webhook({**hook, "namespaceSelector": {}, "objectSelector": {}})
    return Hook(
        uid,
        configuration,
        hook["name"],
        criteria,
        endpoint,
        client_error,
        selector_error,
        conditions=hook.get("matchConditions") or (),
        fails_closed=hook.get("failurePolicy") != "Ignore",
        side_effects=hook.get("sideEffects"),
        timeout=hook.get("timeoutSeconds", 10),
        versions=hook.get("admissionReviewVersions") or (),
        reinvoke=hook.get("reinvocationPolicy") == "IfNeeded",
    )
