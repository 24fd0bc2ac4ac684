"""pods/eviction: a Pod is deleted if its PodDisruptionBudget allows it (pkg/registry/core/pod/storage.EvictionREST)."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from conformance.client import Client
from noxu.testing.handle import Noxu
from tests.http.conftest import Reply, Things
from tests.http.pods import BUDGETS, PODS, Pods, condition

SUCCESS: Final = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
TARGETED: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
REFUSED: Final = "Cannot evict pod as it would violate the pod's disruption budget."


def evict(pods: Pods, query: str = "", /, name: str = "p", **options: Any) -> Reply:
    sent = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return pods.api.ask("POST", f"{PODS}/p/eviction{query}", {**sent, "deleteOptions": options} if options else sent)


def budget_status(pods: Pods, name: str = "b") -> Any:
    return pods.api.ask("GET", f"{BUDGETS}/{name}").body["status"]


# -- without budgets --------------------------------------------------------------------------------------------------


def test_a_pod_is_deleted_gracefully(pods: Pods) -> None:
    pods.run()
    reply = evict(pods)
    assert (reply.code, reply.body) == (201, SUCCESS)
    pod = pods.get().body
    assert (pod["metadata"]["deletionGracePeriodSeconds"], pod["metadata"]["generation"]) == (30, 2)
    assert condition(pod, "DisruptionTarget") == [{**TARGETED, "observedGeneration": 1}]


def test_the_delete_options_are_those_of_the_eviction(pods: Pods) -> None:
    pods.run()
    assert evict(pods, gracePeriodSeconds=7).code == 201
    assert pods.get().body["metadata"]["deletionGracePeriodSeconds"] == 7
    assert evict(pods, gracePeriodSeconds=0).code == 201
    assert pods.get().code == 404


def test_an_eviction_without_kind(pods: Pods) -> None:
    pods.create()
    assert pods.api.ask("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}}).code == 201
    assert pods.get().code == 404


@pytest.mark.parametrize(
    ("query", "options"), [("?dryRun=All", {}), ("", {"dryRun": ["All"]}), ("?dryRun=All", {"dryRun": ["All"]})]
)
def test_a_dry_run_evicts_nothing(pods: Pods, query: str, options: Any) -> None:
    before = pods.run()
    pods.budget(disruptionsAllowed=1)
    budget = budget_status(pods)
    assert evict(pods, query, **options).body == SUCCESS
    assert (pods.get().body, budget_status(pods)) == (before, budget)


WRONG: list[tuple[str, Any, int, str]] = [
    ("another name", {"metadata": {"name": "q"}}, 400, "name in URL does not match name in Eviction object"),
    ("no name", {}, 400, "name in URL does not match name in Eviction object"),
    ("another policy", {"metadata": {"name": "p"}, "deleteOptions": {"propagationPolicy": "x"}}, 422,
     'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "x": supported values: '
     '"Foreground", "Background", "Orphan", "nil"'),
    ("another uid", {"metadata": {"name": "p"}, "deleteOptions": {"preconditions": {"uid": "x"}}}, 409,
     'Operation cannot be fulfilled on Pod "p": the UID in the precondition (x) does not match the UID in record ('),
    ("another version", {"metadata": {"name": "p"}, "deleteOptions": {"preconditions": {"resourceVersion": "1"}}}, 409,
     'Operation cannot be fulfilled on Pod "p": the ResourceVersion in the precondition (1) does not match'),
    ("another kind", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}}, 400, ""),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "code", "message"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_an_eviction_that_is_refused(pods: Pods, sent: Any, code: int, message: str) -> None:
    before = pods.run()
    reply = pods.api.ask("POST", f"{PODS}/p/eviction", sent)
    assert (reply.code, reply.message[: len(message)]) == (code, message)
    assert pods.get().body == before


def test_a_pod_that_does_not_exist(pods: Pods) -> None:
    reply = evict(pods)
    assert (reply.code, reply.message) == (404, 'pods "p" not found')


def test_the_version_of_the_pod_is_a_precondition_that_holds(pods: Pods) -> None:
    pod = pods.run()
    reply = evict(pods, preconditions={"resourceVersion": pod["metadata"]["resourceVersion"]}, gracePeriodSeconds=0)
    assert (reply.code, pods.get().code) == (201, 404)


# -- with budgets -----------------------------------------------------------------------------------------------------


def test_a_budget_that_allows_a_disruption_gives_one_away(pods: Pods) -> None:
    pods.run()
    pods.budget(disruptionsAllowed=2, currentHealthy=3, desiredHealthy=1)
    assert evict(pods).code == 201
    status = budget_status(pods)
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (1, ["p"])
    assert "conditions" not in status


def test_the_last_disruption_is_a_condition_of_the_budget(pods: Pods) -> None:
    pods.run()
    pods.budget(disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)
    assert evict(pods).code == 201
    status = budget_status(pods)
    [found] = status["conditions"]
    del found["lastTransitionTime"]
    assert found == {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": 1,
        "reason": "InsufficientPods",
        "message": "",
    }
    managers = pods.api.ask("GET", f"{BUDGETS}/b").body["metadata"]["managedFields"]
    assert [(each["manager"], each["subresource"]) for each in managers if each["manager"] == "kube-apiserver"] == [
        ("kube-apiserver", "status")
    ]


def test_a_budget_that_allows_none(pods: Pods) -> None:
    before = pods.run()
    pods.budget(disruptionsAllowed=0, currentHealthy=1, desiredHealthy=2)
    reply = evict(pods)
    cause = {
        "reason": "DisruptionBudget",
        "message": "The disruption budget b needs 2 healthy pods and has 1 currently",
    }
    assert (reply.code, reply.message, reply.body["reason"]) == (429, REFUSED, "TooManyRequests")
    assert reply.body["details"] == {"causes": [cause]}
    assert pods.get().body == before


def test_a_refusal_says_when_to_try_again_if_it_knows(pods: Pods, served: Client) -> None:
    pods.run()
    sent = json.dumps({"metadata": {"name": "p"}}).encode()
    found = []
    for observed in (0, 1):
        pods.budget(observedGeneration=observed)
        _, headers, _ = served.exchange("POST", f"{PODS}/p/eviction", sent, {"Content-Type": "application/json"})
        found.append([value for name, value in headers if name == "Retry-After"])
        pods.api.ask("DELETE", BUDGETS)
    assert found == [["10"], []]


def test_a_budget_that_is_not_observed_yet(pods: Pods) -> None:
    pods.run()
    pods.budget(disruptionsAllowed=1, observedGeneration=0)
    reply = evict(pods)
    cause = {
        "reason": "DisruptionBudget",
        "message": "The disruption budget b is still being processed by the server.",
    }
    assert (reply.code, reply.message) == (429, REFUSED)
    assert reply.body["details"] == {"causes": [cause], "retryAfterSeconds": 10}


def test_several_budgets_are_a_failure_that_was_created(pods: Pods) -> None:
    pods.run()
    pods.budget("b", disruptionsAllowed=1)
    pods.budget("c", disruptionsAllowed=1)
    reply = evict(pods)
    why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    assert (reply.code, reply.body) == (201, {**SUCCESS, "status": "Failure", "message": why, "code": 500})
    assert "deletionTimestamp" not in pods.get().body["metadata"]


def test_evictions_at_the_same_time_take_no_more_than_the_budget_allows(pods: Pods, noxu_session: Noxu) -> None:
    names = [f"p{n}" for n in range(8)]
    for name in names:
        pods.run(name)
    pods.budget(disruptionsAllowed=3)

    def ask(name: str) -> int:
        with Client(noxu_session.url) as client:
            body = {"metadata": {"name": name}}
            return Things(client).ask("POST", f"{PODS}/{name}/eviction", body).code

    with ThreadPoolExecutor(len(names)) as threads:
        codes = sorted(threads.map(ask, names))
    assert codes == [201] * 3 + [429] * 5
    status = budget_status(pods)
    assert (status["disruptionsAllowed"], len(status["disruptedPods"])) == (0, 3)


SELECTORS = [
    ("all Pods", {}, 429),
    ("an expression", {"matchExpressions": [{"key": "app", "operator": "Exists"}]}, 429),
    ("other Pods", {"matchLabels": {"app": "b"}}, 201),
]


@pytest.mark.parametrize(("selector", "code"), [row[1:] for row in SELECTORS], ids=[row[0] for row in SELECTORS])
def test_a_budget_selects_pods(pods: Pods, selector: Any, code: int) -> None:
    pods.run()
    pods.budget(selector=selector)
    assert evict(pods).code == code


UNASKED = [("it is pending", "Pending"), ("it succeeded", "Succeeded"), ("it failed", "Failed")]


@pytest.mark.parametrize("phase", [row[1] for row in UNASKED], ids=[row[0] for row in UNASKED])
def test_a_pod_that_does_not_run_needs_no_budget(pods: Pods, phase: str) -> None:
    pods.run(phase=phase)
    pods.budget("b")
    pods.budget("c")
    assert evict(pods).body == SUCCESS


def test_a_pod_that_is_being_deleted_needs_no_budget(pods: Pods) -> None:
    pods.run()
    pods.api.ask("DELETE", f"{PODS}/p")
    pods.budget()
    assert evict(pods, gracePeriodSeconds=0).code == 201
    assert pods.get().code == 404


HEALTHY: Final[dict[str, Any]] = {"currentHealthy": 1, "desiredHealthy": 1}
UNREADY: list[tuple[str, Any, Any, int]] = [
    ("enough others are ready", {}, HEALTHY, 201),
    ("too few others are ready", {}, {"currentHealthy": 0, "desiredHealthy": 1}, 429),
    ("none has to be ready", {}, {}, 429),
    ("if there is a budget for it", {"unhealthyPodEvictionPolicy": "IfHealthyBudget"}, HEALTHY, 201),
    ("always", {"unhealthyPodEvictionPolicy": "AlwaysAllow"}, {"desiredHealthy": 1}, 201),
]


@pytest.mark.parametrize(("spec", "status", "code"), [row[1:] for row in UNREADY], ids=[row[0] for row in UNREADY])
def test_a_pod_that_is_not_ready(pods: Pods, spec: Any, status: Any, code: int) -> None:
    pods.run(ready=False)
    pods.budget(spec=spec, **status)
    before = budget_status(pods)
    assert evict(pods).code == code
    assert budget_status(pods) == before


def test_a_ready_pod_is_not_evicted_because_unhealthy_ones_may_be(pods: Pods) -> None:
    pods.run()
    pods.budget(spec={"unhealthyPodEvictionPolicy": "AlwaysAllow"}, **HEALTHY)
    assert evict(pods).code == 429


def test_a_budget_with_too_many_evicted_pods(pods: Pods) -> None:
    pods.run()
    pods.budget()
    pods.set_status(f"{BUDGETS}/b", disruptedPods={f"p{n}": "2026-01-02T03:04:05Z" for n in range(2001)})
    reply = evict(pods)
    why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
    assert (reply.code, reply.message) == (403, f'poddisruptionbudget.policy "b" is forbidden: {why}')
