"""Kubernetes' semantic versions in expressions (github.com/blang/semver/v4), error messages included."""

from __future__ import annotations

import re
from typing import Final

from noxu.cel.errors import CelError, no_such_overload
from noxu.cel.library.declarations import Overload, overload
from noxu.cel.memory import allocate, allocate_text
from noxu.cel.types.types import SEMVER
from noxu.cel.values.numbers import MAX_UINT64
from noxu.cel.values.values import Opaque, Value
from noxu.go.text import quote

_NUMBERS: Final = re.compile("[0-9]*")
_PART: Final = 160  # bytes of a part of a prerelease
_WORDS: Final = re.compile("[0-9A-Za-z-]*")


class Version(Opaque):
    """`1.2.3-rc.1+build`.

    A part of `prerelease` is (False, number) or (True, word), so that numbers sort before words: rc.1 is
    [(True, "rc"), (False, 1)].
    """

    __slots__ = ("build", "numbers", "prerelease")
    type = SEMVER

    def __init__(self, numbers: tuple[int, int, int], prerelease: list[tuple[bool, Value]], build: str) -> None:
        self.numbers = numbers
        self.prerelease = prerelease
        self.build = build

    @property
    def order(self) -> tuple[object, ...]:
        """The sort key. A release is later than its prereleases; build metadata does not count."""
        return (*self.numbers, not self.prerelease, self.prerelease)

    def equals(self, other: Value) -> bool:
        if not isinstance(other, Version):
            raise no_such_overload()
        return self.order == other.order

    def __str__(self) -> str:
        text = ".".join(map(str, self.numbers))
        if self.prerelease:
            text += "-" + ".".join(str(part) for _, part in self.prerelease)
        return f"{text}+{self.build}" if self.build else text


def _number(text: str, name: str) -> int:
    if not _NUMBERS.fullmatch(text):
        raise ValueError(f"Invalid character(s) found in {name} number {quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise ValueError(f"{name.capitalize()} number must not contain leading zeroes {quote(text)}")
    return _unsigned(text)


def _unsigned(text: str) -> int:
    if not text:
        raise ValueError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > MAX_UINT64:
        raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return int(text)


def _prerelease(text: str) -> tuple[bool, Value]:
    if not text:
        raise ValueError("Prerelease is empty")
    if _NUMBERS.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise ValueError(f"Numeric PreRelease version must not contain leading zeroes {quote(text)}")
        return False, _unsigned(text)
    if not _WORDS.fullmatch(text):
        raise ValueError(f"Invalid character(s) found in prerelease {quote(text)}")
    return True, text


def parse(text: str) -> Version:
    """semver.Parse. Raises ValueError with the library's message.

    1.2.3-rc.1+b.5   →   at the first two dots: 1, 2, rest 3-rc.1+b.5; at "+": build b.5; at "-": patch 3, rc.1
    """
    if not text:
        raise ValueError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise ValueError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "major"), _number(parts[1], "minor")
    rest, plus, build = parts[2].partition("+")
    patch, dash, prerelease = rest.partition("-")
    number = _number(patch, "patch")
    prerelease_parts = [_prerelease(part) for part in prerelease.split(".")] if dash else []
    for part in build.split(".") if plus else ():
        if not part:
            raise ValueError("Build meta data is empty")
        if not _WORDS.fullmatch(part):
            raise ValueError(f"Invalid character(s) found in build meta data {quote(part)}")
    return Version((major, minor, number), prerelease_parts, build)


def parse_normalized(text: str) -> Version:
    """Like `parse`, but a leading v, leading zeros and missing numbers are allowed: v01.2 → 1.2.0."""
    parts = text.removeprefix("v").split(".", 2)
    for position, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[position] = stripped if stripped[:1].isascii() and stripped[:1].isdigit() else f"0{stripped}"
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise ValueError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return parse(".".join(parts))


def read(text: str, normalize: bool = False) -> Version:
    allocate_text(len(text), text)
    allocate(_PART * text.count("."))
    try:
        return parse_normalized(text) if normalize else parse(text)
    except ValueError as error:
        raise CelError(str(error)) from None


def is_version(text: str, normalize: bool = False) -> bool:
    try:
        read(text, normalize)
    except CelError:
        return False
    return True


def compare(left: Version, right: Version) -> int:
    a, b = left.order, right.order
    return (a > b) - (a < b)


OVERLOADS: Final[list[tuple[str, Overload]]] = [
    overload("string_to_semver", "semver(string) -> semver", read),
    overload("string_bool_to_semver", "semver(string, bool) -> semver", read),
    overload("is_semver_string", "isSemver(string) -> bool", is_version),
    overload("is_semver_string_bool", "isSemver(string, bool) -> bool", is_version),
    overload("semver_is_greater_than", "semver.isGreaterThan(semver) -> bool", lambda a, b: compare(a, b) == 1),
    overload("semver_is_less_than", "semver.isLessThan(semver) -> bool", lambda a, b: compare(a, b) == -1),
    overload("semver_compare_to", "semver.compareTo(semver) -> int", compare),
    overload("semver_major", "semver.major() -> int", lambda version: version.numbers[0]),
    overload("semver_minor", "semver.minor() -> int", lambda version: version.numbers[1]),
    overload("semver_patch", "semver.patch() -> int", lambda version: version.numbers[2]),
]
