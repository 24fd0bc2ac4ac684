"""`noxu copy` and `noxu snapshot`: the same objects elsewhere, or a message that says what is not."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

from noxu import cli
from noxu.api import codec
from noxu.commands import copy, progress
from noxu.config import Config, Etcd
from noxu.manifests.documents import Document
from noxu.process.server import Server
from noxu_storage.snapshot import snapshot
from noxu_storage.types import EVERYTHING, Key, Prefix
from tests.cli.conftest import Run
from tests.etcd_server import EtcdServer


def of_built_in_names(group: str, plural: str, kind: str, name: str) -> tuple[Any, Any]:
    """A definition of a version that the built-in kind does not have, and an object."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    annotations = {"api-approved.kubernetes.io": "unapproved"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": annotations},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v9", "served": True, "storage": True, "schema": schema}],
        },
    }
    return definition, {"apiVersion": f"{group}/v9", "kind": kind, "metadata": {"name": name}, "text": "custom"}


CRD: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com", "labels": {"a": "b"}},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
BESIDE: Final = [
    of_built_in_names(group, plural, kind, name)
    for group, plural, kind, name in (
        ("rbac.authorization.k8s.io", "clusterroles", "ClusterRole", "cluster-admin"),
        ("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", CRD["metadata"]["name"]),
    )
]
"""Definitions with the names of a built-in kind, and an object of each with the name of one of its objects."""
OBJECTS: Final = (
    CRD,
    *({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "text": "<ü>"} for name in "abc"),
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}},
    *(definition for definition, _ in BESIDE),
    *(value for _, value in BESIDE),
)


async def serve(config: Config, objects: Any = OBJECTS) -> None:
    async with Server(config, [Document(value, "") for value in objects]):
        pass


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("filled")
    asyncio.run(serve(Config(port=0, data=directory, profile="envtest")))
    return directory


@pytest.fixture
def data(filled: Path, here: Path) -> Path:
    """A data directory with objects."""
    (here / "data").mkdir()
    (here / "data" / "noxu.db").write_bytes((filled / "noxu.db").read_bytes())
    return here / "data"


@pytest.fixture
def place(etcd: EtcdServer) -> str:
    """A prefix of etcd."""
    return f"{etcd.url}/registry/{uuid4()}"


def objects(directory: Path) -> dict[Key, Any]:
    with snapshot(copy.file_of(directory)) as found:
        return {state.key: codec.decode_stored(state.value) for state in found.values(EVERYTHING)}


def revisions(directory: Path) -> dict[Key, int]:
    with snapshot(copy.file_of(directory)) as found:
        return {state.key: state.revision for state in found.values(EVERYTHING)}


def newest(directory: Path) -> int:
    with snapshot(copy.file_of(directory)) as found:
        return found.revision


def test_a_snapshot_is_a_data_directory_without_history(data: Path, run: Run, here: Path) -> None:
    ran = run("snapshot --data data backup.db")
    count, revision = len(objects(data)), newest(data)
    assert ran == (
        0,
        f"{count} objects copied from {data}/noxu.db at revision {revision} to {here}/backup.db; resourceVersions are kept\n",
        "",
    )
    assert objects(here / "backup.db") == objects(data)
    assert revisions(here / "backup.db") == revisions(data)
    assert run("check backup.db").out.splitlines()[-1] == "no problems found"
    assert run("copy --from backup.db --to restored").status == 0
    assert (objects(here / "restored"), revisions(here / "restored")) == (objects(data), revisions(data))
    assert run("validate --stored --data restored").out == "5 objects of 3 CRDs: 0 no longer validate\n"


def test_a_server_goes_on_with_a_copy(data: Path, run: Run, here: Path) -> None:
    run("copy --from data --to copied")
    asyncio.run(serve(Config(port=0, data=here / "copied", profile="envtest"), ()))
    assert {key: value["metadata"] for key, value in objects(here / "copied").items()}.items() >= {
        key: value["metadata"] for key, value in objects(data).items() if key.collection == "example.com/widgets"
    }.items()
    assert run("check copied").status == 0


def test_from_a_directory_to_etcd_and_back(data: Path, place: str, run: Run, here: Path) -> None:
    ran = run(f"copy --from data --to {place}")
    count = len(objects(data))
    assert ran.status == 0, ran.err
    assert ran.out == (
        f"{count} objects copied from {data}/noxu.db at revision {newest(data)} to {place}; "
        "resourceVersions are new: clients have to list again\n"
    )
    url, _, prefix = place.partition("/registry/")
    options = f"--etcd-servers {url} --etcd-prefix /registry/{prefix}"
    checked = run(f"check {options}")
    assert checked.status == 0, checked.out
    assert run(f"validate --stored {options}").out == "5 objects of 3 CRDs: 0 no longer validate\n"
    assert run(f"snapshot {options} back.db").status == 0
    assert objects(here / "back.db") == objects(data)
    assert run("check back.db").status == 0


@pytest.mark.slow
def test_a_server_reads_the_copy_in_etcd(data: Path, place: str, run: Run, here: Path) -> None:
    run(f"copy --from data --to {place}")
    url, _, prefix = place.partition("/registry/")
    asyncio.run(serve(Config(port=0, etcd=Etcd((url,), f"/registry/{prefix}"), profile="envtest"), OBJECTS[1:2]))
    run(f"copy --from {place} --to back")
    widgets = {key: value for key, value in objects(data).items() if key.collection == "example.com/widgets"}
    assert objects(here / "back").items() >= widgets.items()


def test_between_prefixes_of_etcd(data: Path, place: str, run: Run, here: Path) -> None:
    other = f"{place}-other"
    run(f"copy --from data --to {place}")
    assert run(f"copy --from {place} --to {other}").status == 0
    assert run(f"copy --from {other} --to back").status == 0
    assert objects(here / "back") == objects(data)


# -- what is there


def test_a_directory_that_has_data_is_left_alone(data: Path, run: Run, here: Path) -> None:
    run("copy --from data --to copied")
    before = (here / "copied/noxu.db").read_bytes()
    ran = run("copy --from data --to copied")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == f"noxu: {here}/copied/noxu.db exists; name another file or directory\n"
    assert (here / "copied/noxu.db").read_bytes() == before


def test_a_prefix_that_has_keys_is_left_alone(data: Path, place: str, run: Run) -> None:
    run(f"copy --from data --to {place}")
    ran = run(f"copy --from data --to {place}")
    assert (ran.status, ran.out) == (1, "")
    assert f"noxu: {place} has {len(objects(data))} keys; name another prefix, or give --merge\n" in ran.err


@pytest.fixture(params=["directory", "etcd"])
def other(request: pytest.FixtureRequest, here: Path) -> str:
    """A place in which there is another ConfigMap `settings`, and one of its own."""
    name = "other" if request.param == "directory" else request.getfixturevalue("place")
    own = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"own": "1"}}
        for name in ("settings", "mine")
    ]
    if request.param == "directory":
        config = Config(port=0, data=here / "other", profile="envtest")
    else:
        url, _, prefix = name.partition("/registry/")
        config = Config(port=0, etcd=Etcd((url,), f"/registry/{prefix}"), profile="envtest")
    asyncio.run(serve(config, own))
    return str(name)


def test_merging_replaces_what_has_the_same_name_and_keeps_everything_else(
    other: str, data: Path, run: Run, here: Path
) -> None:
    ran = run(f"copy --from data --to {other} --merge")
    assert ran.status == 0, ran.err
    assert ran.out.endswith("; resourceVersions are new: clients have to list again\n")
    run(f"copy --from {other} --to merged")
    found = objects(here / "merged")
    assert found.items() >= objects(data).items()
    assert found[Key("/configmaps", "default/", "mine")]["data"] == {"own": "1"}
    again = run(f"copy --from data --to {other} --merge")
    assert f", {len(objects(data))} of which were there; " in again.out


# -- what is not copied


def test_corrupt_objects_are_named(data: Path, run: Run, here: Path) -> None:
    with sqlite3.connect(data / "noxu.db") as connection:
        connection.execute("UPDATE log SET crc = crc + 1 WHERE name = 'b'")
    connection.close()
    ran = run("copy --from data --to copied")
    assert ran.status == 1
    assert ran.err == "noxu: not copied: example.com/widgets default/ b: its bytes do not match their checksum\n"
    assert ran.out.endswith("\n1 key not copied\n")
    names = [key.name for key in objects(here / "copied") if key.collection == "example.com/widgets"]
    assert names == ["a", "c"]


def put(place: str, key: str, value: bytes) -> None:
    """As another program does."""
    from noxu_storage.etcd.client import EtcdClient
    from noxu_storage.etcd.messages import PUT, Message

    url, _, prefix = place.partition("/registry/")

    async def written() -> None:
        client = EtcdClient([url])
        await client.call(PUT, Message["PutRequest"](key=f"/registry/{prefix}/{key}".encode(), value=value))
        await client.close()

    asyncio.run(written())


def test_keys_of_other_forms_are_named(data: Path, place: str, run: Run, here: Path) -> None:
    run(f"copy --from data --to {place}")
    put(place, "ranges", b"x")
    ran = run(f"snapshot {options_of(place)} back.db")
    assert ran.status == 1
    key = f"/registry/{place.partition('/registry/')[2]}/ranges"
    assert f"noxu: not copied: {key}: its key has another form than those of objects\n" in ran.err
    assert objects(here / "back.db") == objects(data)


def test_claims_are_left_out(data: Path, place: str, run: Run, here: Path) -> None:
    run(f"copy --from data --to {place}")
    put(place, "ranges/serviceips/10.0.0.1", b"{}")
    assert run(f"check {options_of(place)}").status == 0
    ran = run(f"snapshot {options_of(place)} back.db")
    assert ran.status == 0, ran.err
    assert ran.out.startswith(f"{len(objects(data))} objects copied ")
    assert objects(here / "back.db") == objects(data)


def options_of(place: str) -> str:
    url, _, prefix = place.partition("/registry/")
    return f"--etcd-servers {url} --etcd-prefix /registry/{prefix}"


def test_many_messages_are_counted(run: Run, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy, "SHOWN", 1)
    with sqlite3.connect(data / "noxu.db") as connection:
        connection.execute("UPDATE log SET crc = crc + 1 WHERE collection = 'example.com/widgets'")
    connection.close()
    ran = run("copy --from data --to copied")
    assert ran.err.splitlines()[1:] == ["noxu: not copied: 2 more"]
    assert ran.out.endswith("\n3 keys not copied\n")


# -- interruptions


@pytest.fixture
def interrupted(data: Path, place: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> str:
    """A prefix to which a copy was interrupted after its first page."""
    each_page = copy._each_page

    async def stop(source: copy.CopySource, write: Any, show: Any) -> int:
        async for page in source.pages():
            await write(page[:5])
            raise KeyboardInterrupt
        raise AssertionError

    with monkeypatch.context() as patch:
        patch.setattr(copy, "_each_page", stop)
        assert run(f"copy --from data --to {place}").status == 130
    assert copy._each_page is each_page
    return place


def test_the_same_command_completes_an_interrupted_copy(interrupted: str, data: Path, run: Run, here: Path) -> None:
    assert run(f"check {options_of(interrupted)}").out.splitlines()[1:] == [
        "  etcd: a copy under the prefix was interrupted; start it again to complete it",
        "1 problem found",
    ]
    ran = run(f"copy --from data --to {interrupted}")
    assert ran.status == 0, ran.err
    assert f"{len(objects(data))} objects copied" in ran.out
    assert ", 5 of which were there; " in ran.out
    assert run(f"copy --from {interrupted} --to back").status == 0
    assert objects(here / "back") == objects(data)


def test_a_copy_continues_at_the_revision_at_which_it_began(interrupted: str, data: Path, run: Run, here: Path) -> None:
    before, revision = objects(data), newest(data)
    asyncio.run(serve(Config(port=0, data=data, profile="envtest"), [OBJECTS[-1] | {"data": {"a": "new"}}]))
    assert newest(data) > revision
    assert f" at revision {revision} to " in run(f"copy --from data --to {interrupted}").out
    run(f"copy --from {interrupted} --to back")
    assert objects(here / "back") == before


def test_a_copy_whose_revision_is_gone_cannot_continue(interrupted: str, data: Path, run: Run) -> None:
    (data / "noxu.db").unlink()
    asyncio.run(serve(Config(port=0, data=data, profile="envtest"), ()))
    ran = run(f"copy --from data --to {interrupted}")
    assert ran.status == 1
    assert "cannot be completed without that revision: remove its keys with etcdctl del --prefix" in ran.err


@pytest.mark.parametrize("merge", ["", " --merge"])
def test_another_copy_does_not_continue(merge: str, interrupted: str, data: Path, run: Run) -> None:
    run("snapshot --data data other.db")
    ran = run(f"copy --from other.db --to {interrupted}{merge}")
    assert ran.status == 1
    assert f"a copy from {data}/noxu.db to {interrupted} was interrupted: complete it with the same --from" in ran.err


def test_an_interrupted_copy_to_a_directory_leaves_nothing(
    data: Path, run: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stop(*_: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(copy, "_each_page", stop)
    assert run("copy --from data --to copied").status == 130
    assert [path.name for path in (here / "copied").iterdir() if path.name != ".gitignore"] == []


# -- the command line


def test_progress_is_shown(data: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    count = len(objects(data))
    assert run("copy --from data --to a").err == f"noxu: copy: {count} of {count} objects\n"
    assert run("copy --from data --to b --quiet").err == ""


PLACES: Final = [
    ("data", Path("data")),
    ("a.db", Path("a.db")),
    ("http://a:1", Etcd(("http://a:1",))),
    ("http://a:1/", Etcd(("http://a:1",))),
    ("https://a:1,https://b:2/registry", Etcd(("https://a:1", "https://b:2"), "/registry")),
    ("http://a:1/registry/x/,http://b:2/registry/x", Etcd(("http://a:1", "http://b:2"), "/registry/x")),
]


@pytest.mark.parametrize(("text", "expected"), PLACES, ids=[text for text, _ in PLACES])
def test_places(text: str, expected: Path | Etcd) -> None:
    assert cli.options_of("copy", ["--from", text, "--to", "z"]).source == expected


INVALID: Final = [
    ("copy --from data", "the following arguments are required: --to"),
    ("copy --from data --to data", "--from and --to are the same place"),
    ("copy --from http://a:1/x,http://b:1/y --to z", "has several prefixes"),
    ("copy --from a --to b --etcd-cafile c", "need a STORE in etcd"),
    ("copy --from a --to http://b:1 --etcd-certfile c", "--etcd-certfile and --etcd-keyfile need each other"),
    ("snapshot backup", "FILE has to end with .db"),
    ("snapshot --data a --etcd-servers http://a:1 b.db", "--etcd-servers excludes --data"),
]


@pytest.mark.parametrize(("line", "message"), INVALID, ids=[line for line, _ in INVALID])
def test_invalid_arguments(line: str, message: str, run: Run) -> None:
    ran = run(line)
    assert ran.status == 2
    assert message in ran.err


def test_a_source_that_is_not_there(run: Run, here: Path) -> None:
    ran = run("copy --from nothing --to copied")
    assert (ran.status, ran.err) == (1, f"noxu: {here}/nothing/noxu.db is not a file\n")
    assert not (here / "copied").exists()


def test_a_prefix_without_objects_is_no_source(place: str, run: Run, here: Path) -> None:
    ran = run(f"copy --from {place} --to copied")
    assert (ran.status, ran.out) == (1, "")
    assert f"noxu: {place} has no objects: name the prefix of the servers that wrote them\n" in ran.err
    assert not (here / "copied").exists()


def test_the_objects_of_a_test_are_of_several_kinds(data: Path) -> None:
    with snapshot(data / "noxu.db") as found:
        assert found.count(Prefix("example.com/widgets")) == 3
        assert json.loads(next(found.values(Prefix("/configmaps", "default/"))).value)["data"]
