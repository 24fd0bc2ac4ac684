"""Texts that patterns, formats and lengths allow."""

from __future__ import annotations

from random import Random

from noxu.generation.texts import OF_FORMAT, sample, text
from noxu.schema import formats, patterns
from tests.rows import rows

NESTED = f"{'(' * 16}a{'+)' * 16}"  # up to three times in each group: 3^16 steps
TOO_LONG = f"^{'a{1000}' * 60}$"
LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


@rows(
    "pattern, least, most",
    [
        ("^a+$", 0, None),
        ("^a+$", 5, 5),
        (LABEL, 1, 63),
        (r"^\d{3}-[^a-z]\w\s$", 0, None),
        (r"^(red|green|blue)[[:digit:]]\z", 0, None),
        ("^(([0-9]+(s|m|h))+)$", 0, None),
        ("(?i)^true$", 0, None),
        ("b", 3, None),
        ("^.{10,}$", 0, 12),
        ("^((([a-z]*)*)*)*$", 40, 60),
        ("^[^/]+/[^/]+$", 0, None),
        (r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+)|(\.[0-9]+))))?$", 0, None),
        ("^[é-ü]$", 0, None),
        (f"^{NESTED}$", 0, None),
        (f"^{NESTED}$", 100, 200),
    ],
)  # fmt: skip
def test_a_text_matches_its_pattern_and_lengths(pattern: str, least: int, most: int | None) -> None:
    for seed in range(5):
        found = text(Random(seed).randrange, pattern, "", least, most)
        assert found is not None
        assert patterns.compile(pattern).search(found)
        assert least <= len(found) <= (most or len(found))


@rows("name", sorted(formats._CHECKS))
def test_every_format_has_a_text(name: str) -> None:
    check = formats.checker(name)
    found = text(Random(1).randrange, "", name, 0, None)
    assert check is not None
    assert found is not None
    assert check(found)


def test_the_texts_of_formats_are_in_the_table_for_a_known_format() -> None:
    assert OF_FORMAT.keys() <= formats._CHECKS.keys()


@rows(
    "pattern, least, most",
    [("^a$", 2, None), ("^[a-z]{5}$", 0, 3), ("", 3, 2), (TOO_LONG, 0, None)],
)
def test_contradictions_have_no_text(pattern: str, least: int, most: int | None) -> None:
    assert text(Random(0).randrange, pattern, "", least, most) is None


def test_choices_are_limited_whatever_the_pattern() -> None:
    asked: list[int] = []

    def most(number: int) -> int:
        asked.append(number)
        return number - 1

    assert text(most, f"^{NESTED}$", "", 0, None) is not None
    assert len(asked) < 2000


def test_the_first_choices_make_the_simplest_text() -> None:
    assert text(lambda _: 0, LABEL, "", 1, 63) == "a"


@rows("pattern, expected", [("^va+$", "va"), ("plain", "plain"), ("(", None)])
def test_the_sample_of_a_pattern(pattern: str, expected: str | None) -> None:
    assert sample(pattern) == expected
