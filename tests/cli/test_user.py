"""`noxu user`: how it finds the server, what it prints, and what it says when that does not work."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from noxu.testing.handle import MakeNoxu, Noxu
from tests.optional import program, skip_without_program

Run = Callable[..., Any]
NOT_SENT = (
    "noxu: kubectl and other clients in Go send no credentials over HTTP, so they are anonymous: "
    "start the server with --tls\n"
)


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(here / "home"))


def test_it_prints_a_kubeconfig(run: Run, noxu: Noxu) -> None:
    ran = run(f"user jane --group a --group b --kubeconfig {noxu.kubeconfig}")
    assert (ran.status, ran.err) == (0, NOT_SENT)
    assert ran.json["clusters"][0]["cluster"]["server"] == noxu.url
    assert ran.json["users"][0]["user"]["token"]


def test_other_formats(run: Run, noxu: Noxu) -> None:
    asked = f"user jane --group a --group b --server {noxu.url} -o"
    assert run(f"{asked} table").out == f"NAME   UID      GROUPS   URL\njane   <none>   a,b      {noxu.url}\n"
    in_json, in_yaml = run(f"{asked} json").json, yaml.safe_load(run(f"{asked} yaml").out)
    assert (in_json["name"], in_json["groups"]) == (in_yaml["name"], in_yaml["groups"]) == ("jane", ["a", "b"])
    assert json.loads(in_json["kubeconfig"])["kind"] == "Config"


def test_a_file_is_its_owners(run: Run, noxu: Noxu, here: Path) -> None:
    ran = run(f"user jane --server {noxu.url} --to jane.kubeconfig")
    assert (ran.status, ran.out) == (0, "")
    assert (here / "jane.kubeconfig").stat().st_mode & 0o777 == 0o600
    assert json.loads((here / "jane.kubeconfig").read_text())["kind"] == "Config"


def test_a_file_that_cannot_be_written(run: Run, noxu: Noxu) -> None:
    ran = run(f"user jane --server {noxu.url} --to nothing/jane")
    assert (ran.status, ran.err) == (1, "noxu: nothing/jane cannot be written: No such file or directory\n")


# -- finding the server ------------------------------------------------------------------------------------------------


def test_the_server_is_that_of_the_users_kubeconfig(
    run: Run, noxu: Noxu, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "home/.kube").mkdir(parents=True)
    (here / "home/.kube/config").write_bytes(noxu.kubeconfig.read_bytes())
    assert run("user jane").status == 0
    monkeypatch.setenv("KUBECONFIG", f"nothing{os.pathsep}{noxu.kubeconfig}")
    (here / "home/.kube/config").unlink()
    assert run("user jane").status == 0


def test_several_files_are_one_kubeconfig(
    run: Run, noxu: Noxu, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """kubectl reads the same ones in the same way."""
    context = {"name": "here", "context": {"cluster": "mine", "user": "me"}}
    write("a/one", {"contexts": [context], "users": [{"name": "me", "user": {}}]})
    write("a/two", {"current-context": "here", "clusters": [{"name": "mine", "cluster": {"server": noxu.url}}]})
    write("a/three", {"current-context": "other", "clusters": [{"name": "mine", "cluster": {"server": "http://x"}}]})
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(["a/one", "a/nothing", "a/two", "a/three"]))
    assert run("user jane -o json").json["url"] == noxu.url
    ran = run("user jane --context other")
    assert (ran.status, ran.err) == (1, "noxu: a/one:a/nothing:a/two:a/three has no context 'other'\n")


NOT_FOUND: list[tuple[str, Mapping[str, str], str]] = [
    ("no kubeconfig", {}, "no server is named, and there is no @/home/.kube/config; give --server or --kubeconfig, or set KUBECONFIG"),
    ("a KUBECONFIG that does not exist", {"KUBECONFIG": "a:b"}, "no server is named, and there is no a:b; give --server or --kubeconfig, or set KUBECONFIG"),
]  # fmt: skip


@pytest.mark.parametrize(("environment", "message"), [row[1:] for row in NOT_FOUND], ids=[row[0] for row in NOT_FOUND])
def test_without_a_server(
    run: Run, here: Path, monkeypatch: pytest.MonkeyPatch, environment: Mapping[str, str], message: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    ran = run("user jane")
    assert (ran.status, ran.err) == (1, f"noxu: {message.replace('@', str(here))}\n")


def test_a_server_that_does_not_run(run: Run, make_noxu: MakeNoxu) -> None:
    noxu = make_noxu()
    noxu.stop()
    ran = run(f"user jane --server {noxu.url}")
    assert (ran.status, ran.err) == (1, f"noxu: {noxu.url} does not answer: Connection refused\n")


def test_a_server_that_is_no_noxu(run: Run, noxu: Noxu) -> None:
    ran = run(f"user jane --server {noxu.url}/elsewhere")
    assert (ran.status, ran.err) == (
        1,
        f"noxu: {noxu.url}/elsewhere is no Noxu server, or an older one: it has no /_noxu/ (404 Not Found)\n",
    )


def test_a_refusal_is_a_sentence(run: Run, noxu: Noxu) -> None:
    ran = run(f"user jane --group system:master --server {noxu.url}")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == (
        'noxu: the body is invalid: groups: "system:master" is no group of Kubernetes; did you mean system:masters?\n'
    )


def test_a_context_is_one_of_a_kubeconfig(run: Run) -> None:
    ran = run("user jane --server http://127.0.0.1:1 --context a")
    assert ran.status == 2
    assert "--context is one of a kubeconfig, which --server does not read" in ran.err


# -- kubectl -----------------------------------------------------------------------------------------------------------


def test_kubectl_is_that_user(run: Run, make_noxu: MakeNoxu, here: Path) -> None:
    kubectl = program("kubectl")
    if kubectl is None:
        skip_without_program("kubectl")
    noxu = make_noxu(tls=True, authorization_modes=["RBAC"])
    assert run(f"user jane --group system:masters --kubeconfig {noxu.kubeconfig} --to masters").err == ""
    assert run(f"user joe --kubeconfig {noxu.kubeconfig} --to others").err == ""

    def asked(kubeconfig: str, *words: str) -> str:
        done = subprocess.run(
            [kubectl, "--kubeconfig", kubeconfig, *words], capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    assert '"jane"' in asked("masters", "auth", "whoami", "-o", "jsonpath={.status.userInfo}").replace("username", "")
    assert asked("masters", "auth", "can-i", "delete", "secrets") == "yes\n"
    assert asked("others", "auth", "can-i", "delete", "secrets") == "no\n"
    assert '"/_noxu/"' in asked("masters", "get", "--raw", "/_noxu/")
    assert "forbidden" in asked("others", "get", "--raw", "/_noxu/")
