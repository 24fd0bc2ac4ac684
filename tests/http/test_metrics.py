"""/metrics of a server: what a scenario produces, that Prometheus can read it, and that scrapes do not disturb others."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from noxu.config import Audit, Authentication, LeaderElection
from noxu.http.tls import Handshakes
from noxu.testing import functions
from noxu_storage.types import Prefix, Unavailable
from tests.http.exchanges import MAPS
from tests.http.scrapes import Client, config_map, serving
from tests.timing import eventually_async

DOCUMENTED = Path(__file__).parents[2] / "docs" / "metrics.md"


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with serving(leader_election=LeaderElection(enabled=True)) as found:
        yield found


@pytest.mark.slow
async def test_requests_are_counted(client: Client) -> None:
    for name in "ab":
        await client.send("POST", MAPS, config_map(name))
    await client.send("GET", f"{MAPS}/none")
    about = {"resource": "configmaps", "version": "v1", "scope": "resource", "component": "apiserver"}
    assert await client.value("apiserver_request_total", verb="POST", code="201", **about) == 2
    assert await client.value("apiserver_request_total", verb="GET", code="404", **about) == 1
    assert await client.value("apiserver_request_duration_seconds_count", verb="POST", **about) == 2
    assert await client.value("apiserver_request_body_size_bytes_sum", resource="configmaps", verb="create") > 100
    assert await client.value("apiserver_response_sizes_sum", resource="configmaps", verb="GET") > 100


async def test_objects_are_counted_in_collections_that_nothing_has_read_too(client: Client) -> None:
    before = await client.value("apiserver_resource_objects", group="", resource="configmaps")
    await client.send("POST", MAPS, config_map("a"))
    assert await client.value("apiserver_resource_objects", group="", resource="configmaps") == before + 1
    assert await client.value("apiserver_storage_objects", resource="configmaps") == before + 1
    assert await client.value("apiserver_storage_objects", resource="deployments.apps") == 0
    assert "deployments.apps" not in client.server.plane.cache.collections
    assert [dict(labels) for name, labels in await client.scrape() if name == "apiserver_resource_objects"].count(
        {"group": "", "resource": "events"}
    ) == 1


async def test_objects_that_cannot_be_counted_are_minus_one(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    async def count(prefix: Prefix) -> int:
        raise Unavailable("no")

    monkeypatch.setattr(client.server.plane.store, "count", count)
    assert await client.value("apiserver_storage_objects", resource="deployments.apps") == -1


async def test_watches_are_long_running(client: Client) -> None:
    async with client.session.get(f"{client.server.url}{MAPS}?watch=1"):
        about = {"verb": "WATCH", "resource": "configmaps", "scope": "namespace"}
        assert await client.value("apiserver_longrunning_requests", **about) == 1

    async def has_none() -> bool:
        return await client.value("apiserver_longrunning_requests") == 0

    await eventually_async(has_none)


async def test_controllers_have_queues(client: Client) -> None:
    await client.send("POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})
    name = {"name": "serviceaccount-controller"}
    adds, done = "workqueue_adds_total", "workqueue_work_duration_seconds_count"

    async def is_idle() -> bool:
        return await client.value(adds, **name) == await client.value(done, **name) > 0

    await eventually_async(is_idle)
    assert await client.value("workqueue_depth", **name) == 0
    assert await client.value("workqueue_unfinished_work_seconds", **name) == 0
    assert await client.value("workqueue_retries_total", **name) == 0


async def test_the_results_of_health_checks_have_a_page_of_their_own(client: Client) -> None:
    for path in ("/livez", "/livez", "/readyz?exclude=ping"):
        await client.send("GET", path)
    found = await client.scrape("/metrics/slis")
    names = {name for name, _ in found}
    assert names == {"kubernetes_healthcheck", "kubernetes_healthchecks_total", "process_start_time_seconds"}

    def of(**labels: str) -> list[float]:
        return [value for (_, given), value in found.items() if dict(given) == labels]

    assert of(name="ping", type="livez") == [1]
    assert of(name="ping", type="livez", status="success") == [2]
    assert of(name="ping", type="readyz") == []


# path, code
PATHS = [
    ("/metrics", 200), ("/metrics/slis", 200), ("/metrics/", 404), ("/metrics/other", 404), ("/metrics/slis/", 404),
    ("/debug/pprof", 404), ("/debug/pprof/profile", 404), ("/debug/flags/v", 404), ("/statusz", 404), ("/flagz", 404),
    ("/logs", 404), ("/logs/", 404),
]  # fmt: skip


@pytest.mark.parametrize(("path", "code"), PATHS)
async def test_the_paths(client: Client, path: str, code: int) -> None:
    found, content_type, text = await client.send("GET", path)
    assert found == code
    if code == 404:
        assert content_type == "application/json"
        assert '"/metrics"' in text


# who asks, the answer
READERS = [("", 403), ("Bearer m", 200), ("Bearer r", 200), ("Bearer u", 403), ("Bearer bad", 401)]


async def test_who_may_read_metrics(tmp_path: Path) -> None:
    """Upstream's ClusterRole system:monitoring allows it to its group."""
    tokens = tmp_path / "tokens"
    tokens.write_text("m,admin,1,system:masters\nr,prometheus,2,system:monitoring\nu,user,3\n")
    authentication = Authentication(token_auth_file=tokens)
    async with serving(authorization_modes=("RBAC",), authentication=authentication) as client:
        for header, code in READERS:
            found, _, _ = await client.send("GET", "/metrics", **({"Authorization": header} if header else {}))
            assert found == code, header
        assert (await client.send("GET", "/livez"))[0] == 200


def documented() -> list[str]:
    """The names in the tables of the documentation."""
    return re.findall(r"^\| `([a-z0-9_]+)` ", DOCUMENTED.read_text(), re.MULTILINE)


@pytest.mark.slow
async def test_a_scrape_during_load(client: Client) -> None:
    """Each scrape is complete, and counters do not go back."""

    async def write(n: int) -> None:
        for k in range(20):
            await client.send("POST", MAPS, config_map(f"a-{n}-{k}"))

    async def scrape() -> list[float]:
        return [await client.value("apiserver_request_total", verb="POST", resource="configmaps") for _ in range(5)]

    found, *_ = await asyncio.gather(scrape(), *(write(n) for n in range(5)))
    assert found is not None
    assert found == sorted(found)
    assert await client.value("apiserver_request_total", verb="POST", resource="configmaps", code="201") == 100


NOT_PRODUCED = {
    "apiserver_terminated_watchers_total",  # which takes a client that stalls
    "apiserver_tls_handshake_errors_total",  # which takes TLS
    "apiserver_audit_event_total",  # which take an audit log
    "apiserver_audit_level_total",
    "apiserver_audit_error_total",
    "apiserver_audit_requests_rejected_total",
    "etcd_request_errors_total",  # which takes a broken disk
    "apiserver_request_terminations_total",  # which takes too many requests, or slow ones
}
"""By the scenario; they have tests of their own."""


async def test_the_audit_log_counts_events_and_levels(tmp_path: Path) -> None:
    async with serving(audit=Audit(log_path=str(tmp_path / "audit.log"))) as client:
        await client.send("GET", MAPS)
        assert await client.value("apiserver_audit_event_total") == 1  # without a policy: when a request is complete
        assert await client.value("apiserver_audit_level_total", level="Metadata") == 3


async def test_failed_handshakes_are_counted(client: Client) -> None:
    handshakes = Handshakes(client.server.app.handshake_errors)
    for _ in range(3):
        handshakes.failed("127.0.0.1:1", "EOF")
    assert await client.value("apiserver_tls_handshake_errors_total") == 3


async def test_every_metric_of_the_documentation_is_produced(client: Client) -> None:
    await scenario(client)
    async with client.session.get(f"{client.server.url}{MAPS}?watch=1"):
        produced = {name for path in ("/metrics", "/metrics/slis") for name, _ in await client.scrape(path)}
    families = {re.sub("_(bucket|count|sum)$", "", name) for name in produced} | produced
    families |= {name.removesuffix("_total") for name in produced}  # the library's parser adds it to counters
    assert set(documented()) - families == NOT_PRODUCED


async def test_every_metric_is_documented(client: Client) -> None:
    _, _, text = await client.send("GET", "/metrics")
    found = re.findall("^# TYPE ([a-z_]+) ([a-z]+)$", text, re.MULTILINE)
    types = dict(re.findall(r"^\| `([a-z0-9_]+)` \| ([a-z]+) \|", DOCUMENTED.read_text(), re.MULTILINE))
    assert dict(found).items() <= types.items()


async def scenario(client: Client) -> None:
    """Requests that together produce all metrics."""
    await client.send("POST", MAPS, config_map("scenario"))
    await client.send("GET", MAPS)
    await client.send("GET", "/readyz")
    await client.send("GET", "/api/v1/endpoints")
    plane = client.server.plane
    plane.admission.local_validating.append(functions.hook(_fail, "configmaps", mutating=False, name="fails"))
    await client.send("POST", MAPS, config_map("refused"))
    plane.admission.local_validating[0].fails_closed = False
    await client.send("POST", MAPS, config_map("admitted"))
    plane.admission.local_validating.clear()
    for path, body in policies():
        code, _, text = await client.send("POST", f"/apis/admissionregistration.k8s.io/v1/{path}", body)
        assert code == 201, text
    await client.send("POST", MAPS, config_map("denied"))
    await client.send("POST", DEFINITIONS, definition())
    plane.convert_in_process("things.example.com", _turned)
    await client.send(
        "POST", THINGS.format("v1"), {"kind": "Thing", "metadata": {"name": "a"}} | {"apiVersion": "example.com/v1"}
    )
    await client.send("GET", f"{THINGS.format('v2')}/a")
    plane.convert_in_process("things.example.com", _not_turned)
    await client.send("GET", f"{THINGS.format('v2')}/a")


def _fail(request: Any) -> None:
    raise OSError


async def _turned(name: str, request: Any) -> Any:
    converted = [value | {"apiVersion": request["desiredAPIVersion"]} for value in request["objects"]]
    return {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": converted}


async def _not_turned(name: str, request: Any) -> Any:
    return {"uid": request["uid"], "result": {"status": "Failure"}}


def policies() -> list[tuple[str, Any]]:
    """A validating policy that denies the ConfigMap `denied`, and a mutating one; with bindings."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    matched = {"matchConstraints": {"resourceRules": rules}}
    patch = 'Object{metadata: Object.metadata{labels: {"a": "b"}}}'
    mutations = [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": patch}}]
    return [
        (
            "validatingadmissionpolicies",
            _named("p", matched | {"validations": [{"expression": "object.metadata.name != 'denied'"}]}),
        ),
        ("validatingadmissionpolicybindings", _named("b", {"policyName": "p", "validationActions": ["Deny"]})),
        ("mutatingadmissionpolicies", _named("m", matched | {"reinvocationPolicy": "Never", "mutations": mutations})),
        ("mutatingadmissionpolicybindings", _named("c", {"policyName": "m"})),
    ]


def _named(name: str, spec: Any) -> Any:
    return {"metadata": {"name": name}, "spec": spec}


def definition() -> Any:
    rules = [{"rule": "self.metadata.name != 'b'"}, {"rule": "true"}]
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-validations": rules}}
    versions = [{"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v2")]
    names = {"plural": "things", "singular": "thing", "kind": "Thing"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions},
    }


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/example.com/{}/namespaces/default/things"


async def test_rules_are_compiled_with_their_definition_and_evaluated_with_objects(client: Client) -> None:
    """Those of a node are compiled together, once for versions with the same schema; those of an object are evaluated together."""
    compiled, evaluated = (f"apiserver_cel_{name}_duration_seconds_count" for name in ("compilation", "evaluation"))
    await client.send("POST", DEFINITIONS, definition())
    assert (await client.value(compiled), await client.value(evaluated)) == (1, 0)
    for name, code in (("a", 201), ("b", 422)):
        thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}}
        assert (await client.send("POST", THINGS.format("v1"), thing))[0] == code
    await client.send("GET", f"{THINGS.format('v1')}/a")
    assert (await client.value(compiled), await client.value(evaluated)) == (1, 2)
    assert 0 < await client.value("apiserver_cel_evaluation_duration_seconds_sum") < 60


async def test_watches_count_their_events(client: Client) -> None:
    await client.send("POST", MAPS, config_map("a"))
    await client.send("POST", MAPS, config_map("b"))
    about = {"group": "", "resource": "configmaps"}

    async def counted(name: str) -> float:
        return await client.value(f"apiserver_{name}", **about)

    async with client.session.get(f"{client.server.url}{MAPS}?watch=1") as watching:
        await watching.content.readline()
        await watching.content.readline()
        initial = await counted("init_events_total")
        assert initial >= 2
        assert await counted("watch_events_total") == initial
        await client.send("DELETE", f"{MAPS}/a")
        await eventually_async(lambda: _equals(counted("watch_events_total"), initial + 1))
        assert await counted("watch_events_sizes_sum") > 3 * 100
        assert await counted("init_events_total") == initial


async def _equals(found: Awaitable[float], expected: float) -> bool:
    return await found == expected


@pytest.mark.slow
async def test_conversions_count_by_their_versions(client: Client) -> None:
    await scenario(client)
    name, about = "apiserver_crd_conversion_webhook_duration_seconds_count", {"crd_name": "things.example.com"}
    versions = {"from_version": "v1", "to_version": "v2"}
    assert await client.value(name, **about, **versions, succeeded="true") == 1
    assert await client.value(name, **about, **versions, succeeded="false") == 1
    total = "apiserver_conversion_webhook_request_total"
    assert await client.value(total, result="success", failure_type="") == 1
    malformed = "conversion_webhook_malformed_response_failure"
    assert await client.value(total, result="failure", failure_type=malformed) == 1


async def test_the_time_of_webhooks_is_not_part_of_the_sli(client: Client) -> None:
    async def wait(request: Any) -> None:
        await asyncio.sleep(0.06)

    for mutating, hooks in (
        (True, client.server.plane.admission.local_mutating),
        (False, client.server.plane.admission.local_validating),
    ):
        hooks.append(functions.hook(wait, "configmaps", mutating=mutating, name="waits"))
    await client.send("POST", MAPS, config_map("a"))
    sums = [
        await client.value(f"apiserver_request_{part}duration_seconds_sum", verb="POST", resource="configmaps")
        for part in ("", "sli_")
    ]
    assert sums[0] - sums[1] >= 0.12
