"""`noxu tenant`: what it prints and writes, and what it says when that does not work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from noxu.testing.handle import Noxu
from tests.definitions import widgets
from tests.rows import rows

Run = Callable[..., Any]


@pytest.fixture
def run_there(run: Run, noxu: Noxu) -> Run:
    return lambda words: run(f"tenant {words} --server {noxu.url}")


def test_create_prints_the_kubeconfig(run_there: Run, run: Run) -> None:
    ran = run_there("create mine")
    assert (ran.status, ran.err) == (0, "")
    url = ran.json["clusters"][0]["cluster"]["server"]
    assert run_there("get mine").json == ran.json
    assert run(f"export --server {url} namespaces").status == 0


def test_create_writes_the_kubeconfig_and_prints_its_path(run_there: Run, here: Path) -> None:
    ran = run_there("create --to tenant.kubeconfig")
    assert (ran.status, ran.out) == (0, "tenant.kubeconfig\n")
    assert (here / "tenant.kubeconfig").stat().st_mode & 0o777 == 0o600
    assert json.loads((here / "tenant.kubeconfig").read_text())["kind"] == "Config"


def test_a_file_that_cannot_be_written(run_there: Run) -> None:
    ran = run_there("create --to nothing/tenant")
    assert (ran.status, ran.err) == (1, "noxu: nothing/tenant cannot be written: No such file or directory\n")


def test_tenants_are_listed_and_deleted(run_there: Run) -> None:
    made = [run_there(f"create {name} --ttl 10m -o json").json for name in ("a", "b")]
    listed = run_there("").out.splitlines()
    assert listed[0].split() == ["NAME", "URL", "FROM", "CREATED", "EXPIRES", "HOLD"]
    assert [line.split()[:3] for line in listed[1:]] == [[each["name"], each["url"], "template"] for each in made]
    in_json, in_yaml = run_there("list -o json").json, yaml.safe_load(run_there("list -o yaml").out)
    assert [each["name"] for each in in_json["items"]] == [each["name"] for each in in_yaml["items"]] == ["a", "b"]
    assert "kubeconfig" not in json.dumps(in_json)
    assert run_there("delete a b").status == 0
    assert run_there("list").out == "NAME   URL   FROM   CREATED   EXPIRES   HOLD\n"


def test_a_tenant_has_the_objects_of_files(run_there: Run, run: Run, here: Path) -> None:
    (here / "crds").mkdir()
    (here / "crds/widgets.yaml").write_text(json.dumps(widgets()))
    made = run_there("create --empty -f crds -o json").json
    assert made["from"] == "empty"
    assert "widgets.example.com" in run(f"export --server {made['url']} customresourcedefinitions").out


def test_a_tenant_of_a_snapshot(run_there: Run, run: Run, noxu: Noxu) -> None:
    assert run(f"snapshot create good --server {noxu.url}").status == 0
    assert run_there("create --snapshot good -o json").json["from"] == {"snapshot": "good"}
    ran = run_there("create --snapshot bad")
    assert (ran.status, "'bad'" in ran.err) == (1, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("get nothing", 'tenants "nothing" not found'),
        ("delete nothing", 'tenants "nothing" not found'),
        ("create A", "the body is invalid: name: a lowercase RFC 1123 label"),
        ("create --ttl soon", 'ttl: expected a duration such as "1m30s", or seconds, not "soon"'),
        ("create -f nothing", "nothing: no such file or directory"),
    ],
)
def test_a_refusal_is_a_sentence(run_there: Run, words: str, message: str) -> None:
    ran = run_there(words)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("noxu: ")
    assert message in ran.err


WRONG = [
    ("list a", "list takes no NAME"),
    ("create a b", "create takes one NAME"),
    ("get", "get needs a NAME"),
    ("get a b", "get needs a NAME"),
    ("delete", "delete needs a NAME"),
    ("list --ttl 1h", "--ttl is for create"),
    ("get a --empty", "--empty is for create"),
    ("delete a -f x", "-f is for create"),
    ("delete a --to x", "delete shows no kubeconfig: create and get do"),
    ("list -o kubeconfig", "list shows no kubeconfig: create and get do"),
    ("create --empty --snapshot a", "not allowed with argument"),
    ("remove a", "invalid choice"),
]


@rows(("words", "message"), WRONG)
def test_arguments_that_are_invalid(run: Run, words: str, message: str) -> None:
    ran = run(f"tenant {words}")
    assert (ran.status, message in ran.err) == (2, True)


@rows("text", ["7000", "7000-", "-7000", "7099-7000", "0-10", "1-65536", "1-999999", "a-b"])
def test_ports_that_are_invalid(run: Run, text: str) -> None:
    ran = run(f"serve --memory --tenant-ports={text}")
    assert (ran.status, "must be FIRST-LAST, such as 7000-7099" in ran.err) == (2, True)
