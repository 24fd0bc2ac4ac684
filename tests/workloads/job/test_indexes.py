"""Sets of completion indexes (upstream's indexed_job_utils_test.go)."""

from __future__ import annotations

from noxu.workloads.job import indexes
from tests.rows import rows


@rows(
    "text, completions, expected",
    [
        ("", 8, ""),
        ("1,2", 8, "1,2"),
        ("0-2", 8, "0-2"),
        ("1-3,5,7", 8, "1-3,5,7"),
        ("0,1,2", 8, "0-2"),
        ("0,1-3,4-6", 8, "0-6"),
        ("1-4,7", 4, "1-3"),  # those that are out of range are dropped
        ("1,5-9", 4, "1"),
        ("a,1-b,3", 8, "3"),  # what is no number is skipped
    ],
)
def test_a_text_is_read(text: str, completions: int, expected: str) -> None:
    assert indexes.text_of(indexes.parse(text, completions)) == expected


@rows(
    "left, right, expected",
    [
        ("", "", ""),
        ("0-3", "", "0-3"),
        ("", "1,3", "1,3"),
        ("0-2,5", "3,4", "0-5"),
        ("0-2,8", "1-5", "0-5,8"),
        ("1,3,5", "0,2,4", "0-5"),
        ("0-9", "3-4", "0-9"),
        ("2", "0,4", "0,2,4"),
    ],
)
def test_sets_are_merged(left: str, right: str, expected: str) -> None:
    assert indexes.text_of(indexes.merged(indexes.parse(left, 20), indexes.parse(right, 20))) == expected


@rows("text, index, expected", [("", 0, False), ("1-3,7", 0, False), ("1-3,7", 2, True), ("1-3,7", 4, False),
                                ("1-3,7", 7, True), ("1-3,7", 8, False)])  # fmt: skip
def test_a_set_contains_an_index(text: str, index: int, expected: bool) -> None:
    assert indexes.contains(indexes.parse(text, 20), index) is expected


@rows(
    "left, right, expected",
    [("", "1", 0), ("0-9", "2,4", 2), ("0-4", "3-7", 2), ("0-2,6-9", "1-7", 4), ("1,3", "0,2", 0), ("5", "5", 1)],
)
def test_what_two_sets_have_in_common(left: str, right: str, expected: int) -> None:
    assert indexes.common(indexes.parse(left, 20), indexes.parse(right, 20)) == expected


@rows(
    "covered, count, completions, expected",
    [
        ("", 2, 5, [0, 1]),
        ("", 8, 3, [0, 1, 2]),
        ("0", 2, 5, [1, 2]),
        ("2,4-6", 4, 9, [0, 1, 3, 7]),
        ("0-4", 2, 5, []),
        ("1,3", 5, 5, [0, 2, 4]),
        ("0,8", 3, 4, [1, 2, 3]),
        ("", 0, 4, []),
    ],
)
def test_the_first_missing_indexes(covered: str, count: int, completions: int, expected: list[int]) -> None:
    assert indexes.first_missing(indexes.parse(covered, 20), count, completions) == expected


def test_the_number_of_indexes() -> None:
    assert (indexes.total([]), indexes.total(indexes.parse("1-3,7", 20))) == (0, 4)
