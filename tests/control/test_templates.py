"""Servers from one template: each is what it would be without it, and sees nothing of the others."""

from __future__ import annotations

import contextlib
import gc
import json
import re
import tracemalloc
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from noxu.api.errors import plain_error
from noxu.config import Config, NotLoadedError, TlsOptions
from noxu.control import templates
from noxu.control.templates import Template, has_tokens, is_possible, make
from noxu.controllers import definitions as definitions_controller
from noxu.controllers.controller import Reconciler
from noxu.controllers.namespace_objects import ServiceAccountController
from noxu.crd import validation
from noxu.discovery import groups, openapi
from noxu.http.webhooks import WebhookClient
from noxu.manifests.documents import Document, read
from noxu.process.server import Server
from noxu.registry import custom
from noxu.registry.access import AccessAttributes, User
from noxu.schema import structural
from noxu.security.credentials import ADMINISTRATOR
from noxu.values import Object
from tests.clocks import ManualClock
from tests.control.other_servers import ask, objects, settled
from tests.timing import eventually_async

NAMES = ("widgets", "gadgets")


def definition(plural: str, **spec: Any) -> str:
    kind = plural.removesuffix("s").capitalize()
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 1}}}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    value = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [version],
            **spec,
        },
    }
    return json.dumps(value)


TWO_VERSIONS = [
    {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": {"type": "object"}}}
    for name in ("v1", "v2")
]
CONVERTED = definition(
    "things",
    versions=TWO_VERSIONS,
    conversion={
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://localhost:1/convert"}},
    },
)
MANIFESTS = "\n---\n".join(
    [
        *map(definition, NAMES),
        CONVERTED,
        json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"a": "b"}}}),
        json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"a": "b"}}}),
        """
apiVersion: example.com/v1
kind: Widget
metadata: {name: w, namespace: team}
""",
        """
apiVersion: v1
kind: Service
metadata: {name: s, namespace: team}
spec: {ports: [{port: 80}]}
""",
        """
apiVersion: v1
kind: ResourceQuota
metadata: {name: q, namespace: team}
spec: {hard: {count/configmaps: "2"}}
""",
        """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [gadgets]}]
  validations: [{expression: "object.spec.size < 9"}]
""",
        """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p}
spec: {policyName: p, validationActions: [Deny]}
""",
    ]
)


def documents(text: str = MANIFESTS) -> list[Document]:
    return list(read(text.encode(), "text"))


CONFIG = Config(port=0)


@contextlib.asynccontextmanager
async def started(template: Template | None, config: Config = CONFIG, text: str = "") -> AsyncIterator[Server]:
    async with Server(config, documents(text) if text else (), template=template) as server:
        yield server


async def made(text: str = MANIFESTS, config: Config = CONFIG, parent: Template | None = None) -> Template:
    caller = WebhookClient({})
    try:
        return await make(config, documents(text) if text else (), caller, parent)
    finally:
        await caller.close()


@pytest.fixture
async def template() -> Template:
    return await made()


def _without_what_differs(text: str) -> str:
    """Without uids, times, ports and addresses."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "UID", text)
    text = re.sub(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME", text)
    text = re.sub(r'("(targetPort|port)"): ?\d{5}\b', r"\1:PORT", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "HOST", text)
    return re.sub(r"10\.0\.0\.\d+", "ADDRESS", text)  # of Services: random


async def comparable(server: Server) -> dict[str, str]:
    """All objects without what differs. Managers are in the order of their names, and not of their times, too."""
    found = {key: json.loads(text) for key, text in (await objects(server)).items()}
    for value in found.values():
        value["metadata"].get("managedFields", []).sort(key=json.dumps)
    return {key: _without_what_differs(json.dumps(value)) for key, value in found.items()}


# -- as without a template


async def test_a_server_has_what_it_would_have_without_a_template(template: Template) -> None:
    """All objects, in their bytes; discovery, OpenAPI and the order of what they list."""
    paths = ["/apis", "/api/v1", "/apis/example.com/v1", "/openapi/v2", "/openapi/v3/apis/example.com/v1", "/version"]
    async with started(None, text=MANIFESTS) as plain, started(template) as other:
        await settled(plain)
        for path in paths:
            answers = [json.dumps(await ask(server, path)) for server in (plain, other)]
            assert _without_what_differs(answers[0]) == _without_what_differs(answers[1]), path
        assert await comparable(plain) == await comparable(other)


async def test_a_template_may_begin_with_another_one(template: Template) -> None:
    parent = await made("")
    async with started(await made(parent=parent)) as one, started(template) as other:
        assert await comparable(one) == await comparable(other)
    async with started(parent) as empty:
        assert not empty.plane.served_resources.current.defined


def _counting(function: Callable[..., Any], name: str, calls: list[str]) -> Callable[..., Any]:
    """A function that notes its calls."""

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        return function(*args, **kwargs)

    return counted


async def test_nothing_is_written_parsed_validated_or_reconciled_again(
    template: Template, monkeypatch: pytest.MonkeyPatch
) -> None:
    work: list[str] = []
    for module, name in (
        (custom, "versions_of"),
        (structural, "parse"),
        (validation, "validate_definition" if hasattr(validation, "validate_definition") else "validate"),
        (definitions_controller.DefinitionController, "_parse"),
        (Reconciler, "_attempt"),
    ):
        monkeypatch.setattr(module, name, _counting(getattr(module, name), name, work))
    async with started(template) as server:
        assert server.plane.store.revision == template.base.revision
        assert work == []
        async with started(None, text=definition("others")):
            assert {"versions_of", "_parse", "_attempt"} <= set(work)  # what is counted is what does the work


async def test_what_one_server_compiles_the_next_one_finds_compiled(template: Template) -> None:
    async with started(template) as one, started(template) as other:
        found = [server.plane.served_resources.current.find("example.com", "v1", "widgets") for server in (one, other)]
        assert found[0] is found[1] is not None
        await ask(one, "/apis/example.com/v1/namespaces/team/widgets/w")
        assert "schema" in vars(found[1])


async def test_documents_for_clients_are_made_once(template: Template, monkeypatch: pytest.MonkeyPatch) -> None:
    work: list[str] = []
    for module, name in ((groups, "aggregated"), (openapi, "_assemble")):
        monkeypatch.setattr(module, name, _counting(getattr(module, name), name, work))
    paths = ["/openapi/v2", "/openapi/v3", "/openapi/v3/apis/example.com/v1"]
    async with started(template) as one, started(template) as other:
        first = [await ask(one, path) for path in paths] + [await discovery(one)]
        assert set(work) == {"aggregated", "_assemble"}
        work.clear()
        assert [await ask(other, path) for path in paths] + [await discovery(other)] == first
        assert work == []
        await ask(other, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.example.com", "DELETE")
        await eventually_async(lambda: "gadgets.example.com" not in other.plane.served_resources.current.defined)
        assert "gadgets" not in str(await discovery(other)) + str(await ask(other, "/openapi/v2"))
        assert [await ask(one, path) for path in paths] + [await discovery(one)] == first


async def discovery(server: Server) -> Any:
    headers = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    async with aiohttp.ClientSession() as session, session.get(f"{server.url}/apis", headers=headers) as answer:
        return await answer.json()


# -- what a server has of its own


async def test_servers_differ_in_what_is_about_them(template: Template) -> None:
    async with started(template) as one, started(template) as other:
        values = [await objects(server) for server in (one, other)]
        different = {key for key, text in values[0].items() if text != values[1][key]}
        assert "/namespaces  kube-system" in different
        kinds = {json.loads(values[0][key])["kind"] for key in different}
        assert kinds == {"Namespace", "Service", "Endpoints", "EndpointSlice", "Lease"}
        for server, stored in zip((one, other), values, strict=True):
            service = json.loads(stored["/services default/ kubernetes"])
            assert service["spec"]["ports"][0]["targetPort"] == server.listeners.port
        labels = json.loads(values[0]["/namespaces  default"])["metadata"]["labels"]
        assert labels == {"a": "b", "kubernetes.io/metadata.name": "default"}  # as the manifest has changed it


async def test_over_tls_each_server_publishes_its_own_authority(template: Template) -> None:
    config = Config(port=0, tls=TlsOptions())
    async with started(template, config) as one, started(template, config) as other:
        for server in (one, other):
            assert server.secured is not None
            await settled(server)
            published = json.loads((await objects(server))["/configmaps team/ kube-root-ca.crt"])["data"]["ca.crt"]
            assert published == server.secured.certificate_authority.decode()


RBAC = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reads, labels: {rbac.authorization.k8s.io/aggregate-to-view: "true"}}
rules: [{apiGroups: [example.com], resources: [widgets], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: jane}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reads}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: eve, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reads}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}]
"""


async def test_roles_and_bindings_count_in_each_server_by_itself() -> None:
    config = Config(port=0, authorization_modes=("RBAC",))
    template = await made(RBAC, config)

    def allowed(server: Server, user: str, namespace: str = "") -> bool:
        asked = AccessAttributes(User(user), "get", group="example.com", resource="widgets", namespace=namespace)
        return server.plane.authorize(asked).allowed

    async with started(template, config) as one, started(template, config) as other:
        for server in (one, other):
            assert (allowed(server, "jane"), allowed(server, "eve"), allowed(server, "eve", "default")) == (
                True,
                False,
                True,
            )
        token = one.plane.static_tokens.issue(ADMINISTRATOR)
        roles = f"{one.url}/apis/rbac.authorization.k8s.io/v1"
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session:
            for path in ("clusterrolebindings/jane", "namespaces/default/rolebindings/eve"):
                async with session.delete(f"{roles}/{path}") as answer:
                    assert answer.status == 200
        assert not any(allowed(one, user, "default") for user in ("jane", "eve"))
        assert all(allowed(other, user, "default") for user in ("jane", "eve"))
        view = json.loads((await objects(other))["rbac.authorization.k8s.io/clusterroles  view"])
        assert {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get"]} in view["rules"]


async def test_a_webhook_that_converts_is_called_by_each_server_itself(template: Template) -> None:
    async with started(template) as one, started(template) as other:
        versions = [server.plane.served_resources.current.defined["things.example.com"] for server in (one, other)]
        assert versions[0].converter is not None
        assert versions[0].converter is not versions[1].converter
        assert versions[0] is not versions[1]


async def test_secrets_with_tokens_are_noticed() -> None:
    account = json.dumps({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}})
    annotations = {"kubernetes.io/service-account.name": "a"}
    secret = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/service-account-token",
            "metadata": {"name": "t", "annotations": annotations},
        }
    )
    assert has_tokens(await made(f"{account}\n---\n{secret}"))
    assert not has_tokens(await made(account))


# -- nothing is shared that changes


def custom_object(kind: str, name: str, size: int) -> Object:
    return {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": name}, "spec": {"size": size}}


async def changes(server: Server) -> None:
    """Write, change and delete whatever the template has."""
    widgets = "/apis/example.com/v1/namespaces/team/widgets"
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await ask(server, widgets, "POST", custom_object("Widget", "mine", 3), code=201)
    await ask(server, f"{widgets}/w", "PATCH", {"spec": {"size": 4}})
    await ask(server, "/api/v1/namespaces/team", "PATCH", {"metadata": {"labels": {"mine": "x"}}})
    await ask(server, "/api/v1/namespaces", "POST", {"metadata": {"name": "mine"}}, code=201)
    status = {"status": {"conditions": [{"type": "Mine", "status": "True", "reason": "a", "message": ""}]}}
    await ask(server, f"{crds}/widgets.example.com/status", "PATCH", status)
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"mine": {"type": "string"}}}}}
    crd = await ask(server, f"{crds}/gadgets.example.com")
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    await ask(server, f"{crds}/gadgets.example.com", "PUT", crd)
    await ask(server, crds, "POST", json.loads(definition("mines")), code=201)
    server.plane.convert_in_process("things.example.com", _unused)
    await ask(server, f"{crds}/widgets.example.com", "DELETE")
    await ask(server, "/api/v1/namespaces/team", "DELETE")
    await settled(server)


async def _unused(_: str, request: Object) -> Object:
    return request


async def test_what_one_server_changes_no_other_sees(template: Template) -> None:
    base = template.base
    before = {name: dict(events) for name, events in base.collections.items()}
    entries = {collection.name: dict(collection.entries) for collection in template.collections}
    async with started(template) as server, started(template) as untouched, started(template) as reference:
        seen, before_all = await objects(untouched), await comparable(untouched)
        converter = untouched.plane.served_resources.current.defined["things.example.com"].converter
        await changes(server)
        assert await objects(untouched) == seen
        assert untouched.plane.store.revision == base.revision
        assert untouched.plane.served_resources.current.defined["things.example.com"].converter is converter
        for versions in untouched.plane.served_resources.current.defined.values():
            assert (versions.terminating, versions.deletes_instances) == (False, False)
        for path in ("/apis/example.com/v1", "/openapi/v3/apis/example.com/v1", "/openapi/v2"):
            assert await ask(untouched, path) == await ask(reference, path)
        await changes(untouched)  # all of it is possible there, too
        assert {name: dict(events) for name, events in base.collections.items()} == before
        for collection in template.collections:
            assert collection.entries == entries[collection.name]
            assert collection.keys == sorted(collection.entries)
    async with started(template) as later:
        assert await comparable(later) == before_all


async def test_controllers_go_on_from_where_those_of_the_template_were(template: Template) -> None:
    async with started(template) as server:
        names = {"group": "example.com", "names": {"plural": "others", "kind": "Widget", "listKind": "OtherList"}}
        taken = json.loads(definition("others", **names))
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        await ask(server, crds, "POST", taken, code=201)
        crd = await ask(server, f"{crds}/others.example.com")
        accepted = {condition["type"]: condition for condition in crd["status"]["conditions"]}["NamesAccepted"]
        assert (accepted["status"], accepted["message"]) == ("False", '"Widget" is already in use')
        service = json.loads((await objects(server))["/services team/ s"])
        again = {"metadata": {"name": "t"}, "spec": {"ports": [{"port": 1}], "clusterIP": service["spec"]["clusterIP"]}}
        refused = await ask(server, "/api/v1/namespaces/team/services", "POST", again, code=422)
        assert "provided IP is already allocated" in refused["message"]
        for name, code in (("a", 201), ("b", 403)):  # the quota counts kube-root-ca.crt, too
            await ask(server, "/api/v1/namespaces/team/configmaps", "POST", {"metadata": {"name": name}}, code=code)
        gadgets = "/apis/example.com/v1/namespaces/team/gadgets"
        await ask(server, gadgets, "POST", custom_object("Gadget", "g", 9), code=422)  # the policy
        await ask(server, "/api/v1/namespaces", "POST", {"metadata": {"name": "n"}}, code=201)
        await settled(server)
        assert {"/serviceaccounts n/ default", "/configmaps n/ kube-root-ca.crt"} <= (await objects(server)).keys()


async def test_what_has_failed_in_the_template_is_tried_again_in_each_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as what a webhook refuses that does not run yet."""
    reconcile = ServiceAccountController.reconcile

    async def fail(controller: ServiceAccountController, namespace: str) -> None:
        if namespace == "team":
            raise plain_error("not yet")
        await reconcile(controller, namespace)

    monkeypatch.setattr(ServiceAccountController, "reconcile", fail)
    template = await made()
    async with started(template) as server:
        assert "/serviceaccounts team/ default" not in await objects(server)
        monkeypatch.setattr(ServiceAccountController, "reconcile", reconcile)
        await eventually_async(lambda: server.plane.store.revision > template.base.revision)
        await settled(server)
        assert "/serviceaccounts team/ default" in await objects(server)


async def test_revisions_go_on_and_the_past_is_the_creation_of_what_is_there(template: Template) -> None:
    async with started(template) as server:
        widget = await ask(server, "/apis/example.com/v1/namespaces/team/widgets/w")
        since = widget["metadata"]["resourceVersion"]
        created = await ask(server, "/api/v1/namespaces/default/secrets", "POST", {"metadata": {"name": "a"}}, code=201)
        assert int(created["metadata"]["resourceVersion"]) == template.base.revision + 1
        url = f"{server.url}/api/v1/services?watch=true&resourceVersion={since}&timeoutSeconds=1"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            lines = [json.loads(line) async for line in answer.content]
        assert [(line["type"], line["object"]["metadata"]["name"]) for line in lines] == [("ADDED", "s")]


# -- limits and errors


@pytest.mark.parametrize("count", [1, 40], ids=["one definition", "forty definitions"])
async def test_a_server_takes_less_than_100_kb_whatever_its_template_holds(count: int) -> None:
    template = await made("\n---\n".join([*(definition(f"k{n}s") for n in range(count)), CONVERTED]))
    servers = 10
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(3):
            await stack.enter_async_context(started(template))
        gc.collect()
        tracemalloc.start()
        try:
            for _ in range(servers):
                await stack.enter_async_context(started(template))
            gc.collect()
            size, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert size / servers < 100_000


async def test_objects_that_are_refused_are_errors_as_for_a_server() -> None:
    with pytest.raises(NotLoadedError, match=r'text:1:\d+: .*"widgets.example.com" is invalid'):
        await made(definition("widgets", scope="Nowhere"))


POSSIBLE: dict[str, tuple[Config, dict[str, Any], bool]] = {
    "in memory": (CONFIG, {}, True),
    "over TLS": (Config(tls=TlsOptions()), {}, True),
    "in a file": (Config(data=Path("data")), {}, False),
    "with another clock": (CONFIG, {"clock": ManualClock()}, False),
    "annotating": (Config(annotate_invalid=True), {}, False),
}


@pytest.mark.parametrize("name", POSSIBLE)
def test_servers_that_can_begin_with_a_template(name: str) -> None:
    config, arguments, expected = POSSIBLE[name]
    assert is_possible(config, **arguments) is expected


async def test_a_template_of_another_configuration_is_refused(template: Template) -> None:
    with pytest.raises(ValueError, match="another configuration"):
        async with started(template, Config(port=0, profile="envtest")):
            pass


async def test_objects_of_other_configurations_differ() -> None:
    assert templates.shared(Config(port=1, host="::1")) == templates.shared(CONFIG)
    assert templates.shared(Config(profile="envtest")) != templates.shared(CONFIG)
    assert (await made("", Config(profile="envtest"))).base.keys < (await made("")).base.keys
