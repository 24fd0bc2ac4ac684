"""Which pinned packages lack wheels, and the table of them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from requirements.__main__ import PAGE, RUNTIME
from requirements.pins import Pin, parse
from requirements.wheels import PLATFORMS, START, VERSIONS, lacking, replaced, table
from tests.rows import rows

ROOT = Path(__file__).parents[2]
GLIBC, ARM, MUSL, _, MAC, INTEL, WINDOWS, _ = PLATFORMS
PURE = "a-1-py3-none-any.whl"
OLD_ABI = "a-1-cp311-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"


@rows(
    ("platform", "version", "wheels", "expected"),
    [
        (GLIBC, "3.13", [PURE], []),
        (MUSL, "3.11", [PURE], []),
        (WINDOWS, "3.14", [PURE], []),
        (GLIBC, "3.13", [], ["a"]),
        (GLIBC, "3.13", ["a-1-cp313-cp313-manylinux_2_17_x86_64.whl"], []),
        (GLIBC, "3.14", ["a-1-cp313-cp313-manylinux_2_17_x86_64.whl"], ["a"]),
        (GLIBC, "3.13", ["a-1-cp313-cp313-manylinux_2_34_x86_64.whl"], ["a"]),
        (ARM, "3.13", ["a-1-cp313-cp313-manylinux_2_17_x86_64.whl"], ["a"]),
        (MUSL, "3.13", ["a-1-cp313-cp313-manylinux_2_17_x86_64.whl"], ["a"]),
        (MUSL, "3.13", ["a-1-cp313-cp313-musllinux_1_2_x86_64.whl"], []),
        (GLIBC, "3.11", [OLD_ABI], []),
        (GLIBC, "3.14", [OLD_ABI], []),
        (GLIBC, "3.14", ["a-1-cp314-cp314t-manylinux_2_17_x86_64.whl"], ["a"]),
        (MAC, "3.12", ["a-1-cp312-cp312-macosx_10_13_universal2.whl"], []),
        (INTEL, "3.12", ["a-1-cp312-cp312-macosx_11_0_arm64.whl"], ["a"]),
        (MAC, "3.12", ["a-1-cp312-cp312-macosx_14_0_arm64.whl"], ["a"]),
        (WINDOWS, "3.12", ["a-1-cp312-cp312-win_amd64.whl"], []),
        (WINDOWS, "3.12", ["a-1-cp312-cp312-win32.whl"], ["a"]),
    ],
)
def test_a_wheel_is_for(platform: object, version: str, wheels: list[str], expected: list[str]) -> None:
    assert lacking([Pin("a", "1", None, ())], {"a": wheels}, platform, version) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("marker", "platform", "version", "expected"),
    [
        ("sys_platform != 'win32'", WINDOWS, "3.12", []),
        ("sys_platform != 'win32'", MAC, "3.12", ["a"]),
        ("python_full_version < '3.13'", GLIBC, "3.12", ["a"]),
        ("python_full_version < '3.13'", GLIBC, "3.13", []),
        ("platform_machine == 'x86_64' and sys_platform == 'linux'", GLIBC, "3.13", ["a"]),
        ("platform_machine == 'x86_64' and sys_platform == 'linux'", ARM, "3.13", []),
    ],
)
def test_what_is_not_needed_does_not_lack(marker: str, platform: object, version: str, expected: list[str]) -> None:
    assert lacking([Pin("a", "1", marker, ())], {"a": []}, platform, version) == expected  # type: ignore[arg-type]


def test_a_table_replaces_the_old_one() -> None:
    new = table([Pin("a", "1", None, ())], {"a": [OLD_ABI]})
    assert new.startswith(START)
    assert "| macOS 13, arm64 | a | a | a | a | a |\n" in new
    assert replaced(f"x\n\n{START} 1 |\n|---|\n| b |\n\ny\n\n| c |\n", new) == f"x\n\n{new}\ny\n\n| c |\n"
    with pytest.raises(ValueError, match="no table begins with"):
        replaced("x\n", new)


def test_the_table_of_the_page_is_for_these_pins() -> None:
    rows = [line for line in (ROOT / PAGE).read_text().partition(START)[2].splitlines()[2:] if line.startswith("| ")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[: len(PLATFORMS)]]
    assert [row[0] for row in cells] == [platform.name for platform in PLATFORMS]
    assert {len(row) for row in cells} == {len(VERSIONS) + 1}
    packages = {name for row in cells for cell in row[1:] for name in cell.split(", ")} - {"–"}
    assert packages <= {pin.name for pin in parse((ROOT / RUNTIME).read_text())}


def test_the_versions_of_the_table_are_those_that_are_declared_and_the_next_one() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    declared = re.findall(r"Python :: (3\.\d+)", " ".join(classifiers))
    newest = int(declared[-1].partition(".")[2])
    assert list(VERSIONS) == [*declared, f"3.{newest + 1}"]
