"""Tenants over HTTP: what a call makes, how long it lives, and that nothing of it is left."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import sys
import threading
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, cast

import aiohttp
import pytest
import yaml

from noxu.api.errors import ApiError
from noxu.config import Config, StartError, TlsOptions
from noxu.control import templates
from noxu.control.running import Control
from noxu.control.tenants import DEFAULT_TTL, MAX_TTL, STOPS, Tenants, WantedTenant
from noxu.manifests.documents import Document
from noxu.manifests.watch import FileWatch
from noxu.process.running import new_loop_factory
from noxu.process.server import Server
from noxu.registry.access import User
from noxu.security.kubeconfig import Access
from noxu.testing.sources import documents
from noxu.values import Object
from tests.clocks import ManualClock
from tests.definitions import widgets
from tests.process.test_tenancy import MAPS, PLAIN, ask, asking, config_map, names, names_of_groups, open_files
from tests.rows import rows
from tests.timing import eventually_async, hang_guard, loop_turns

PATH = "/_noxu/tenants"
CRDS = "apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "apiVersion: apiextensions.k8s.io/v1\n" + yaml.safe_dump(
    {k: v for k, v in widgets().items() if k != "apiVersion"}
)
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "default"}}
BROKEN = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "x"}}


class Reply(NamedTuple):
    code: int
    value: Any


class Caller:
    """A client of `/_noxu/tenants`."""

    def __init__(self, server: Server, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.session = session

    async def __call__(self, method: str, tenant: str = "", /, **body: Any) -> Reply:
        path = f"{self.server.url}{PATH}{f'/{tenant}' if tenant else ''}"
        async with self.session.request(method, path, json=body if method == "POST" else None) as answer:
            return Reply(answer.status, json.loads(await answer.read()))

    async def create(self, **body: Any) -> Object:
        code, value = await self("POST", **body)
        assert code == 201, value
        return value

    async def listed(self) -> list[str]:
        return [each["name"] for each in (await self("GET")).value["items"]]

    async def hold(self, **body: Any) -> tuple[aiohttp.ClientResponse, Object]:
        answer = await self.session.post(f"{self.server.url}{PATH}", json={"hold": True, **body})
        assert answer.status == 201
        return answer, json.loads(await answer.content.readline())


@contextlib.asynccontextmanager
async def calling(server: Server) -> AsyncIterator[Caller]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
        yield Caller(server, session)


@pytest.fixture
async def call() -> AsyncIterator[Caller]:
    # its controllers never begin anything by themselves, which tests would take for what is left of a tenant
    async with Server(PLAIN, clock=ManualClock()) as server, calling(server) as caller:
        yield caller


def is_gone(url: str) -> bool:
    """Whether nothing listens there: the port can be taken. A connection would be one more thing for a server that stops."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", int(url.rpartition(":")[2])))
        except OSError:
            return False
    return True


async def ended(tenant: Object) -> None:
    await eventually_async(lambda: is_gone(tenant["url"]))


async def groups(url: str) -> set[str]:
    return names_of_groups(await ask(Access(url), "GET", "/apis"))


# -- what a call makes


async def test_a_tenant_is_created_listed_shown_and_deleted(call: Caller) -> None:
    made = await call.create(name="a")
    assert sorted(made) == ["created", "expires", "from", "hold", "kubeconfig", "name", "ttl", "url"]
    assert (made["name"], made["from"], made["hold"], made["ttl"]) == ("a", "template", False, "1h0m0s")
    assert names(await ask(Access(made["url"]), "GET", "/api/v1/namespaces")) >= {"default"}
    shown = {name: value for name, value in made.items() if name != "kubeconfig"}
    assert await call("GET") == (200, {"items": [shown], "limit": 1000})
    assert await call("GET", "a") == (200, made)
    assert await call("DELETE", "a") == (200, shown)
    assert is_gone(made["url"])
    assert await call("GET") == (200, {"items": [], "limit": 1000})


async def test_its_kubeconfig_has_what_its_administrator_needs(call: Caller) -> None:
    made = await call.create()
    config = yaml.safe_load(made["kubeconfig"])
    assert config["clusters"][0]["cluster"]["server"] == made["url"]
    assert config["current-context"] == config["contexts"][0]["name"]


@pytest.mark.parametrize("tls", [False, True], ids=["over HTTP", "over TLS"])
async def test_with_rbac_the_kubeconfig_has_credentials_that_the_list_does_not_show(tls: bool) -> None:
    async with Server(Config(port=0, tls=TlsOptions() if tls else None, authorization_modes=("RBAC",))) as server:
        async with asking(server.access()) as administrator:
            made = (await administrator.send("POST", PATH, value={})).value
            listed = (await administrator.send("GET", PATH)).value
            cluster, user = (yaml.safe_load(made["kubeconfig"])[key][0] for key in ("clusters", "users"))
            parts = [cluster["cluster"].get("certificate-authority-data", "")]
            parts += [user["user"].get(f"client-{part}-data", "") for part in ("certificate", "key")]
            ca, certificate, key = map(b64decode, parts)
            access = Access(made["url"], ca, certificate, key, user["user"].get("token", ""))
            assert names(await ask(access, "GET", "/api/v1/namespaces")) >= {"default"}
            assert set(user["user"]) == ({"client-certificate-data", "client-key-data"} if tls else {"token"})
            for secret in (*user["user"].values(), "kubeconfig"):
                assert secret not in json.dumps(listed)
        assert await ask(Access(server.url, access.certificate_authority), "POST", PATH, {}) in (401, 403)
        token = server.plane.static_tokens.issue(User("ann", "", ()))
        assert await ask(Access(server.url, access.certificate_authority, token=token), "POST", PATH, {}) == 403


async def test_without_a_name_it_has_one_that_is_free(call: Caller) -> None:
    made = [(await call.create())["name"] for _ in range(3)]
    assert len(set(made)) == 3
    assert all(name.startswith("tenant-") for name in made)
    assert await call.listed() == made


async def test_tenants_do_not_see_each_other(call: Caller) -> None:
    made = await asyncio.gather(*[call.create(name=f"t{number}") for number in range(5)])
    for each in made:
        await ask(Access(each["url"]), "POST", MAPS, config_map(each["name"]))
    for each in made:
        found = names(await ask(Access(each["url"]), "GET", MAPS))
        assert found == {each["name"], "kube-root-ca.crt"}


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("a field that is misspelt", {"nmae": "a"}, 'there is no field "nmae" of /_noxu/tenants, which takes name, from, manifests, hold, ttl; did you mean name?'),
    ("a name with a dot", {"name": "a.b"}, "name: must not contain dots"),
    ("a name with capitals", {"name": "A"}, "name: a lowercase RFC 1123 label must consist of lower case alphanumeric characters"),
    ("a name that is too long", {"name": "a" * 64}, "name: must be no more than 63 characters"),
    ("a number for a name", {"name": 1}, "name: expected a text"),
    ("another source", {"from": "templates"}, "from: 'templates' is none of template, empty; did you mean template?"),
    ("a source that is none", {"from": {"snapshots": "a"}}, 'from: expected template, empty, or {"snapshot": NAME}'),
    ("no time", {"ttl": "0s"}, "ttl: a tenant lives for more than 0s, and for 8760h at most"),
    ("a time before now", {"ttl": "-1h"}, "ttl: a tenant lives for more than 0s"),
    ("too long a time", {"ttl": "8761h"}, "ttl: a tenant lives for more than 0s, and for 8760h at most"),
    ("no duration", {"ttl": "soon"}, 'ttl: expected a duration such as "1m30s", or seconds, not "soon"'),
    ("manifests that are no list", {"manifests": {}}, "manifests: expected a list of objects, and of texts in YAML or JSON"),
    ("manifests with a number", {"manifests": [1]}, "manifests: expected a list of objects, and of texts in YAML or JSON"),
    ("a text without a kind", {"manifests": ["a: 1\n"]}, "the tenant does not start: manifests[0]: not a Kubernetes object: it has no kind"),
    ("malformed YAML", {"manifests": [WIDGETS, "a: [\n"]}, "the tenant does not start: manifests[1]"),
    ("a definition that is invalid", {"manifests": [BROKEN]}, "the tenant does not start: manifests[0]"),
    ("an object without its definition", {"manifests": [WIDGET]}, "the tenant does not start: manifests[0]"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
async def test_what_is_wrong_is_said_and_nothing_is_made(call: Caller, body: dict[str, Any], message: str) -> None:
    await call.listed()  # from here on there is a connection
    files, tasks = open_files(), len(asyncio.all_tasks())
    code, status = await call("POST", **body)
    assert (code, status["kind"], status["reason"]) == (422, "Status", "Invalid")
    assert message in status["message"]
    assert await call.listed() == []
    await loop_turns()
    assert open_files() == files
    assert len(asyncio.all_tasks()) == tasks


async def test_a_name_is_taken_once(call: Caller) -> None:
    codes = [code for code, _ in await asyncio.gather(*[call("POST", name="a") for _ in range(5)])]
    assert sorted(codes) == [201, 409, 409, 409, 409]
    code, status = await call("POST", name="a")
    assert (code, status["reason"], status["message"]) == (409, "AlreadyExists", 'tenants "a" already exists')
    await call("DELETE", "a")
    assert (await call("POST", name="a")).code == 201


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_tenant_that_does_not_exist_is_not_found(call: Caller, method: str) -> None:
    code, status = await call(method, "b")
    assert (code, status["reason"], status["message"]) == (404, "NotFound", 'tenants "b" not found')


async def test_a_server_has_as_many_tenants_as_it_may(call: Caller) -> None:
    async with Server(Config(port=0, max_tenants=2)) as server, calling(server) as limited:
        assert (await limited("POST", manifests=[BROKEN])).code == 422  # which takes no place
        await asyncio.gather(limited.create(), limited.create(name="b"))
        code, status = await limited("POST")
        assert (code, status["reason"]) == (429, "TooManyRequests")
        assert "this server has 2 tenants, and may have 2: delete some (`noxu tenant list`)" in status["message"]
        assert "--max-tenants" in status["message"]
        await limited("DELETE", "b")
        await limited.create(name="c")


async def test_a_tenant_has_no_tenants_but_the_rest_of_what_stands_beside_the_api(call: Caller) -> None:
    made = await call.create()
    async with asking(Access(made["url"])) as client:
        assert "routes" in (await client.send("GET", "/_noxu/")).value
        with pytest.raises(ApiError, match="a tenant has no tenants of its own: ask http://") as refusal:
            await client.send("POST", PATH, value={})
        assert (refusal.value.code, call.server.url in refusal.value.message) == (403, True)


# -- what it has


async def test_a_tenant_is_loaded_as_its_parent_was(tmp_path: Path) -> None:
    file = tmp_path / "crds.yaml"
    file.write_text(WIDGETS)
    config = Config(port=0, files=(file,))
    async with Server(config, documents(file)) as server, calling(server) as call:
        await ask(server.access(), "POST", MAPS, config_map("later"))
        made = await call.create()
        assert "example.com" in await groups(made["url"])
        assert "later" not in names(await ask(Access(made["url"]), "GET", MAPS))
        file.unlink()  # the files are read once
        assert "example.com" in await groups((await call.create())["url"])
        assert "example.com" not in await groups((await call.create(**{"from": "empty"}))["url"])


async def test_a_tenant_has_the_objects_that_its_parent_was_given() -> None:
    async with Server(PLAIN, iter(documents(widgets()))) as server, calling(server) as call:
        assert "example.com" in await groups((await call.create())["url"])
        assert "example.com" in await groups((await call.create())["url"])


async def test_a_tenant_has_what_its_parent_has_read_from_the_standard_input() -> None:
    config = Config(port=0, files=(Path("-"),))
    async with Server(config, iter(documents(widgets()))) as server, calling(server) as call:
        assert "example.com" in await groups((await call.create())["url"])
        assert "example.com" in await groups((await call.create())["url"])


async def test_a_tenant_has_what_the_files_of_its_parent_have_now_if_it_watches_them(tmp_path: Path) -> None:
    file = tmp_path / "crds.yaml"
    file.write_text(WIDGETS)
    watch = FileWatch([file], every=0.01, settled=0.01)
    config = Config(port=0, files=(file,), watch=True)
    async with Server(config, documents(file), watch=watch) as server, calling(server) as call:
        assert "example.com" in await groups((await call.create())["url"])
        file.write_text(WIDGETS.replace("example.com", "example.org"))
        await eventually_async(lambda: watch.changes)
        found = await groups((await call.create())["url"])
        assert ("example.org" in found, "example.com" in found) == (True, False)


async def test_a_tenant_goes_on_without_what_was_refused_as_its_parent_does(tmp_path: Path) -> None:
    for name, value in (("broken", BROKEN), ("good", widgets())):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(value))
    config = Config(port=0, files=(tmp_path,), keep_going=True)
    async with Server(config, documents(tmp_path)) as server, calling(server) as call:
        for made in (await call.create(), await call.create()):
            assert "example.com" in await groups(made["url"])


async def test_a_tenant_has_the_manifests_of_the_call_too() -> None:
    async with Server(PLAIN, documents(widgets(group="parent.test"))) as server, calling(server) as call:
        made = await call.create(manifests=[WIDGET, WIDGETS, json.dumps(config_map("json"))])
        assert {"example.com", "parent.test"} <= await groups(made["url"])
        found = await ask(Access(made["url"]), "GET", "/apis/example.com/v1/namespaces/default/widgets")
        assert names(found) == {"a"}
        assert "json" in names(await ask(Access(made["url"]), "GET", MAPS))
        made = await call.create(manifests=[WIDGETS], **{"from": "empty"})
        assert "parent.test" not in await groups(made["url"])


async def test_files_of_the_parent_that_cannot_be_read_any_more_are_named(tmp_path: Path) -> None:
    file = tmp_path / "crds.yaml"
    file.write_text(WIDGETS)
    loaded = documents(file)
    file.unlink()
    async with Server(Config(port=0, files=(file,)), loaded) as server, calling(server) as call:
        code, status = await call("POST")
        assert (code, str(file) in status["message"]) == (422, True)


async def test_what_tenants_begin_with_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    make = templates.make

    async def counted(config: Config, documents: Sequence[Document], *rest: Any) -> templates.Template:
        made.append(len(documents))
        return await make(config, documents, *rest)

    monkeypatch.setattr(templates, "make", counted)
    async with Server(PLAIN, documents(widgets()), clock=ManualClock()) as server, calling(server) as call:
        first = await asyncio.gather(*[call.create() for _ in range(5)])
        await call.create(**{"from": "empty"}, manifests=[config_map("a")])
        assert made == [0, 1]
        for each in first:  # what is shared is not changed by any of them
            definitions = f"{each['url']}/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
            async with call.session.delete(definitions) as answer:
                assert answer.status == 200
        assert "example.com" in await groups((await call.create())["url"])


async def test_a_template_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    make, failures = templates.make, [StartError("the disk is full"), RuntimeError("it is broken")]

    async def failing(*arguments: Any) -> templates.Template:
        if failures:
            raise failures.pop(0)
        return await make(*arguments)

    monkeypatch.setattr(templates, "make", failing)
    async with Server(PLAIN, clock=ManualClock()) as server, calling(server) as call:
        assert [(await call("POST")).code for _ in range(3)] == [503, 500, 201]


async def test_tenants_of_a_server_with_a_clock_of_its_own_have_one_too() -> None:
    config = Config(port=0, clock="frozen=2030-01-01T00:00:00Z")
    async with Server(config) as server, calling(server) as call:
        made = await call.create()
        value = await ask(Access(made["url"]), "POST", MAPS, config_map("a"))
        assert value["metadata"]["creationTimestamp"] == "2030-01-01T00:00:00Z"
        assert datetime.fromisoformat(made["created"]).year != 2030  # the time of a tenant is the process's


async def test_a_tenant_begins_with_the_objects_of_a_snapshot() -> None:
    async with Server(PLAIN, documents(widgets()), clock=ManualClock()) as server, calling(server) as call:
        await ask(server.access(), "POST", MAPS, config_map("before"))
        widget = await ask(server.access(), "POST", "/apis/example.com/v1/namespaces/default/widgets", WIDGET)
        await ask(server.access(), "POST", "/_noxu/snapshots", {"name": "good"})
        await ask(server.access(), "POST", MAPS, config_map("after"))
        await ask(server.access(), "DELETE", f"{MAPS}/before")
        made = [await call.create(**{"from": {"snapshot": "good"}}, manifests=[config_map("own")]) for _ in range(2)]
        assert made[0]["from"] == {"snapshot": "good"}
        for each in made:
            access = Access(each["url"])
            assert names(await ask(access, "GET", MAPS)) == {"before", "own", "kube-root-ca.crt"}
            found = await ask(access, "GET", "/apis/example.com/v1/namespaces/default/widgets/a")
            assert found == widget
            assert (await ask(access, "GET", "/_noxu/snapshots"))["items"] == []
            assert await ask(access, "DELETE", f"{MAPS}/before") != 404
        await ask(server.access(), "DELETE", "/_noxu/snapshots/good")
        code, status = await call("POST", **{"from": {"snapshot": "good"}})
        assert (code, status["message"]) == (404, "there is no snapshot 'good': there is none")


async def test_tenants_of_a_deterministic_server_repeat_each_other() -> None:
    async with Server(Config(port=0, deterministic=7)) as server, calling(server) as call:
        made = [await call.create() for _ in range(2)]
        first, second = [await ask(Access(each["url"]), "POST", MAPS, config_map("a")) for each in made]
        assert first == second
        assert made[0]["name"] != made[1]["name"]


# -- how long it lives


@rows(
    ("body", "seconds"),
    [
        ({}, DEFAULT_TTL),
        ({"ttl": "10m"}, 600),
        ({"ttl": 90}, 90),
        ({"hold": True, "ttl": "2h"}, 7200),
        ({"ttl": "8760h"}, MAX_TTL),
    ],
)
async def test_a_tenant_says_when_it_ends(body: dict[str, Any], seconds: float) -> None:
    async with Server(PLAIN) as server, calling(server) as call:
        before = datetime.now(UTC).replace(microsecond=0)
        held = await call.hold(**body) if body.get("hold") else None
        made = await call.create(**body) if held is None else held[1]
        expires = datetime.fromisoformat(made["expires"])
        assert before + timedelta(seconds=seconds) <= expires <= datetime.now(UTC) + timedelta(seconds=seconds)
        if held is not None:
            held[0].close()


async def test_a_tenant_ends_when_its_time_is_over(call: Caller) -> None:
    made, other = await call.create(ttl="50ms"), await call.create()
    await ended(made)
    assert await eventually_async(call.listed) == [other["name"]]


async def test_a_tenant_lives_as_long_as_the_connection_that_holds_it(call: Caller) -> None:
    answer, made = await call.hold(name="a")
    assert "expires" not in made
    assert made["hold"] is True
    assert await call.listed() == ["a"]
    assert not is_gone(made["url"])
    answer.close()
    await ended(made)
    assert await call.listed() == []


async def test_the_name_of_a_held_tenant_can_be_used_again_when_its_connection_is_closed(call: Caller) -> None:
    for _ in range(10):
        answer, _ = await call.hold(name="a")
        answer.close()
        await eventually_async(lambda: is_refused_no_more(call))


async def is_refused_no_more(call: Caller) -> bool:
    code, _ = await call("POST", name="a")
    return code == 201 and (await call("DELETE", "a")).code == 200


async def test_the_answer_of_a_holder_ends_with_the_tenant(call: Caller) -> None:
    answer, made = await call.hold(name="a")
    await call("DELETE", "a")
    async with hang_guard():
        assert await answer.content.read() == b""
    assert is_gone(made["url"])


async def test_a_held_tenant_may_have_a_time_too(call: Caller) -> None:
    answer, made = await call.hold(ttl="50ms")
    async with hang_guard():
        assert await answer.content.read() == b""
    assert is_gone(made["url"])


def raw(call: Caller, **body: Any) -> socket.socket:
    """A connection on which a tenant is asked for, and nothing is read."""
    content = json.dumps(body).encode()
    connection = socket.create_connection(("127.0.0.1", call.server.listeners.port))
    connection.sendall(
        b"POST %b HTTP/1.1\r\nHost: a.localhost\r\nContent-Length: %d\r\n\r\n" % (PATH.encode(), len(content))
    )
    connection.sendall(content)
    return connection


async def test_a_holder_that_never_reads_holds_a_tenant_like_any_other(call: Caller) -> None:
    with raw(call, hold=True, name="a"):
        await eventually_async(lambda: has(call, "a"))
        await call.create(name="b")
        assert await call.listed() == ["a", "b"]
    await eventually_async(lambda: lacks(call, "a"))


async def has(call: Caller, name: str) -> bool:
    return name in await call.listed()


async def lacks(call: Caller, name: str) -> bool:
    return name not in await call.listed()


async def test_clients_that_are_gone_at_once_leave_nothing(call: Caller) -> None:
    await churned(call, 4)
    await call.listed()
    files, tasks = open_files(), len(asyncio.all_tasks())
    for turns in range(30):
        with raw(call, hold=True):
            await loop_turns(turns)
    await eventually_async(lambda: lacks_all(call))
    await eventually_async(lambda: open_files() == files and len(asyncio.all_tasks()) == tasks)


async def lacks_all(call: Caller) -> bool:
    return await call.listed() == []


async def test_a_server_stops_while_it_makes_a_template(monkeypatch: pytest.MonkeyPatch) -> None:
    began = asyncio.Event()

    async def hang(*_arguments: Any) -> None:
        began.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(templates, "make", hang)
    async with calling(server := Server(PLAIN)) as call:
        async with hang_guard(), server:
            creating = asyncio.create_task(call("POST"))
            await began.wait()
        with pytest.raises(aiohttp.ClientError):
            await creating


HOLDER = """
import json, sys, time, urllib.request
answer = urllib.request.urlopen(sys.argv[1], data=b'{"hold": true}')
print(json.loads(answer.readline())["url"], flush=True)
time.sleep(3600)
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
async def test_a_tenant_is_gone_with_the_process_that_holds_it(call: Caller, end: signal.Signals) -> None:
    arguments = (sys.executable, "-c", HOLDER, f"{call.server.url}{PATH}")
    process = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().strip()
    assert not is_gone(url)
    process.send_signal(end)
    await process.wait()
    await eventually_async(lambda: is_gone(url))
    assert await call.listed() == []


async def test_holders_in_parallel_do_not_see_each_other() -> None:
    """Each writes its name everywhere, and finds no other."""

    async def hold(call: Caller, number: int) -> None:
        answer, made = await call.hold(name=f"holder-{number}")
        access, group = Access(made["url"]), f"g{number}.test"
        async with asking(access) as client:
            await client.send("POST", "/api/v1/namespaces", value={"metadata": {"name": made["name"]}})
            await client.send("POST", f"/apis/{CRDS}", value=widgets(group=group))
            for _ in range(5):
                await client.send("POST", MAPS, value={"metadata": {"generateName": f"{made['name']}-"}})
                await client.send("GET", f"/apis/{group}/v1/widgets")
            found = [(await client.send("GET", path)).value for path in ("/api/v1/namespaces", f"/apis/{CRDS}", MAPS)]
            namespaces, definitions, maps = map(names, found)
            groups_ = names_of_groups((await client.send("GET", "/apis")).value)
        assert {name for name in namespaces if name.startswith("holder-")} == {made["name"]}
        assert definitions == {f"widgets.{group}"}
        assert {name.rpartition("-")[0] for name in maps if name.startswith("holder-")} == {made["name"]}
        assert len(maps) == 6
        assert {name for name in groups_ if name.endswith(".test")} == {group}
        answer.close()
        await ended(made)

    async with Server(PLAIN, clock=ManualClock()) as server, calling(server) as call:
        await asyncio.gather(*[hold(call, number) for number in range(20)])
        assert await call.listed() == []


async def test_the_tenants_of_a_server_stop_with_it() -> None:
    files = open_files()
    async with calling(server := Server(PLAIN)) as call:
        async with server:
            answer, held = await call.hold()
            made = await call.create()
            watches = []
            for url in (held["url"], made["url"]):
                watches.append(await call.session.get(f"{url}{MAPS}?watch=1&resourceVersion=0"))
                await watches[-1].content.readline()
            urls = [server.url, held["url"], made["url"]]
        async with hang_guard():
            await answer.content.read()
            for watch in watches:
                with contextlib.suppress(aiohttp.ClientError):
                    await watch.content.read()
        for url in urls:
            assert is_gone(url)
    await loop_turns()
    assert open_files() == files


def test_a_tenant_ends_in_the_midst_of_requests(caplog: pytest.LogCaptureFixture) -> None:
    """Large writes that threads work on, watches, lists: whatever it is doing, its end is no bug.

    With the loop of servers: asyncio's own forgets a connection that is accepted while a server stops.
    """
    large = {"data": {f"key-{number}": "a" * 2000 for number in range(100)}}

    async def ask_until_gone(url: str, number: int) -> None:
        async with aiohttp.ClientSession() as session:
            with contextlib.suppress(aiohttp.ClientError):
                for turn in range(1000):
                    value = {"metadata": {"name": f"m{number}-{turn}"}, **large}
                    await (await session.post(f"{url}{MAPS}", json=value)).read()
                    await (await session.get(f"{url}{MAPS}")).read()
                    await (await session.get(f"{url}/openapi/v2")).read()
                    watch = await session.get(f"{url}{MAPS}?watch=1&resourceVersion=0")
                    await watch.content.readline()

    async def run() -> None:
        async with Server(PLAIN) as server, calling(server) as call:
            for turns in range(0, 200, 20):
                made = await call.create(manifests=[widgets()])
                clients = [asyncio.create_task(ask_until_gone(made["url"], number)) for number in range(5)]
                await loop_turns(turns)
                await call("DELETE", made["name"])
                async with hang_guard():
                    await asyncio.gather(*clients)
            await loop_turns()

    with asyncio.Runner(loop_factory=new_loop_factory()) as runner:
        runner.run(run())
    assert [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


# -- nothing is left


async def churned(call: Caller, count: int) -> None:
    """Create and delete so many tenants, in every way."""
    for number in range(count // 4):
        made = await call.create(name=f"t{number}")
        await ask(Access(made["url"]), "GET", "/api/v1/namespaces")
        await call("DELETE", made["name"])
        answer, made = await call.hold()
        answer.close()
        await ended(made)
        assert (await call("POST", manifests=[BROKEN])).code == 422
        made = await call.create(ttl="1ms")
        await ended(made)


async def check_nothing_is_left(call: Caller, count: int) -> None:
    await churned(call, 4)  # imports everything, and starts the threads that a server has
    await loop_turns()
    files, threads, tasks = len(open_files()), threading.active_count(), len(asyncio.all_tasks())
    limit, connections = call.server.clients.connections.limit, len(call.server.clients.connections)
    await churned(call, count)
    await loop_turns()
    assert await call.listed() == []
    assert len(open_files()) <= files
    assert threading.active_count() <= threads
    assert len(asyncio.all_tasks()) <= tasks
    assert call.server.clients.connections.limit == limit
    assert len(call.server.clients.connections) <= connections


async def test_nothing_is_left_of_tenants(call: Caller) -> None:
    await check_nothing_is_left(call, 40)


@pytest.mark.slow
async def test_nothing_is_left_of_many_tenants(call: Caller) -> None:
    await check_nothing_is_left(call, 2000)


# -- starts and stops that do not go well


class Beside:
    """A server whose tenants start and stop as a test says."""

    def __init__(self, *, starts: Callable[[], Any] | None = None, stops: Callable[[], Any] | None = None) -> None:
        self.config, self.parent, self.template, self.given = Config(), None, object(), ()
        self.may_start = asyncio.Event()
        self.starts, self.stops = starts, stops
        self.may_stop = asyncio.Event()
        self.may_stop.set()
        self.began = self.running = self.stopping = self.ended = 0

    @contextlib.asynccontextmanager
    async def tenant(self, *_beginning: object) -> AsyncIterator[Any]:
        self.began += 1
        try:
            await self.may_start.wait()
            if self.starts is not None:
                self.starts()
            self.running += 1
            yield self
            self.running -= 1
            self.stopping += 1
            await self.may_stop.wait()
            if self.stops is not None:
                self.stops()
        finally:
            self.ended += 1

    url = "http://127.0.0.1:1"

    def access(self) -> Access:
        return Access(self.url)


def tenants_of(server: Beside) -> Tenants:
    return Control(cast("Any", server)).part(Tenants)


async def test_a_client_that_is_gone_during_the_start_leaves_nothing() -> None:
    """Wherever the start is: its task may not have begun."""
    for turns in range(6):
        tenants = tenants_of(server := Beside())
        creating = asyncio.create_task(tenants.create(WantedTenant("a")))
        await loop_turns(turns)
        creating.cancel()
        await asyncio.gather(creating, return_exceptions=True)
        await loop_turns()
        assert (server.began, server.running) == (server.ended, 0)
        server.may_start.set()
        async with hang_guard():
            await tenants.create(WantedTenant("a"))  # the name is free
            await tenants.close()


async def test_a_client_that_is_gone_when_the_start_is_complete_leaves_nothing() -> None:
    for turns in range(6):
        tenants = tenants_of(server := Beside())
        creating = asyncio.create_task(tenants.create(WantedTenant("a")))
        await loop_turns()
        server.may_start.set()
        await loop_turns(turns)
        if creating.done():
            await tenants.delete("a")
        else:
            creating.cancel()
            await asyncio.gather(creating, return_exceptions=True)
            await loop_turns()
        assert (server.began, server.ended, server.running) == (1, 1, 0)
        assert tenants.all() == []


async def test_a_start_that_fails_is_answered_and_the_name_is_free() -> None:
    def refuse() -> None:
        raise StartError("no port is free")

    tenants = tenants_of(server := Beside(starts=refuse))
    server.may_start.set()
    for _ in range(2):
        with pytest.raises(ApiError, match="the tenant does not start: no port is free") as refusal:
            await tenants.create(WantedTenant("a"))
        assert (refusal.value.code, refusal.value.reason) == (503, "ServiceUnavailable")
        await loop_turns()


async def test_a_bug_in_a_start_is_a_bug_of_the_call(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise RuntimeError("it is broken")

    tenants = tenants_of(server := Beside(starts=fail))
    server.may_start.set()
    with pytest.raises(RuntimeError, match="it is broken"):
        await tenants.create(WantedTenant("a"))
    await loop_turns()
    assert "the tenant a failed" in caplog.text


async def test_a_tenant_whose_stop_fails_is_gone_and_the_failure_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise RuntimeError("it is broken")

    tenants = tenants_of(server := Beside(stops=fail))
    server.may_start.set()
    await tenants.create(WantedTenant("a"))
    async with hang_guard():
        await tenants.delete("a")
    assert "the tenant a failed" in caplog.text
    assert tenants.all() == []


async def test_a_server_that_stops_ends_what_starts() -> None:
    tenants = tenants_of(server := Beside())
    creating = asyncio.create_task(tenants.create(WantedTenant("a")))
    await loop_turns()
    async with hang_guard():
        await tenants.close()
    with pytest.raises(ApiError, match="the tenant was ended before it had started"):
        await creating
    assert (server.began, server.ended) == (1, 1)


async def test_few_start_at_the_same_time() -> None:
    tenants = tenants_of(server := Beside())
    creating = [asyncio.create_task(tenants.create(WantedTenant())) for _ in range(20)]
    await loop_turns()
    assert server.began == 4
    server.may_start.set()
    await asyncio.gather(*creating)
    assert len(tenants.all()) == 20
    await tenants.close()


async def test_as_many_may_stop_at_the_same_time() -> None:
    tenants = tenants_of(server := Beside())
    server.may_start.set()
    await asyncio.gather(*[tenants.create(WantedTenant()) for _ in range(2 * STOPS)])
    server.may_stop.clear()
    closing = asyncio.create_task(tenants.close())
    await loop_turns()
    assert server.stopping == STOPS
    server.may_stop.set()
    async with hang_guard():
        await closing
    assert server.ended == 2 * STOPS


async def test_a_tenant_waits_for_the_one_that_had_its_name() -> None:
    tenants = tenants_of(server := Beside())
    server.may_start.set()
    await tenants.create(WantedTenant("a"))
    deleting = asyncio.create_task(tenants.delete("a"))
    await asyncio.sleep(0)
    made = await tenants.create(WantedTenant("a"))
    await deleting
    assert tenants.all() == [made]
    await tenants.close()
