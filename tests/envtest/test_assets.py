"""The folder of programs, and the command that writes it."""

from __future__ import annotations

import platform
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from noxu import cli
from noxu.envtest import assets
from tests.timing import HANGS_AFTER

PROGRAMS = ["etcd", "kube-apiserver", "kubectl"]
PLATFORM = f"{sys.platform}-{assets._machine()}"


@pytest.fixture
def without_kubectl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assets, "kubectl", lambda instead_of: None)


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def output(*words: str | Path) -> tuple[int, str]:
    ran = subprocess.run(words, check=False, capture_output=True, text=True, timeout=HANGS_AFTER)
    return ran.returncode, ran.stdout + ran.stderr


def test_the_folder_has_three_programs_that_everyone_may_run(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "assets"
    assets.write(folder)
    assert names(folder) == PROGRAMS
    assert {stat.S_IMODE((folder / name).stat().st_mode) & 0o555 for name in PROGRAMS} == {0o555}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a folder with spaces", "it's", "$(exit 1)", "ü", "x" * 200])
def test_launchers_run_from_any_path(tmp_path: Path, without_kubectl: None, name: str) -> None:
    folder = tmp_path / name
    assets.write(folder)
    assert output(folder / "kube-apiserver", "--cert-dir=x", "--version") == (0, "Kubernetes v1.37.0\n")
    assert output(folder / "etcd", "--data-dir=x", "--version")[0] == 0
    assert output(folder / "kubectl", "version", "--client") == (0, "Client Version: v1.37.0\n")


def test_an_interpreter_in_a_path_with_spaces_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "a b" / "it's python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    assets.write(tmp_path / "assets")
    assert output(tmp_path / "assets" / "etcd", "--x=1", "--help")[0] == 0


HELP = {
    "kube-apiserver": (["--help"], r"(?m)^\s*--secure-port\b", True),
    "kube-apiserver without an insecure port": (["--help"], r"(?m)^\s*--insecure-port\b", False),
    "etcd": (["--help"], r"(?m)^\s*--unsafe-no-fsync\b", True),
}


@pytest.mark.parametrize(("words", "pattern", "found"), HELP.values(), ids=HELP)
def test_envtest_finds_flags_in_the_help(
    tmp_path: Path, request: pytest.FixtureRequest, words: list[str], pattern: str, found: bool
) -> None:
    assets.write(tmp_path)
    program = tmp_path / ("etcd" if "etcd" in request.node.callspec.id else "kube-apiserver")
    status, text = output(program, *words)
    assert status == 0
    assert bool(re.search(pattern, text)) == found


def test_the_help_is_the_same_wherever_the_flag_stands(tmp_path: Path) -> None:
    assets.write(tmp_path)
    for name in ("kube-apiserver", "etcd"):
        assert output(tmp_path / name, "--help") == output(tmp_path / name, "--log-dir=x", "--help")


def test_launchers_are_replaced_and_other_files_are_not(tmp_path: Path) -> None:
    assets.write(tmp_path)
    written = (tmp_path / "kube-apiserver").read_text()
    (tmp_path / "kube-apiserver").write_text(f"#!/bin/sh\n{assets.MARK}\nof an earlier release\n")
    assets.write(tmp_path)
    assert (tmp_path / "kube-apiserver").read_text() == written
    (tmp_path / "etcd").write_text("another etcd")
    with pytest.raises(assets.AssetsError, match=r"etcd was not written by Noxu, so it is not replaced"):
        assets.write(tmp_path)
    assert (tmp_path / "etcd").read_text() == "another etcd"
    assert names(tmp_path) == PROGRAMS


def test_another_kubectl_stays(tmp_path: Path) -> None:
    (tmp_path / "kubectl").write_text("another kubectl")
    assets.write(tmp_path)
    assert (tmp_path / "kubectl").read_text() == "another kubectl"


def test_kubectl_is_a_link_to_the_installed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "bin" / "kubectl"
    installed.parent.mkdir()
    installed.write_text("#!/bin/sh\n")
    installed.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    assets.write(tmp_path / "assets")
    assert (tmp_path / "assets" / "kubectl").readlink() == installed
    installed.unlink()
    monkeypatch.setenv("PATH", f"{tmp_path / 'assets'}")
    assets.write(tmp_path / "assets")  # the link goes nowhere, and the launcher on the PATH is no kubectl
    assert assets.MARK in (tmp_path / "assets" / "kubectl").read_text()
    assets.write(tmp_path / "other")
    assert not (tmp_path / "other" / "kubectl").is_symlink()


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(assets.AssetsError, match=r"cannot write .*/file"):
        assets.write(tmp_path / "file" / "assets")


# -- the command

Envtest = Callable[..., Any]


@pytest.fixture
def envtest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Envtest:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def run(*words: str) -> tuple[int, str, str]:
        try:
            status = cli.main(["envtest", *words])
        except SystemExit as exited:
            status = int(exited.code or 0)
        return status, *capsys.readouterr()

    return run


def test_the_command_prints_the_variable(envtest: Envtest, tmp_path: Path) -> None:
    assert envtest("bin") == (0, f"export KUBEBUILDER_ASSETS={tmp_path}/bin\n", "")
    assert envtest("my bin") == (0, f"export KUBEBUILDER_ASSETS='{tmp_path}/my bin'\n", "")
    assert envtest("-p", "path", "bin") == (0, f"{tmp_path}/bin\n", "")


@pytest.mark.parametrize("words", [(), ("env",)])
def test_without_a_folder_it_is_one_in_the_cache(envtest: Envtest, tmp_path: Path, words: tuple[str, ...]) -> None:
    status, out, _ = envtest(*words)
    folder = Path(out.removeprefix("export KUBEBUILDER_ASSETS=").strip())
    assert status == 0
    assert folder.is_relative_to(tmp_path / "cache" / "noxu" / "envtest")
    assert names(folder) == PROGRAMS


def test_a_tree_has_the_layout_of_setup_envtest(envtest: Envtest, tmp_path: Path) -> None:
    assert envtest("--tree", "bin", "-p", "path")[:2] == (0, f"{tmp_path}/bin/k8s/1.37.0-{PLATFORM}\n")
    assert envtest("--tree", "bin", "--kubernetes-version=1.36.2")[0] == 0
    assert names(tmp_path / "bin" / "k8s") == [f"1.36.2-{PLATFORM}", f"1.37.0-{PLATFORM}"]


def test_what_it_refuses(envtest: Envtest, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    status, out, err = envtest("file")
    assert (status, out) == (1, "")
    assert err == f"noxu: cannot write {tmp_path}/file: File exists\n"
    assert envtest("--kubernetes-version=1.37", "bin")[0] == 2


@pytest.mark.parametrize(
    ("machine", "name"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("arm64", "arm64"), ("s390x", "s390x")]
)
def test_machines_have_gos_names(monkeypatch: pytest.MonkeyPatch, machine: str, name: str) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert assets._machine() == name
