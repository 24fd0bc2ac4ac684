"""`noxu explain-write`: what each stage of a write does to objects."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from noxu.testing.handle import Noxu

Make = Callable[..., Any]

RULES = [{"rule": "self.low <= self.high", "message": "low is above high"}]
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "x-kubernetes-validations": RULES,
            "properties": {
                "low": {"type": "integer"},
                "high": {"type": "integer", "default": 9},
                "step": {"type": "object", "properties": {"count": {"type": "integer"}}},
            },
        }
    },
}
DEFAULT = "spec.versions[name=v1].schema.openAPIV3Schema.properties.spec.properties.high.default"


def without_times(text: str) -> list[str]:
    """The lines without times and generated values."""
    lines = re.sub(r" \([0-9.e+-]+ ms\)", "", text).splitlines()
    return [line for line in lines if not re.search("metadata.(uid|creationTimestamp) = ", line)]


@pytest.fixture
def files(write: Make, crd: Make, widget: Make) -> None:
    write("crd.json", crd(SCHEMA))
    write("good.json", widget("good", low=1, hihg=3, count=2))
    write("bad.json", widget("bad", low=10))


ACCEPTED = """\
good.json: Widget good: accepted
  prune
    spec.hihg: unknown field: pruned (did you mean spec.high?)
    spec.count: unknown field: pruned (did you mean spec.step.count?)
  field validation
    unknown field "spec.count"
    unknown field "spec.hihg"
  check the URL
    add metadata.namespace = "default"
  default
    spec.high: filled in with its default: 9 (%s)
  set system fields
    add metadata.generation = 1
  persist
    %s"""
REFUSED = """\
bad.json: Widget bad: refused
  check the URL
    add metadata.namespace = "default"
  default
    spec.high: filled in with its default: 9 (%s)
  set system fields
    add metadata.generation = 1
  validate
    spec: Invalid value: low is above high
      rule: self.low <= self.high
      self.low = 10
      self.high = 9
  bad.json:1:81: spec: Invalid value: low is above high"""


@pytest.mark.usefixtures("files")
def test_in_memory(run: Make) -> None:
    ran = run("explain-write -f crd.json -f good.json")
    lines = without_times(ran.out)
    assert (ran.status, ran.err) == (0, "")
    assert lines[:-1] == (ACCEPTED % (DEFAULT, "")).splitlines()[:-1]
    assert lines[-1].startswith("    created at resourceVersion ")


@pytest.mark.usefixtures("files")
def test_the_exit_status_of_a_refusal_is_1(run: Make) -> None:
    ran = run("explain-write -f crd.json -f bad.json")
    assert (ran.status, without_times(ran.out)) == (1, (REFUSED % DEFAULT).splitlines())


@pytest.mark.usefixtures("files")
def test_on_a_server_the_write_is_a_dry_run(run: Make, write: Make, crd: Make, noxu: Noxu) -> None:
    noxu.apply(crd(SCHEMA))
    write("kubeconfig", noxu.kubeconfig.read_text())
    for where in (f"--server {noxu.url}", "--kubeconfig kubeconfig"):
        ran = run(f"explain-write -f good.json {where}")
        assert (ran.status, without_times(ran.out)) == (
            0,
            (ACCEPTED % (DEFAULT, "a dry run: nothing is written")).splitlines(),
        )


@pytest.mark.usefixtures("files")
def test_on_a_server_the_objects_are_written_with_an_option(
    run: Make, crd: Make, widget: Make, write: Make, noxu: Noxu
) -> None:
    noxu.apply(crd(SCHEMA))
    assert run(f"explain-write -f good.json --server {noxu.url} --write").status == 0
    write("good.json", widget("good", low=2))
    ran = run(f"explain-write -f good.json --server {noxu.url} --write")
    assert without_times(ran.out)[-1].startswith("    stored at resourceVersion ")
    ran = run(f"explain-write -f good.json --server {noxu.url} --write")
    assert without_times(ran.out)[-1] == "    nothing changed: nothing is written"


@pytest.mark.parametrize(("exported", "verb"), [(False, "apply"), (True, "replace")])
def test_on_a_server_an_object_is_updated_as_kubectl_does_it(
    run: Make, write: Make, noxu: Noxu, exported: bool, verb: str
) -> None:
    """What admission and the server have added to a pod stays, so that its file is accepted."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "a", "image": "b"}]},
    }
    [stored] = noxu.apply(pod)
    write("pod.json", stored if exported else pod)
    ran = run(f"explain-write pod.json --server {noxu.url}")
    assert (ran.status, ran.out.splitlines()[0].partition(": ")[2].partition(": ")[2]) == (
        0,
        f"accepted, as an update by kubectl {verb}",
    )


@pytest.mark.usefixtures("files")
def test_json_output_contains_the_steps(run: Make) -> None:
    (one,) = run("explain-write -f crd.json -f bad.json --output json").json
    assert (one["kind"], one["name"], one["result"], one["status"]["code"]) == ("Widget", "bad", "refused", 422)
    assert [step["stage"] for step in one["steps"]][:4] == ["read_body", "decode", "prune", "refuse_unknown"]
    assert one["steps"][-1]["notes"][0]["values"] == {"self.low": "10", "self.high": "9"}


def test_an_object_of_a_kind_that_is_not_served(run: Make, write: Make, widget: Make, noxu: Noxu) -> None:
    write("a.json", widget("a"))
    in_memory, at_server = run("explain-write -f a.json"), run(f"explain-write -f a.json --server {noxu.url}")
    assert in_memory.status == at_server.status == 1
    assert 'no matches for kind "Widget" in version "example.com/v1": load its CRD, too' in in_memory.out
    assert "the server does not serve it; apply its CRD first" in at_server.out


def test_a_refused_crd_is_reported(run: Make, write: Make, crd: Make, widget: Make) -> None:
    write("crd.json", crd({"type": "array"}))
    write("a.json", widget("a"))
    ran = run("explain-write -f crd.json -f a.json")
    assert ran.status == 1
    assert ran.out.startswith("crd.json: CustomResourceDefinition widgets.example.com: refused\n")


def test_a_file_that_cannot_be_read(run: Make, write: Make) -> None:
    write("a.yaml", "a: [")
    ran = run("explain-write -f a.yaml")
    assert (ran.status, ran.out.splitlines()[0]) == (2, "a.yaml: unreadable")


def test_servers_that_do_not_answer_or_trace(run: Make, write: Make, widget: Make) -> None:
    write("a.json", widget("a"))
    ran = run("explain-write -f a.json --server http://127.0.0.1:1")
    assert ran.status == 2
    assert ran.err.startswith("noxu: http://127.0.0.1:1 does not answer: ")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("explain-write", "give a PATH: a file, a directory, or - for stdin"),
        ("explain-write -f a --write", "--write needs a server: give --server or --kubeconfig"),
        *(
            (f"explain-write a {option} --server x", f"{option.split()[0]}: the option is for writes in memory")
            for option in ("--old b", "--independent", "--feature-gates CRDValidationRatcheting=false", "-j 1")
        ),
        ("explain-write a --context x --server y", "--context needs --kubeconfig"),
        ("explain-write -f a --server x --kubeconfig y", "not allowed with argument"),
    ],
)
def test_invalid_combinations_of_arguments(run: Make, line: str, message: str) -> None:
    ran = run(line)
    assert ran.status == 2
    assert message in ran.err
