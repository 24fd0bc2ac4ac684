"""Semantic versions in expressions."""

from __future__ import annotations

from typing import Any

from tests.cel.evaluate import Error, evaluate
from tests.rows import rows

ROWS: list[tuple[str, Any]] = [
    ("semver('1.2.3').major()", 1),
    ("semver('1.2.3-rc.1+build').patch()", 3),
    ("semver('1.2.3') == semver('1.2.3+build')", True),
    ("semver('1.2.3').isGreaterThan(semver('1.2.3-rc'))", True),
    ("semver('1.2.3-1').isLessThan(semver('1.2.3-a'))", True),
    ("semver('1.2.3-2').isLessThan(semver('1.2.3-10'))", True),
    ("semver('1.2.3-a').isLessThan(semver('1.2.3-a.1'))", True),
    ("semver('1.10.0').compareTo(semver('1.9.0'))", 1),
    ("semver('v1.2', true).patch()", 0),
    ("semver('01.02.003', true) == semver('1.2.3')", True),
    ("isSemver('v1.2.3')", False),
    ("isSemver('v1.2.3', true)", True),
    ("semver('')", Error("Version string empty")),
    ("semver('1.2')", Error("No Major.Minor.Patch elements found")),
    ("semver('a.2.3')", Error('Invalid character(s) found in major number "a"')),
    ("semver('1.02.3')", Error('Minor number must not contain leading zeroes "02"')),
    ("semver('1.2.x')", Error('Invalid character(s) found in patch number "x"')),
    ("semver('1..3')", Error('strconv.ParseUint: parsing "": invalid syntax')),
    (
        "semver('99999999999999999999.2.3')",
        Error('strconv.ParseUint: parsing "99999999999999999999": value out of range'),
    ),
    ("semver('1.2.3-')", Error("Prerelease is empty")),
    ("semver('1.2.3-01')", Error('Numeric PreRelease version must not contain leading zeroes "01"')),
    ("semver('1.2.3-a_b')", Error('Invalid character(s) found in prerelease "a_b"')),
    ("semver('1.2.3+')", Error("Build meta data is empty")),
    ("semver('1.2.3+a_b')", Error('Invalid character(s) found in build meta data "a_b"')),
    ("semver('1-a', true)", Error("short version cannot contain PreRelease/Build meta data")),
]


@rows(("text", "expected"), ROWS, ids=[row[0] for row in ROWS])
def test_versions(text: str, expected: Any) -> None:
    found = evaluate(text)
    assert (type(found), found) == (type(expected), expected)
