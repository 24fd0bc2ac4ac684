"""`./check` creates the links of the package noxu."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("ruff", "mypy", "lint-imports", "pytest")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the script, two packages, and an environment whose tools do nothing."""
    shutil.copy(ROOT / "check", tmp_path)
    for folder in ("noxu", "apiserver", "storage", "requirements", ".venv-check/bin"):
        (tmp_path / folder).mkdir(parents=True)
    for requirements in ("requirements/test.txt", ".venv-check/installed.txt"):
        (tmp_path / requirements).write_text("the same\n")
    for tool in TOOLS:
        path = tmp_path / ".venv-check/bin" / tool
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    return tmp_path


def check(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "check", *arguments],
        check=False,
        cwd=checkout,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"]},
    )


def test_missing_links_are_created(checkout: Path) -> None:
    assert check(checkout).returncode == 0
    assert (checkout / "noxu/apiserver").readlink() == Path("../apiserver")
    assert (checkout / "noxu/storage").readlink() == Path("../storage")


def test_plain_files_in_place_of_links_are_replaced(checkout: Path) -> None:
    (checkout / "noxu/apiserver").write_text("../apiserver")
    assert check(checkout).returncode == 0
    assert (checkout / "noxu/apiserver").readlink() == Path("../apiserver")


def test_folders_in_place_of_links_are_kept(checkout: Path) -> None:
    for package in ("apiserver", "storage"):
        (checkout / package).rename(checkout / "noxu" / package)
    assert check(checkout).returncode == 0
    assert not (checkout / "noxu/apiserver").is_symlink()


def test_an_incomplete_checkout_is_refused(checkout: Path) -> None:
    (checkout / "storage").rmdir()
    refused = check(checkout)
    assert refused.returncode == 1
    assert refused.stderr == ("check: neither noxu/storage nor storage exists: this is not a complete checkout\n")


def test_a_folder_that_is_not_an_environment_is_not_removed(checkout: Path) -> None:
    (checkout / "requirements/test.txt").write_text("changed\n")
    refused = check(checkout)
    assert refused.returncode == 1
    assert "is not a virtual environment" in refused.stderr
    assert (checkout / ".venv-check/bin/pytest").exists()


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ([], ["pytest --quiet --numprocesses auto --dist worksteal --ignore tests/hostile --ignore tests/faults", "pytest --quiet tests/hostile tests/faults"]),
        (["quick"], ["pytest --quiet --numprocesses auto --dist worksteal --quick"]),
        (["quick", "-x"], ["pytest --quiet --numprocesses auto --dist worksteal --quick -x"]),
        (["tests/api", "-x"], ["pytest tests/api -x"]),
    ],
    ids=["all", "quick", "quick with options", "arguments"],
)  # fmt: skip
def test_what_it_runs(checkout: Path, arguments: list[str], lines: list[str]) -> None:
    ran = check(checkout, *arguments)
    assert ran.stdout.splitlines() == [
        f"== {line}"
        for line in ["ruff format --check --quiet .", "ruff check --quiet .", "mypy", "lint-imports --no-cache", *lines]
    ]
