"""`noxu validate --stored`: in a data directory, in a running server, and with CRDs that are not applied yet."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from noxu.config import Config
from noxu.features import Features
from noxu.process import server
from noxu.security.kubeconfig import Access, kubeconfig
from noxu.testing.handle import Noxu
from noxu.testing.sources import documents
from noxu.values import Object

Make = Callable[..., Any]

ANY_SIZE = {"type": "integer"}
SIZE = {"type": "integer", "minimum": 1}
TOO_SMALL = "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"
HIDDEN_UNKNOWN = "noxu: fields that pruning hides cannot be detected over the API: the server leaves them out\n"


def store(directory: Path, *objects: Object, features: Features = Features()) -> None:
    """Store objects in a data directory."""

    async def serve() -> None:
        async with server.Server(Config(port=0, data=directory, features=features), documents(*objects)):
            pass

    asyncio.run(serve())


@pytest.fixture
def directory(here: Path, crd: Make, widget: Make) -> Path:
    """Widgets a, b and c. The size of b is below the minimum, and c has a colour, which the CRD no longer describes."""
    before = crd(size=ANY_SIZE, colour={"type": "string"})
    store(here / ".noxu", before, widget("a", size=1), widget("b", size=0), widget("c", size=2, colour="red"))
    store(here / ".noxu", crd(size=SIZE))
    return here / ".noxu"


def test_invalid_objects_and_hidden_fields_are_reported(run: Make, directory: Path) -> None:
    ran = run("validate --stored")
    assert (ran.status, ran.err) == (1, "")
    assert ran.out.splitlines() == [
        "Widget default/b (example.com/v1): no longer validates",
        f"  {TOO_SMALL}",
        "Widget default/c (example.com/v1): validates",
        "  hidden by pruning: spec.colour",
        "3 objects of 1 CRD: 1 no longer validate, 1 with fields hidden by pruning",
    ]


def test_json_output(run: Make, directory: Path) -> None:
    output = run("validate --stored --output json").json
    invalid, hiding = output.pop("problems")
    assert output == {"remarks": [], "failures": [], "summary": {"objects": 3, "invalid": 1, "hiding": 1}}
    assert invalid.pop("resourceVersion").isdecimal()
    assert invalid == {
        "crd": "widgets.example.com", "apiVersion": "example.com/v1", "kind": "Widget", "namespace": "default", "name": "b",
        "valid": False, "hidden": [],
        "errors": [{"field": "spec.size", "reason": "FieldValueInvalid", "message": TOO_SMALL.partition(": ")[2]}],
    }  # fmt: skip
    assert (hiding["name"], hiding["valid"], hiding["hidden"]) == ("c", True, ["spec.colour"])


def test_crds_in_files_replace_the_stored_ones(run: Make, write: Make, directory: Path, crd: Make) -> None:
    write("new.json", crd(size={"type": "integer", "maximum": 1}, colour={"type": "string"}))
    ran = run("validate --stored -f new.json")
    assert ran.out.splitlines() == [
        "Widget default/c (example.com/v1): no longer validates",
        "  spec.size: Invalid value: 2: spec.size in body should be less than or equal to 1",
        "3 objects of 1 CRD: 1 no longer validate",
    ]


def test_the_data_directory_does_not_change(run: Make, directory: Path) -> None:
    before = {file.name: file.read_bytes() for file in directory.iterdir()}
    run("validate --stored")
    assert {file.name: file.read_bytes() for file in directory.iterdir()} == before


def test_a_directory_that_a_server_uses_is_refused(run: Make, here: Path, crd: Make) -> None:
    async def validate() -> Any:
        async with server.Server(Config(port=0, data=here / "d"), documents(crd(size=SIZE))):
            return await asyncio.to_thread(run, "validate --stored --data d")

    ran = asyncio.run(validate())
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.endswith(
        "is in use: a server is running on it; validate in it with --kubeconfig d/kubeconfig, or stop it\n"
    )


def test_a_corrupt_object_is_reported_and_the_others_are_validated(run: Make, directory: Path) -> None:
    with contextlib.closing(sqlite3.connect(directory / "noxu.db")) as file, file:
        changed = """replace(CAST(value AS TEXT), '"size":0', '"size":7')"""
        file.execute(f"UPDATE log SET value = CAST({changed} AS BLOB) WHERE name = 'b'")
    ran = run("validate --stored")
    assert ran.status == 2
    assert "corrupt at revision" in ran.err
    assert "default/b" not in ran.out
    assert "default/c" in ran.out


# -- a running server


def test_the_objects_of_a_running_server_are_validated(run: Make, noxu: Noxu, crd: Make, widget: Make) -> None:
    noxu.apply(crd(size=ANY_SIZE), *(widget(f"w{n}", size=n % 2) for n in range(3)))
    noxu.apply(crd(size=SIZE))
    for where in (
        f"--server {noxu.url}",
        f"--kubeconfig {noxu.kubeconfig}",
        f"--kubeconfig {noxu.kubeconfig} --context noxu",
    ):
        ran = run(f"validate --stored {where}")
        assert (ran.status, ran.err) == (1, HIDDEN_UNKNOWN)
        assert ran.out.splitlines()[:2] == ["Widget default/w0 (example.com/v1): no longer validates", f"  {TOO_SMALL}"]
        assert ran.out.splitlines()[-1] == "3 objects of 1 CRD: 2 no longer validate"


def test_the_objects_of_a_running_server_are_validated_by_crds_in_files(
    run: Make, write: Make, noxu: Noxu, crd: Make, widget: Make
) -> None:
    noxu.apply(crd(size=ANY_SIZE), widget("a", size=0))
    write("new.json", crd(name={"type": "string"}))
    ran = run(f"validate --stored --server {noxu.url} -f new.json --output json")
    assert (ran.status, ran.err) == (0, "")
    [problem] = ran.json["problems"]
    assert (problem["valid"], problem["hidden"]) == (True, ["spec.size"])
    assert noxu.apply(widget("a", size=3))[0]["spec"] == {"size": 3}, "nothing was applied"


def test_long_lists_are_read_in_pages(
    run: Make, noxu: Noxu, crd: Make, widget: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noxu.commands.api_client.PAGE_SIZE", 2)
    noxu.apply(crd(size=SIZE), *(widget(f"w{n}", size=1) for n in range(5)))
    assert run(f"validate --stored --server {noxu.url}").out == "5 objects of 1 CRD: 0 no longer validate\n"


# -- objects that cannot be validated


def test_unusable_crds_in_files(run: Make, write: Make, directory: Path, crd: Make, widget: Make) -> None:
    write("wrong.json", crd(size={}))
    ran = run("validate --stored -f wrong.json")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("noxu: wrong.json: servers would refuse widgets.example.com:\n  spec.")
    other = crd(size=SIZE)
    other["metadata"]["name"], other["spec"]["names"] = "gears.example.com", {"plural": "gears", "kind": "Gear"}
    write("other.json", {"kind": "List", "items": [other, widget("a", size=1)]})
    ran = run("validate --stored -f other.json")
    assert ran.err.splitlines() == [
        "noxu: other.json: Widget a is not a CRD, and is ignored",
        "noxu: gears.example.com: the CRD does not exist, so it has no objects",
    ]
    assert run("validate --stored -f none.yaml").err == "noxu: none.yaml: no such file or directory\n"


LOCATIONS: list[tuple[str, str, str]] = [
    ("no data", "", ".noxu/noxu.db is not a file; name a data directory with --data, a running server with --server or --kubeconfig, or --etcd-servers"),
    ("no server", "--server http://127.0.0.1:1", "http://127.0.0.1:1 does not answer: Connection refused"),
    ("no URL", "--server example", "example is not the URL of a server, such as https://HOST:PORT"),
    ("no kubeconfig", "--kubeconfig none", "none: No such file or directory"),
    ("a broken kubeconfig", "--kubeconfig broken", "broken: yaml: line 1: did not find expected node content"),
    ("not a kubeconfig", "--kubeconfig list", "list is not a kubeconfig"),
    ("no context", "--kubeconfig empty", "empty has no current context; name one with --context"),
    ("an unknown context", "--kubeconfig config --context x", "config has no context 'x'"),
    ("an unknown cluster", "--kubeconfig cluster", "cluster has no cluster 'gone'"),
    ("a missing certificate", "--kubeconfig pem", "pem: certificate-authority: none: No such file or directory"),
    ("a user that authenticates with a program", "--kubeconfig exec", "exec: user noxu authenticates with exec, which is not supported; use a token"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "why"), [row[1:] for row in LOCATIONS], ids=[row[0] for row in LOCATIONS])
def test_unusable_locations(run: Make, write: Make, arguments: str, why: str) -> None:
    config = kubeconfig(Access("http://127.0.0.1:1"))
    write("config", config)
    write("broken", "a: [")
    write("list", "- a")
    write("empty", "kind: Config")
    write("cluster", {**config, "clusters": [], "contexts": [{"name": "noxu", "context": {"cluster": "gone"}}]})
    write(
        "pem",
        {**config, "clusters": [{"name": "noxu", "cluster": {"server": "https://x", "certificate-authority": "none"}}]},
    )
    write("exec", {**config, "users": [{"name": "noxu", "user": {"exec": {"command": "x"}}}]})
    ran = run(f"validate --stored {arguments}")
    assert (ran.status, ran.out) == (2, "")
    assert why in ran.err
    assert ran.err.startswith("noxu: ")
    assert len(ran.err.splitlines()) == 1


def test_a_server_that_refuses_requests(run: Make, noxu: Noxu) -> None:
    ran = run(f"validate --stored --server {noxu.url}/elsewhere")
    assert ran.status == 2
    assert "/apis/apiextensions.k8s.io/v1/customresourcedefinitions: 404" in ran.err


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({"token": "t"}, "Bearer t"),
        ({"username": "u", "password": "p"}, "Basic dTpw"),
        ({}, ""),
    ],
    ids=["a token", "a password", "nothing"],
)
def test_users_authenticate_with(write: Make, user: Object, header: str) -> None:
    from noxu.commands.api_client import endpoint_from_kubeconfig

    config = {**kubeconfig(Access("https://x:1")), "users": [{"name": "noxu", "user": user}]}
    assert endpoint_from_kubeconfig(write("config", json.dumps(config))).authorization == header


def test_objects_that_are_stored_as_cbor_are_validated(run: Make, here: Path, crd: Make, widget: Make) -> None:
    store(here / ".noxu", crd(size=ANY_SIZE), widget("a", size=1), widget("b", size=0), features=Features(cbor=True))
    with contextlib.closing(sqlite3.connect(here / ".noxu" / "noxu.db")) as connection:
        values = connection.execute("SELECT value FROM log WHERE collection = 'example.com/widgets'").fetchall()
    assert [value[:3] for (value,) in values] == [b"\xd9\xd9\xf7"] * 2
    store(here / ".noxu", crd(size=SIZE))
    ran = run("validate --stored")
    assert ran.out.splitlines()[:2] == ["Widget default/b (example.com/v1): no longer validates", f"  {TOO_SMALL}"]
    assert run("check .noxu/noxu.db").status == 0
