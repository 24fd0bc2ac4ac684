"""The part of kubectl that test tools call themselves."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from noxu.envtest import kubectl


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "home" / ".kube" / "config"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return path


def run(*words: str) -> str:
    return kubectl.run(kubectl.parse(words))


def refused(*words: str) -> str:
    with pytest.raises(kubectl.RefusedCommand) as error:
        run(*words)
    return str(error.value)


def test_kube_api_tests_commands_add_a_context(config: Path, tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("ca", "crt", "key")}
    for name, file in files.items():
        file.write_text(name)
    assert refused("config", "current-context") == "error: current-context is not set"
    cluster = ("--server=https://127.0.0.1:1", "--embed-certs=true", f"--certificate-authority={files['ca']}")
    assert run("config", "set-cluster", "t", *cluster) == 'Cluster "t" set.\n'
    user = ("--embed-certs=true", f"--client-certificate={files['crt']}", f"--client-key={files['key']}")
    assert run("config", "set-credentials", "t", *user) == 'User "t" set.\n'
    assert (
        run("config", "set-context", "t", "--cluster=t", "--namespace=default", "--user=t") == 'Context "t" created.\n'
    )
    assert run("config", "use-context", "t") == 'Switched to context "t".\n'
    assert run("config", "current-context") == "t\n"

    def data(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    assert yaml.safe_load(config.read_text()) == {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "t",
        "clusters": [
            {"name": "t", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority-data": data("ca")}}
        ],
        "users": [{"name": "t", "user": {"client-certificate-data": data("crt"), "client-key-data": data("key")}}],
        "contexts": [{"name": "t", "context": {"cluster": "t", "user": "t", "namespace": "default"}}],
    }
    assert config.stat().st_mode & 0o077 == 0


def test_what_others_have_written_stays(config: Path) -> None:
    config.parent.mkdir(parents=True)
    mine: dict[str, Any] = {"name": "mine", "context": {"cluster": "c", "user": "u"}}
    config.write_text(yaml.safe_dump({"contexts": [mine], "current-context": "mine", "preferences": {"colors": True}}))
    run("config", "set-context", "t", "--cluster", "t")
    run("config", "set-context", "t", "--user", "t")
    assert run("config", "unset", "contexts.t") == 'Property "contexts.t" unset.\n'
    run("config", "unset", "current-context")
    found = yaml.safe_load(config.read_text())
    assert (found["contexts"], found["preferences"], "current-context" in found) == ([mine], {"colors": True}, False)


def test_a_file_can_be_named(tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("config", "set-cluster", "a", "--server=s", f"--kubeconfig={tmp_path / 'a'}")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'b'}:{tmp_path / 'c'}")
    run("config", "set-cluster", "b", "--server=s")
    assert [json.loads((tmp_path / name).read_text())["clusters"][0]["name"] for name in "ab"] == ["a", "b"]
    assert not config.exists()


REFUSED = {
    "an unknown context": (["config", "use-context", "t"], 'error: no context exists with the name: "t"'),
    "no name": (["config", "use-context"], "error: `kubectl config use-context` needs another argument"),
    "a server that does not run": (["get", "ns", "default", "--server=https://127.0.0.1:1"], "error: "),
    "another command": (["apply", "-f", "x"], "error: this is not kubectl, but the part of it that test tools call"),
    "another kind": (["get", "pods"], "error: this is not kubectl, but the part of it that test tools call"),
}


@pytest.mark.parametrize(("words", "message"), REFUSED.values(), ids=REFUSED)
def test_it_refuses(config: Path, words: list[str], message: str) -> None:
    assert refused(*words).startswith(message)
