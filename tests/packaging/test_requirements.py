"""Everything that is installed is pinned with hashes, and agrees with pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from requirements.__main__ import FILES
from requirements.pins import Pin, parse

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RUNTIME = PROJECT["project"]["dependencies"]
ETCD = PROJECT["project"]["optional-dependencies"]["etcd"]
BENCHMARKS = PROJECT["project"]["optional-dependencies"]["benchmarks"]
TEST = PROJECT["project"]["optional-dependencies"]["test"]
BUILD = PROJECT["dependency-groups"]["build"]
DECLARED = {
    "requirements/test.txt": [*RUNTIME, *TEST, *BUILD],
    "requirements/runtime.txt": [*RUNTIME, *ETCD],
    "requirements/benchmarks.txt": [*RUNTIME, *BENCHMARKS],
    "requirements/build.txt": BUILD,
    "requirements/docs.txt": PROJECT["dependency-groups"]["docs"],
}


def pins(file: str) -> dict[str, Pin]:
    return {pin.name: pin for pin in parse((ROOT / file).read_text())}


def test_the_command_writes_all_files() -> None:
    assert list(FILES) == list(DECLARED)
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "requirements").glob("*.txt")} == set(DECLARED)


@pytest.mark.parametrize("file", DECLARED)
def test_what_is_declared_is_pinned(file: str) -> None:
    pinned = pins(file)
    for requirement in map(Requirement, DECLARED[file]):
        pin = pinned[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pin.version), requirement
        assert Requirement(f"a ; {pin.marker or ''}".rstrip(" ;")).marker == requirement.marker


def test_what_builds_the_wheel_is_in_the_build_group() -> None:
    pinned = pins("requirements/build.txt")
    for requirement in map(Requirement, PROJECT["build-system"]["requires"]):
        assert requirement.specifier.contains(pinned[requirement.name].version)


@pytest.mark.parametrize("file", ["requirements/runtime.txt", "requirements/build.txt"])
def test_what_is_tested_is_what_is_installed(file: str) -> None:
    tested = pins("requirements/test.txt")
    for name, pin in pins(file).items():
        assert (pin.version, set(pin.hashes)) == (tested[name].version, set(tested[name].hashes))


def test_the_versions_of_python_agree() -> None:
    declared = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["project"]["classifiers"]))
    [checked] = re.findall(r'^SUPPORTED="(.*)"$', (ROOT / "check").read_text(), re.MULTILINE)
    assert PROJECT["project"]["requires-python"] == f">={declared[0]}"
    assert set(declared) <= set(checked.split())


@pytest.mark.parametrize(
    "line",
    ["a==1", "a>=1 --hash=sha256:" + 64 * "0", "a==1 --hash=md5:" + 32 * "0", "--index-url https://example.com", "."],
    ids=["no hash", "a range", "another hash", "an option", "a path"],
)
def test_a_line_that_is_not_pinned_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="not pinned with hashes"):
        parse(line)


def test_the_parts_of_a_pin() -> None:
    zero, one = 64 * "0", 64 * "1"
    text = f"# text\na-b==1.0 ; sys_platform == 'linux' \\\n    --hash=sha256:{zero} \\\n    --hash=sha256:{one}\nc==2 \\\n    --hash=sha256:{one}\n"
    assert parse(text) == (Pin("a-b", "1.0", "sys_platform == 'linux'", (zero, one)), Pin("c", "2", None, (one,)))


def test_the_page_names_what_has_to_be_compiled_on_alpine() -> None:
    text = (ROOT / "docs/supply-chain.md").read_text()
    cells = [
        cell.strip()
        for line in text.splitlines()
        if line.startswith("| Linux, musl 1.2 (Alpine)")
        for cell in line.split("|")[2:]
    ]
    compiled = {name for cell in cells for name in cell.split(", ") if name}
    section = text.partition("### Alpine\n")[2]
    assert compiled
    assert [name for name in compiled if name not in section] == []
    assert "google-re2" in [Requirement(text).name for text in RUNTIME]  # so pip installs it, or says why it cannot
