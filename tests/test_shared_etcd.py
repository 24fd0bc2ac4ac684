"""Noxu and apiextensions-apiserver on one etcd: each serves, changes and watches what the other has stored.

These tests run where the reference is: see apiextensions_server.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from conformance import corpus
from conformance.corpus import Definition
from noxu.config import Config, Etcd
from noxu.process.server import Server
from noxu.registry import etcd_layout
from tests import apiextensions_server, etcd_server
from tests.apiextensions_server import PREFIX, ApiextensionsServer
from tests.etcd_server import EtcdServer
from tests.optional import needs_data
from tests.timing import eventually_async, hang_guard

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMES = ("noxu", "reference")
ACCEPTED = (
    [each for each in corpus.definitions() if each.recorded["asIs"]["code"] == 201] if corpus.FOLDER.exists() else []
)
SAMPLE = ACCEPTED[::25]
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    if reason := etcd_server.lacking() or apiextensions_server.LACKING:
        pytest.skip(reason)
    with etcd_server.running_etcd(tmp_path_factory.mktemp("etcd")) as server:
        yield server


@pytest.fixture(scope="module")
def reference(etcd: EtcdServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiextensionsServer]:
    with apiextensions_server.running_apiextensions_server(tmp_path_factory.mktemp("reference"), etcd.url) as server:
        yield server


class Both:
    """Both servers, and a resource that both serve: `widgets` in a group of its own, with two versions."""

    def __init__(self, noxu: Server, reference: ApiextensionsServer, session: aiohttp.ClientSession) -> None:
        self.urls = dict(zip(NAMES, (noxu.url, reference.url), strict=True))
        self._tls = reference.tls
        self._session = session
        self.group = f"{uuid4().hex[:8]}.example.com"
        self.path = f"/apis/{self.group}/v1/namespaces/default/widgets"

    async def ask(
        self, which: str, method: str, path: str, body: Any = None, media_type: str = "application/json"
    ) -> tuple[int, Any]:
        async with self.open(which, method, path, body, media_type) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if answer.content_type == "application/json" else text

    def open(self, which: str, method: str, path: str, body: Any = None, media_type: str = "application/json") -> Any:
        data = None if body is None else io.BytesIO(json.dumps(body).encode())
        return self._session.request(
            method, self.urls[which] + path, data=data, headers={"Content-Type": media_type}, ssl=self._tls
        )

    def definition(self, plural: str = "widgets") -> dict[str, Any]:
        schema = {
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "properties": {
                        "text": {"type": "string", "default": "<ü>&"},
                        "number": {"type": "number", "maximum": 1e15, "minimum": -0.5},
                        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    },
                },
                "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
            },
        }
        column = {"name": "Text", "type": "string", "jsonPath": ".spec.text"}
        version = {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}},
        }
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{self.group}", "labels": {"a": "b"}},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {"plural": plural, "kind": plural[:-1].capitalize(), "shortNames": [plural[:2]]},
                "versions": [version, {**version, "name": "v2", "storage": False, "additionalPrinterColumns": [column]}],
            },
        }  # fmt: skip

    async def define(self, which: str, plural: str = "widgets") -> None:
        """Create a definition, and wait until both serve its objects."""
        code, created = await self.ask(which, "POST", f"{DEFINITIONS}?fieldManager=test", self.definition(plural))
        assert code == 201, str(created)
        path = f"/apis/{self.group}/v1/namespaces/default/{plural}"

        async def is_served() -> bool:
            return [(await self.ask(name, "GET", path))[0] for name in NAMES] == [200, 200]

        await eventually_async(is_served)

    def widget(self, name: str, **spec: Any) -> dict[str, Any]:
        return {"apiVersion": f"{self.group}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
async def both(etcd: EtcdServer, reference: ApiextensionsServer) -> AsyncIterator[Both]:
    async with contextlib.AsyncExitStack() as stack:
        noxu = await stack.enter_async_context(Server(Config(port=0, etcd=Etcd((etcd.url,), PREFIX))))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Both(noxu, reference, session)


@pytest.fixture
async def stored(etcd: EtcdServer) -> AsyncIterator[Callable[[str], Awaitable[bytes]]]:
    """The value in etcd of a key after the prefix."""
    from noxu_storage.etcd.client import EtcdClient
    from noxu_storage.etcd.messages import RANGE, Message

    client = EtcdClient([etcd.url])

    async def value(at: str) -> bytes:
        [found] = (await client.call(RANGE, Message["RangeRequest"](key=f"{PREFIX}/{at}".encode()))).kvs
        return bytes(found.value)

    yield value
    await client.close()


def other(which: str) -> str:
    return NAMES[1 - NAMES.index(which)]


TIMES = re.compile(rb'"(?:creationTimestamp|time|lastTransitionTime|uid)":"[^"]*"')

MANAGED = re.compile(rb'"managedFields":\[\{(.*?)\}\]\},(?="spec")')


@pytest.mark.parametrize("which", NAMES)
async def test_each_serves_the_definition_of_the_other(both: Both, which: str) -> None:
    await both.define(which)
    path = f"{DEFINITIONS}/widgets.{both.group}"
    answers = [await both.ask(name, "GET", path) for name in NAMES]
    assert answers[0][0] == 200
    assert json.dumps(answers[0]) == json.dumps(answers[1])
    change = {"spec": {"names": {"shortNames": ["changed"]}}}
    code, changed = await both.ask(other(which), "PATCH", path, change, MERGE)
    assert (code, changed["metadata"]["generation"]) == (200, 2)

    async def is_accepted() -> bool:
        found = [(await both.ask(name, "GET", path))[1] for name in NAMES]
        return all(crd["status"]["acceptedNames"]["shortNames"] == ["changed"] for crd in found)

    await eventually_async(is_accepted)
    assert (await both.ask(other(which), "DELETE", path))[0] == 200

    async def is_gone() -> bool:
        return [(await both.ask(name, "GET", path))[0] for name in NAMES] == [404, 404]

    await eventually_async(is_gone)


async def test_the_bytes_of_definitions_are_equal(both: Both, stored: Callable[[str], Awaitable[bytes]]) -> None:
    """Apart from times, and from who owns the conditions: either of the two sets them, or each some."""
    found = []
    for which, plural in zip(NAMES, ("aaaas", "bbbbs"), strict=True):
        await both.define(which, plural)
        value = await stored(f"apiextensions.k8s.io/customresourcedefinitions/{plural}.{both.group}")
        letter = plural[0].encode()
        value = TIMES.sub(b"", value).replace(letter * 4, b"name").replace(letter.upper() + letter * 3, b"Name")
        head, managed, tail = MANAGED.split(value.replace(b'"%b"' % (letter * 2), b'"na"'))
        found.append((head, [entry for entry in managed.split(b"},{") if b'"manager":"test"' in entry], tail))
    assert found[0] == found[1]
    assert b'"preserveUnknownFields":false' in found[0][2]


@needs_data("crds")
@pytest.mark.parametrize("definition", SAMPLE, ids=lambda definition: definition.name)
async def test_definitions_of_other_projects_have_the_same_bytes(
    both: Both, stored: Callable[[str], Awaitable[bytes]], definition: Definition
) -> None:
    """What the reference stores is read, and would be written, as it is."""
    code, _ = await both.ask("reference", "POST", DEFINITIONS, definition.value)
    assert code == 201
    value = await stored(f"apiextensions.k8s.io/customresourcedefinitions/{definition.name}")
    assert value.startswith(b'{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1"')
    assert etcd_layout.to_etcd(etcd_layout.from_etcd(value)) + b"\n" == value
    await both.ask("reference", "DELETE", f"{DEFINITIONS}/{definition.name}")


WIDGETS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "texts": {"text": '\u2028 é " \\ \x7f </script>', "any": {"ключ": "\ud7ff", "": "", "a": None}},
    "numbers": {"number": 1.0, "any": {"list": [1e3, 1e21, 1e-7, 0.1, -0.0, 9223372036854775807, 1.5e300]}},
    "the order of keys": {"any": {"b": 1, "a": {"z": 1, "Z": 2, "é": 3}, "B": [{}, []]}},
}  # fmt: skip


async def test_the_bytes_of_objects_are_equal(both: Both, stored: Callable[[str], Awaitable[bytes]]) -> None:
    await both.define("noxu")
    for name, spec in WIDGETS.items():
        found = []
        for which, letter in zip(NAMES, "ab", strict=True):
            widget = both.widget(letter * 4, **spec)
            code, created = await both.ask(which, "POST", f"{both.path}?fieldManager=test", widget)
            assert code == 201, str(created)
            at = f"{both.group}/widgets/default/{letter * 4}"
            found.append(TIMES.sub(b"", (await stored(at)).replace(letter.encode() * 4, b"name")))
            await both.ask(
                which, "PUT", f"{both.path}/{letter * 4}/status?fieldManager=z", created | {"status": {"phase": "<P>"}}
            )
            found[-1] += TIMES.sub(b"", (await stored(at)).replace(letter.encode() * 4, b"name"))
            assert (await both.ask(which, "DELETE", f"{both.path}/{letter * 4}"))[0] == 200
        assert found[0] == found[1], name


@pytest.mark.parametrize("which", NAMES)
async def test_each_reads_updates_and_patches_the_object_of_the_other(both: Both, which: str) -> None:
    await both.define("reference")
    other_one = other(which)
    code, created = await both.ask(which, "POST", f"{both.path}?fieldManager=test", both.widget("a", number=1))
    assert code == 201, str(created)
    assert await both.ask(other_one, "GET", f"{both.path}/a") == (200, created)
    code, updated = await both.ask(other_one, "PUT", f"{both.path}/a", created | {"spec": {"number": 2}})
    assert (code, updated["metadata"]["generation"], updated["spec"]) == (200, 2, {"number": 2, "text": "<ü>&"})
    code, _ = await both.ask(which, "PUT", f"{both.path}/a", created | {"spec": {"number": 3}})
    assert code == 409
    code, patched = await both.ask(which, "PATCH", f"{both.path}/a", {"spec": {"text": None, "number": 4}}, MERGE)
    assert (code, patched["spec"]) == (200, {"number": 4, "text": "<ü>&"})
    for manager, text in ((which, "x"), (other_one, "x")):
        applied = f"{both.path}/a?fieldManager={manager}&force=true"
        code, answer = await both.ask(manager, "PATCH", applied, both.widget("a", text=text), APPLY)
        assert code == 200, answer
    answers = [await both.ask(name, "GET", f"{both.path}/a") for name in NAMES]
    assert json.dumps(answers[0]) == json.dumps(answers[1])
    managers = {
        entry["manager"] for entry in answers[0][1]["metadata"]["managedFields"] if entry["operation"] == "Apply"
    }
    assert managers == {*NAMES}
    code, conflict = await both.ask(
        which, "PATCH", f"{both.path}/a?fieldManager=third", both.widget("a", text="y"), APPLY
    )
    assert (code, conflict["reason"]) == (409, "Conflict")
    assert (await both.ask(other_one, "DELETE", f"{both.path}/a"))[0] == 200
    assert (await both.ask(which, "GET", f"{both.path}/a"))[0] == 404


@pytest.mark.parametrize("which", NAMES)
async def test_each_watches_the_writes_of_the_other(both: Both, which: str) -> None:
    await both.define("noxu")
    start = (await both.ask(which, "GET", both.path))[1]["metadata"]["resourceVersion"]
    writer = other(which)
    async with hang_guard(), both.open(which, "GET", f"{both.path}?watch=1&resourceVersion={start}") as stream:
        expected = []
        for kind, method, path, body in (
            ("ADDED", "POST", both.path, both.widget("a")),
            (
                "MODIFIED",
                "PATCH",
                f"{both.path}/a",
                {"metadata": {"labels": {"a": "b"}, "finalizers": ["example.com/f"]}},
            ),
            ("MODIFIED", "DELETE", f"{both.path}/a", None),
            ("DELETED", "PATCH", f"{both.path}/a", {"metadata": {"finalizers": None}}),
        ):
            media_type = MERGE if method == "PATCH" else "application/json"
            code, answer = await both.ask(writer, method, path, body, media_type)
            assert code in (200, 201), answer
            expected.append((kind, answer))
        for kind, answer in expected:
            event = json.loads(await stream.content.readline())
            found = event["object"]
            assert (event["type"], found["metadata"]["name"]) == (kind, "a")
            if kind != "DELETED":
                assert found == answer


async def test_only_one_of_the_writers_of_both_servers_succeeds(both: Both) -> None:
    await both.define("noxu")
    code, created = await both.ask("noxu", "POST", both.path, both.widget("a"))
    assert code == 201, str(created)
    answers = await asyncio.gather(
        *(both.ask(NAMES[n % 2], "PUT", f"{both.path}/a", created | {"spec": {"number": n}}) for n in range(10))
    )
    assert sorted(code for code, _ in answers) == [200] + [409] * 9
