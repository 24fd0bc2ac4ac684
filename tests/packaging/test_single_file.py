"""The single file unpacks itself once, runs the command, and says where it cannot."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from distribution.single_file import DESCRIPTION, PACKAGES, build, platform

COMMAND = "import sys, os\ndef command():\n    print(sys.argv[1:], os.path.dirname(os.path.dirname(__file__)))\n"


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder site-packages with a package noxu, and what is left out."""
    folder = tmp_path / "site-packages"
    for name, text in {
        "noxu/__init__.py": "",
        "noxu/__main__.py": COMMAND,
        "noxu/__pycache__/a.pyc": "",
        "pip/__init__.py": "",
        "pip-1.dist-info/METADATA": "",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def archive(packages: Path, tmp_path: Path) -> Path:
    target = tmp_path / "noxu.pyz"
    build(packages, target)
    return target


def run(archive: Path, cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(archive), *arguments]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, env={"XDG_CACHE_HOME": str(cache), "HOME": str(cache)}
    )


def test_its_content(archive: Path) -> None:
    with zipfile.ZipFile(archive) as found:
        assert found.namelist() == [
            "__main__.py",
            DESCRIPTION,
            f"{PACKAGES}noxu/__init__.py",
            f"{PACKAGES}noxu/__main__.py",
        ]
    assert archive.read_bytes().startswith(b"#!/usr/bin/env python3\n")
    assert archive.stat().st_mode & 0o111


def test_the_same_packages_are_the_same_bytes(archive: Path, packages: Path, tmp_path: Path) -> None:
    build(packages, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == archive.read_bytes()


def test_it_is_unpacked_once(archive: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = run(archive, cache, "serve", "--memory")
    assert (first.returncode, first.stderr) == (0, "")
    [folder] = (cache / "noxu").iterdir()
    assert first.stdout == f"['serve', '--memory'] {folder}/site-packages\n"
    (folder / "site-packages/noxu/__main__.py").write_text(COMMAND.replace("print(", "print('unpacked before', "))
    assert run(archive, cache).stdout.startswith("unpacked before []")


def test_several_processes_may_unpack_it_at_once(archive: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        ran = list(pool.map(lambda _: run(archive, tmp_path / "cache"), range(4)))
    assert [found.stderr for found in ran] == [""] * 4
    assert len(list((tmp_path / "cache/noxu").iterdir())) == 1


@pytest.mark.parametrize("change", [{"python": [3, 2]}, {"platform": "win-amd64"}], ids=["Python", "platform"])
def test_another_interpreter_is_refused(archive: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    with zipfile.ZipFile(archive) as found:
        files = {name: found.read(name) for name in found.namelist()}
    with zipfile.ZipFile(archive, "w") as changed:
        for name, content in files.items():
            changed.writestr(name, json.dumps({**json.loads(content), **change}) if name == DESCRIPTION else content)
    refused = run(archive, tmp_path / "cache")
    (major, minor), name = platform()["python"], platform()["platform"]
    other = {**platform(), **change}
    assert (refused.returncode, refused.stderr) == (
        1,
        f"noxu: this file is for Python {other['python'][0]}.{other['python'][1]} on {other['platform']}, "
        f"and this is Python {major}.{minor} on {name}\n",
    )
    assert not (tmp_path / "cache").exists()


def test_a_cache_that_cannot_be_written(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    refused = run(archive, tmp_path / "cache")
    assert refused.returncode == 1
    assert refused.stderr.startswith("noxu: cannot unpack this file: ")
    assert refused.stderr.endswith("; set XDG_CACHE_HOME to a folder that can be written\n")
