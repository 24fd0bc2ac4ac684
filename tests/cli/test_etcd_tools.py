"""`noxu check`, `validate --stored` and `migrate` on etcd do what they do on a data directory."""

from __future__ import annotations

import asyncio
from typing import Any, Final
from uuid import uuid4

import pytest

from noxu.config import Config, Etcd
from noxu.manifests.documents import Document
from noxu.process.server import Server
from tests.cli.conftest import Run
from tests.etcd_server import EtcdServer

NAME: Final = "widgets.example.com"
SIZE: Final = {"type": "object", "properties": {"size": {"type": "integer"}, "colour": {"type": "string"}}}
STRICTER: Final = {"type": "object", "properties": {"size": {"type": "integer", "maximum": 3}}}


def crd(storage: str, spec: Any = SIZE) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    versions = [{"name": name, "served": True, "storage": name == storage, "schema": schema} for name in ("v1", "v2")]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": versions,
        },
    }


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


class Place:
    """A prefix of etcd."""

    def __init__(self, url: str) -> None:
        self.etcd = Etcd((url,), f"/registry/{uuid4()}")
        self.options = f"--etcd-servers {url} --etcd-prefix {self.etcd.prefix}"

    def load(self, *objects: dict[str, Any]) -> None:
        async def loaded() -> None:
            async with Server(Config(port=0, etcd=self.etcd), [Document(value, "") for value in objects]):
                pass

        asyncio.run(loaded())

    def put(self, key: str, value: bytes) -> None:
        """As another program does."""
        from noxu_storage.etcd.client import EtcdClient
        from noxu_storage.etcd.messages import PUT, Message

        async def written() -> None:
            client = EtcdClient(self.etcd.servers)
            await client.call(PUT, Message["PutRequest"](key=f"{self.etcd.prefix}/{key}".encode(), value=value))
            await client.close()

        asyncio.run(written())


@pytest.fixture
def place(etcd: EtcdServer) -> Place:
    return Place(etcd.url)


def test_a_check_of_what_servers_have_written_finds_no_problem(place: Place, run: Run) -> None:
    place.load(crd("v1"), widget("a", size=1))
    ran = run(f"check {place.options}")
    assert ran.status == 0
    first, second = ran.out.splitlines()
    assert first.startswith(f"{place.etcd.servers[0]}, {place.etcd.prefix}: etcd 3.")
    assert first.endswith(", 0 keys of other forms")
    assert second == "no problems found"


def test_a_check_reports_every_object_that_is_broken(place: Place, run: Run) -> None:
    place.load(crd("v1"), widget("a", size=1))
    place.put("example.com/widgets/default/b", b"not JSON")
    place.put(
        "example.com/widgets/default/c", b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"c"}}'
    )
    place.put("ranges", b"\0")
    ran = run(f"check {place.options}")
    assert ran.status == 1
    lines = ran.out.splitlines()
    assert lines[0].endswith(", 1 keys of other forms")
    assert [line.partition("(")[2] for line in lines[1:-1]] == [
        "example.com/widgets default/ b): cannot be decoded: invalid character 'o' in literal null (expecting 'u')",
        "example.com/widgets default/ c): has no uid",
    ]
    assert lines[-1] == "2 problems found"


def test_an_export_has_the_objects_of_one_revision_and_names_those_that_are_broken(place: Place, run: Run) -> None:
    place.load(crd("v1"), widget("a", size=1))
    place.load(crd("v2"))
    place.put("example.com/widgets/default/b", b"not JSON")
    place.put("example.com/widgets/default/c", b'{"apiVersion":"example.com/v1"}')
    ran = run(f"export {place.options} widgets")
    assert ran.status == 1
    assert ran.out == (
        "apiVersion: example.com/v2\nkind: Widget\nmetadata:\n  name: a\n  namespace: default\nspec:\n  size: 1\n"
    )
    assert ran.err.splitlines() == [
        "noxu: example.com/widgets default/ b: cannot be decoded; see `noxu check`",
        "noxu: example.com/widgets default/ c: cannot be decoded; see `noxu check`",
        "noxu: 1 object exported",
    ]


def test_a_validation_names_objects_that_cannot_be_decoded(place: Place, run: Run) -> None:
    place.load(crd("v1"), widget("a", size=1))
    place.put("example.com/widgets/default/b", b"not JSON")
    place.put("example.com/widgets/default/c", b'{"apiVersion":"example.com/v1"}')
    ran = run(f"validate --stored {place.options}")
    assert (ran.status, ran.out) == (2, "1 object of 1 CRD: 0 no longer validate\n")
    assert ran.err.splitlines() == [
        f"noxu: example.com/widgets default/ {name}: cannot be decoded; see `noxu check`" for name in "bc"
    ]


def test_a_check_of_a_file_reports_objects_too(run: Run, here: Any) -> None:
    from noxu_storage.sqlite import SqliteStore
    from noxu_storage.types import Key

    async def filled() -> None:
        store = await SqliteStore.open(here / "data" / "noxu.db")
        key = Key("example.com/widgets", "default/", "a")
        revision = await store.put(key, b"not JSON", expected=0)
        await store.put(key, b"[]", expected=revision)
        await store.close()

    asyncio.run(filled())
    ran = run("check data")
    assert ran.status == 1
    assert ran.out.splitlines()[1:] == [
        "  revision 3 (example.com/widgets default/ a): is not an object",
        "1 problem found",
    ]


def test_stored_objects_are_validated(place: Place, run: Run, write: Any) -> None:
    place.load(crd("v1"), widget("a", size=1), widget("b", size=7, colour="red"))
    assert run(f"validate --stored {place.options}").out == "2 objects of 1 CRD: 0 no longer validate\n"
    write("crd.json", crd("v1", STRICTER))
    ran = run(f"validate --stored -f crd.json {place.options}")
    assert ran.status == 1
    assert ran.out.splitlines() == [
        "Widget default/b (example.com/v1): no longer validates",
        "  spec.size: Invalid value: 7: spec.size in body should be less than or equal to 3",
        "  hidden by pruning: spec.colour",
        "2 objects of 1 CRD: 1 no longer validate, 1 with fields hidden by pruning",
    ]


def test_objects_are_migrated(place: Place, run: Run) -> None:
    place.load(crd("v1"), widget("a", size=1))
    place.load(crd("v2"), {**widget("b", size=2), "apiVersion": "example.com/v2"})
    ran = run(f"migrate {place.options}")
    assert ran.status == 0
    assert ran.out == f"{NAME}: 1 of 2 objects rewritten in v2; storedVersions are v2, were v1, v2\n"
    assert (
        run(f"migrate {place.options}").out == "nothing to migrate: all objects are stored in their storage versions\n"
    )


@pytest.mark.parametrize("command", ["validate --stored", "migrate"])
def test_a_prefix_without_objects(command: str, place: Place, run: Run) -> None:
    ran = run(f"{command} {place.options}")
    where = f"etcd at {place.etcd.servers[0]} has no objects under {place.etcd.prefix}"
    assert ran.status == (2 if "validate" in command else 1)
    assert f"noxu: {where}; see --etcd-prefix\n" in ran.err
    assert run(f"check {place.options}").out.endswith(" 0 keys, 0 keys of other forms\nno problems found\n")


INVALID: Final = [
    ("check", "give either FILE or --etcd-servers"),
    ("check data --etcd-servers http://a:1", "give either FILE or --etcd-servers"),
    ("check data --etcd-cafile a", "need --etcd-servers"),
    ("check data --etcd-prefix /a", "--etcd-prefix needs --etcd-servers"),
    ("check --etcd-servers ,", "--etcd-servers names no server"),
    ("serve --etcd-servers=", "--etcd-servers names no server"),
    ("migrate --data a --etcd-servers http://a:1", "--etcd-servers excludes --data, --server and --kubeconfig"),
    ("migrate --server a --etcd-servers http://a:1", "--etcd-servers excludes --data, --server and --kubeconfig"),
    ("validate --stored --data a --etcd-servers http://a:1", "--etcd-servers excludes --data, --server"),
    ("validate -f a --etcd-servers http://a:1", "--etcd-servers needs --stored"),
]


@pytest.mark.parametrize(("line", "message"), INVALID, ids=[line for line, _ in INVALID])
def test_invalid_options(line: str, message: str, run: Run) -> None:
    ran = run(line)
    assert ran.status == 2
    assert message in ran.err


@pytest.mark.parametrize("command", ["check", "validate --stored", "migrate"])
def test_without_etcd(command: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("noxu_storage.etcd.channel", reason="package: grpc")
    monkeypatch.setattr("noxu_storage.etcd.client.ASK_WITHIN", 0.0)
    ran = run(f"{command} --etcd-servers http://127.0.0.1:1")
    assert ran.status == (2 if "validate" in command else 1)
    assert "noxu: cannot read from etcd at http://127.0.0.1:1: " in ran.err
