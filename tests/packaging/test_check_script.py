"""`./check` creates the links of the package noxu, and runs the tests with every Python that is present."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("ruff", "mypy", "lint-imports", "pytest")
PROGRAMS = ("sh", "cat", "chmod", "cmp", "cp", "dirname", "ln", "mkdir", "rm")  # of the system
# An interpreter that prints its version, and creates environments with an interpreter and with pytest.
INTERPRETER = """#!/bin/sh
case "$*" in
    "-c import"*) echo VERSION ;;
    "-m venv"*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && cp "${0%/*}/pytest-VERSION" "$3/bin/pytest" && cp "$0" "$3/pyvenv.cfg" ;;
    "-m pip"*) PIP ;;
esac
"""
LINT = ["ruff format --check --quiet .", "ruff check --quiet .", "lint-imports --no-cache"]
QUICK = "pytest --quiet --numprocesses auto --dist worksteal --quick"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the script and an environment whose tools do nothing."""
    shutil.copy(ROOT / "check", tmp_path)
    for folder in ("apiserver", "storage", "requirements", ".venv-check/bin"):
        (tmp_path / folder).mkdir(parents=True)
    for requirements in ("requirements/test.txt", ".venv-check/installed.txt"):
        (tmp_path / requirements).write_text("the same\n")
    for tool in TOOLS:
        path = tmp_path / ".venv-check/bin" / tool
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (tmp_path / "path").mkdir()
    for program in PROGRAMS:
        found = shutil.which(program)
        assert found
        (tmp_path / "path" / program).symlink_to(found)
    interpreter(tmp_path / ".venv-check/bin/python", "3.11")
    return tmp_path


def interpreter(path: Path, version: str, *, pip: str = ":", pytest: str = ":") -> None:
    """Write a Python of this version; in its environments, `pip` and `pytest` are these commands of the shell."""
    path.write_text(INTERPRETER.replace("VERSION", version).replace("PIP", pip))
    path.chmod(0o755)
    tests = path.parent / f"pytest-{version}"
    tests.write_text(f"#!/bin/sh\n{pytest}\n")
    tests.chmod(0o755)


def check(checkout: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "check", *arguments],
        check=False,
        cwd=checkout,
        capture_output=True,
        text=True,
        env={"PATH": str(checkout / "path"), **environment},
    )


def test_a_folder_that_is_not_an_environment_is_not_removed(checkout: Path) -> None:
    (checkout / "requirements/test.txt").write_text("changed\n")
    refused = check(checkout)
    assert refused.returncode == 1
    assert "is not a virtual environment" in refused.stderr
    assert (checkout / ".venv-check/bin/pytest").exists()


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ([], ["pytest --quiet --numprocesses auto --dist worksteal", "mypy"]),
        (["quick"], ["mypy", "pytest --quiet --numprocesses auto --dist worksteal --quick"]),
        (["quick", "-x"], ["mypy", "pytest --quiet --numprocesses auto --dist worksteal --quick -x"]),
        (["tests/api", "-x"], ["mypy", "pytest tests/api -x"]),
    ],
    ids=["all", "quick", "quick with options", "arguments"],
)  # fmt: skip
def test_what_it_runs(checkout: Path, arguments: list[str], lines: list[str]) -> None:
    ran = check(checkout, *arguments, PYTHONS="")
    assert ran.returncode == 0
    assert ran.stdout.splitlines() == [f"== {line}" for line in [*LINT, *lines]]


@pytest.mark.parametrize(("tool", "other"), [("mypy", "pytest"), ("pytest", "mypy")])
def test_types_and_tests_run_to_their_ends_and_fail_the_checks(checkout: Path, tool: str, other: str) -> None:
    (checkout / ".venv-check/bin" / tool).write_text(f"#!/bin/sh\necho {tool} failed\nexit 3\n")
    (checkout / ".venv-check/bin" / other).write_text(f"#!/bin/sh\necho {other} succeeded\n")
    ran = check(checkout)
    assert ran.returncode == 3
    said = [line for line in ran.stdout.splitlines() if not line.startswith("== ")]
    assert said == sorted([f"{tool} failed", f"{other} succeeded"], reverse=True)  # pytest, then mypy


def further(ran: subprocess.CompletedProcess[str]) -> list[str]:
    """What was printed about further interpreters."""
    return [line.removeprefix("== ") for line in ran.stdout.splitlines() if line.startswith("== Python")]


def test_a_machine_with_one_python_passes(checkout: Path) -> None:
    ran = check(checkout)
    assert ran.returncode == 0, ran.stderr
    assert further(ran) == ["Python 3.12: absent", "Python 3.13: absent", "Python 3.14: absent"]


def test_the_fast_tests_run_with_every_python_that_is_present(checkout: Path) -> None:
    interpreter(checkout / "path/python3.12", "3.12", pytest='echo "$HYPOTHESIS_PROFILE: $*" > ran-with-3.12')
    interpreter(checkout / "path/python3.13", "")  # a shim without a version behind it prints none
    interpreter(checkout / "path/python3.14", "3.14", pytest="echo > ran-with-3.14")
    ran = check(checkout, HYPOTHESIS_PROFILE="gate")
    assert ran.returncode == 0, ran.stderr
    assert further(ran) == [f"Python 3.12: {QUICK}", "Python 3.13: absent", f"Python 3.14: {QUICK}"]
    assert (checkout / "ran-with-3.12").read_text() == f"quick: {QUICK.removeprefix('pytest ')}\n"
    assert (checkout / "ran-with-3.14").exists()
    assert (checkout / ".venv-check-3.12/installed.txt").read_text() == "the same\n"


def test_tests_that_fail_with_another_python_fail_the_checks_after_all_have_run(checkout: Path) -> None:
    interpreter(checkout / "path/python3.12", "3.12", pytest="exit 1")
    interpreter(checkout / "path/python3.13", "3.13", pytest="echo > ran-with-3.13")
    ran = check(checkout)
    assert ran.returncode == 1
    assert ran.stderr == "check: failed with Python 3.12\n"
    assert (checkout / "ran-with-3.13").exists()


def test_a_python_into_which_nothing_can_be_installed_is_reported(checkout: Path) -> None:
    interpreter(checkout / "path/python3.12", "3.12", pip="exit 1", pytest="echo > ran-with-3.12")
    ran = check(checkout)
    assert ran.returncode == 0, ran.stderr
    assert further(ran)[0] == "Python 3.12: not tested, because its environment cannot be created"
    assert not (checkout / "ran-with-3.12").exists()
    assert not (checkout / ".venv-check-3.12/installed.txt").exists()


@pytest.mark.parametrize("pip", [None, "exit 1"], ids=["absent", "nothing can be installed"])
def test_a_python_that_was_asked_for_has_to_be_tested(checkout: Path, pip: str | None) -> None:
    interpreter(checkout / "path/python3.13", "3.13")
    if pip:
        interpreter(checkout / "path/python3.12", "3.12", pip=pip)
    ran = check(checkout, PYTHONS="3.12 3.13")
    assert ran.returncode == 1
    assert ran.stderr == "check: failed with Python 3.12\n"
    assert further(ran)[1:] == [f"Python 3.13: {QUICK}"]


@pytest.mark.parametrize("arguments", [["quick"], ["tests/api"]], ids=" ".join)
def test_further_interpreters_are_for_all_checks_only(checkout: Path, arguments: list[str]) -> None:
    interpreter(checkout / "path/python3.12", "3.12")
    assert further(check(checkout, *arguments)) == []


def test_a_checkout_has_no_links() -> None:
    """One path for each file, also where the file system or a tool knows no links."""
    folders = ("apiserver", "storage", "tests", "conformance", "benchmarks", "docs", "distribution", "requirements")
    assert [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_symlink()] == []
