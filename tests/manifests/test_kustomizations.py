"""`-k`: kustomize's output is read, and its errors are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from noxu.manifests.documents import build
from tests.optional import needs_program

OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    found = tmp_path / "config"
    found.mkdir()
    (found / "kustomization.yaml").write_text("resources: [a.yaml]\nnamePrefix: my-\n")
    (found / "a.yaml").write_text(OBJECT)
    return found


def install(folder: Path, name: str, script: str) -> None:
    """A program of this name."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


PRINTS = 'echo "{kind: ConfigMap, metadata: {name: ${0##*/}-$1-${2##*/}}}"'


@pytest.mark.parametrize(
    ("programs", "names"),
    [(["kubectl"], ["kubectl-kustomize-config"]), (["kubectl", "kustomize"], ["kustomize-build-config"])],
    ids=["kubectl", "both"],
)
def test_who_builds_it(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: list[str], names: list[str]
) -> None:
    for name in programs:
        install(tmp_path / "bin", name, PRINTS)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert [document.name for document in build(directory)] == names
    assert [document.source for document in build(directory)] == [f"{directory}, built"]


def test_without_a_program_it_says_how(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    [document] = build(directory)
    assert document.error == (
        f"-k needs kustomize or kubectl; elsewhere: kubectl kustomize {directory} > all.yaml; noxu serve all.yaml"
    )


def test_errors_are_those_of_the_program(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "bin", "kustomize", "echo Error: no >&2; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert [document.error for document in build(directory)] == ["kustomize build: Error: no"]


def test_what_is_no_directory_of_a_kustomization(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").touch()
    assert [document.error for name in ("", "missing", "a.yaml") for document in build(tmp_path / name)] == [
        "it has no kustomization.yaml",
        "no such directory",
        "it is no directory: -k takes the one of a kustomization",
    ]


@needs_program("kubectl")
def test_kubectl_builds_it(directory: Path) -> None:
    assert [document.name for document in build(directory)] == ["my-a"]
