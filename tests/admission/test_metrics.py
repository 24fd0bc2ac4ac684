"""The numbers of admission: what counts as rejected, which codes, which types of errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from noxu.admission.metrics import AdmissionMetrics, error_type
from noxu.api.errors import ApiError
from noxu.testing import functions
from tests.http.exchanges import MAPS
from tests.http.scrapes import Client, config_map, serving
from tests.rows import rows

REFUSED = ApiError(403, "no", "Forbidden")


def numbers(metrics: AdmissionMetrics, name: str) -> dict[tuple[str, ...], Any]:
    return {
        labels: number if isinstance(number, (int, float)) else sum(list(number)[:-1])
        for family in metrics.families()
        if family.name == name
        for labels, number in family.numbers
    }


def refuse(_: object) -> None:
    raise REFUSED


async def refuse_later(_: object) -> None:
    await asyncio.sleep(0)
    raise REFUSED


# what a step does, whether it refuses
STEPS: dict[str, tuple[Callable[[object], Awaitable[None] | None], str]] = {
    "nothing to wait for": (lambda _: None, "false"),
    "something to wait for": (lambda _: asyncio.sleep(0), "false"),
    "a refusal": (refuse, "true"),
    "a refusal later": (refuse_later, "true"),
}


@pytest.mark.parametrize(("begin", "rejected"), STEPS.values(), ids=STEPS)
async def test_a_step(begin: Callable[[object], Awaitable[None] | None], rejected: str) -> None:
    metrics = AdmissionMetrics()
    try:
        waiting = metrics.step("admit", "CREATE", begin, None)
        if waiting is not None:
            await waiting
    except ApiError as error:
        assert error is REFUSED  # noqa: PT017 - whether it is raised is a column
    name = "apiserver_admission_step_admission_duration_seconds"
    assert numbers(metrics, name) == {("admit", "CREATE", rejected): 1}


def test_a_plugin() -> None:
    metrics = AdmissionMetrics()
    with metrics.plugin("A", "validate", "UPDATE"):
        pass
    with pytest.raises(ApiError), metrics.plugin("A", "validate", "UPDATE"):
        raise REFUSED
    assert numbers(metrics, "apiserver_admission_controller_admission_duration_seconds") == {
        ("A", "validate", "UPDATE", "false"): 1,
        ("A", "validate", "UPDATE", "true"): 1,
    }


TYPES = {
    "compilation error: no such field": "compile_error",
    "compilation failed: x": "compile_error",
    "validation failed due to running out of cost budget, no further validation rules will be run": "out_of_budget",
    "expression 'x' resulted in error: no such key: a": "invalid_error",
    "failed expression: false": "invalid_error",
}


@pytest.mark.parametrize(("message", "expected"), TYPES.items())
def test_the_type_of_an_error(message: str, expected: str) -> None:
    assert error_type(message) == expected


def raising(error: Exception) -> Callable[[Any], None]:
    def function(request: Any) -> None:
        raise error

    return function


# a function in the place of a webhook; what is counted:
# (code, rejected) of the call, (error type, code) of the rejection if there is one
WEBHOOKS: dict[str, tuple[Callable[[Any], Any], bool, tuple[str, str], tuple[str, str] | None, bool]] = {
    "admits": (lambda request: None, True, ("200", "false"), None, False),
    "denies": (raising(functions.Denied("no")), True, ("400", "true"), ("no_error", "400"), False),
    "denies with a code": (
        raising(functions.Denied("no", code=418)), True, ("418", "true"), ("no_error", "418"), False,
    ),
    "denies with a code beyond HTTP": (
        raising(functions.Denied("no", code=700)), True, ("600", "true"), ("no_error", "600"), False,
    ),
    "fails closed": (raising(OSError()), True, ("503", "true"), ("calling_webhook_error", "503"), False),
    "fails open": (raising(OSError()), False, ("503", "false"), None, True),
}  # fmt: skip


@pytest.mark.parametrize("mutating", [False, True], ids=["validating", "mutating"])
@rows(("function", "fails_closed", "call", "rejection", "fails_open"), WEBHOOKS.values(), ids=WEBHOOKS)
async def test_a_webhook_that(
    function: Callable[[Any], Any],
    fails_closed: bool,
    call: tuple[str, str],
    rejection: tuple[str, str] | None,
    fails_open: bool,
    mutating: bool,
) -> None:
    async with serving() as client:
        hook = functions.hook(function, "configmaps", mutating=mutating, name="w")
        hook.fails_closed = fails_closed
        chain = client.server.plane.admission
        (chain.local_mutating if mutating else chain.local_validating).append(hook)
        await client.send("POST", MAPS, config_map("a"))
        step = "admit" if mutating else "validating"
        found = {
            name: numbers(chain.metrics, f"apiserver_admission_webhook_{name}")
            for name in ("request_total", "admission_duration_seconds", "rejection_count", "fail_open_count")
        }
    code, rejected = call
    assert found == {
        "request_total": {("w", step, "CREATE", code, rejected): 1},
        "admission_duration_seconds": {("w", step, "CREATE", rejected): 1},
        "rejection_count": {("w", step, "CREATE", *rejection): 1} if rejection else {},
        "fail_open_count": {("w", step): 1} if fails_open else {},
    }


async def test_a_dry_run_that_a_webhook_does_not_support_is_an_error_of_the_server() -> None:
    async with serving() as client:
        hook = functions.hook(lambda request: None, "configmaps", mutating=False, name="w")
        hook.side_effects = "Some"
        client.server.plane.admission.local_validating.append(hook)
        await client.send("POST", f"{MAPS}?dryRun=All", config_map("a"))
        found = numbers(client.server.plane.admission.metrics, "apiserver_admission_webhook_rejection_count")
    assert found == {("w", "validating", "CREATE", "apiserver_internal_error", "0"): 1}


async def policy(client: Client, expression: str, *actions: str) -> None:
    """A policy about ConfigMaps with its binding."""
    api = "/apis/admissionregistration.k8s.io/v1"
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    spec = {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": expression}]}
    for plural, body in (
        ("validatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": spec}),
        (
            "validatingadmissionpolicybindings",
            {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": list(actions)}},
        ),
    ):
        code, _, text = await client.send("POST", f"{api}/{plural}", body)
        assert code == 201, text


# the expression, what the binding does, (error type, action) of the checks
POLICIES = [
    ("true", ["Deny"], []),
    ("false", ["Deny"], [("invalid_error", "deny")]),
    ("false", ["Warn", "Audit"], [("invalid_error", "warn"), ("invalid_error", "audit")]),
]


@pytest.mark.parametrize(("expression", "actions", "checks"), POLICIES)
async def test_a_policy(expression: str, actions: list[str], checks: list[tuple[str, str]]) -> None:
    async with serving() as client:
        await policy(client, expression, *actions)
        await client.send("POST", MAPS, config_map("a"))
        metrics = client.server.plane.admission.metrics
        for name in ("check_total", "check_duration_seconds"):
            found = numbers(metrics, f"apiserver_validating_admission_policy_{name}")
            assert found == {("p", "b", *check): 1 for check in checks}
