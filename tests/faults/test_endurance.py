"""`python -m benchmarks.endurance` runs every long tier: each number that a test of reliability reads, and each hazard."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import endurance
from benchmarks.endurance import ROWS, Result, Row, environment, lines_of

ROOT = Path(__file__).parents[2]
NO_HAZARD = {
    "tests/hostile/test_memory.py",  # the size of bodies
    "tests/console/browser/conftest.py",  # a folder for pictures
}
READ = re.compile(r'os\.environ\.get\("(NOXU_\w+)"')


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.hazard)
def test_a_row_names_what_its_tests_read(row: Row) -> None:
    read = [name for test in row.tests for name in READ.findall((ROOT / test).read_text())]
    assert set(read) == set(row.numbers)


def test_every_number_that_a_test_reads_is_in_a_row() -> None:
    reading = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("*.py") if READ.search(path.read_text())}
    listed = {test for row in ROWS for test in row.tests}
    assert reading - listed == NO_HAZARD


def test_every_hazard_has_a_row_in_the_command_and_in_the_documentation() -> None:
    hazards = {f"R{number}" for number in range(1, 19)}
    assert {hazard for row in ROWS for hazard in row.hazard.split()} == hazards
    documented = (ROOT / "docs" / "reliability.md").read_text()
    assert {found for found in re.findall(r"\[(R[\d, R]+)\]", documented) for found in found.split(", ")} >= hazards


def test_numbers_are_scaled_except_for_those_that_make_a_test_longer_when_they_are_small() -> None:
    row = Row("R0", (), {"NOXU_CUTS": 500, "NOXU_IO_STRIDE": 1, "NOXU_KILLS": 1})
    assert environment(row, 0.1) == {"NOXU_CUTS": "50", "NOXU_IO_STRIDE": "1", "NOXU_KILLS": "1"}


def test_the_table_shows_figures_and_whatever_has_not_passed(tmp_path: Path) -> None:
    found = [
        Result("a kill", "passed", 3.2, {"kills": "10", "acknowledged": "99"}),
        Result("b", "passed", 1.0, {}),
        Result("c", "failed", 1.0, {}),
        Result("d", "passed", 1.4, {}),
    ]
    assert list(lines_of(ROWS[0], found)) == [
        "| R1 | a kill | passed | kills: 10; acknowledged: 99 | 3 |",
        "| R1 | c | failed |  | 1 |",
        "| R1 | 2 other tests | passed | | 2 |",
    ]


def test_a_report_in_the_format_of_junit_is_read(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite><testcase name="test_a_b[c]" time="1.5"><properties><property name="kills" value="3" />'
        '</properties></testcase><testcase name="test_d" time="0"><failure>x</failure></testcase>'
        '<testcase name="test_e" time="0"><skipped /></testcase></testsuite></testsuites>'
    )
    assert list(endurance.results(report)) == [
        Result("a b[c]", "passed", 1.5, {"kills": "3"}), Result("d", "failed", 0, {}), Result("e", "skipped", 0, {})
    ]  # fmt: skip
