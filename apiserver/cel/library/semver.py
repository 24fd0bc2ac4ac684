"""Kubernetes' semantic versions (github.com/blang/semver/v4), error texts included."""

from __future__ import annotations

import re
from typing import Final

from apiserver.api.gotext import quote
from apiserver.cel.errors import CelError, no_such_overload
from apiserver.cel.library.declarations import Overload, overload
from apiserver.cel.numbers import MAX_UINT64
from apiserver.cel.types import SEMVER
from apiserver.cel.values import Opaque, Value

_NUMBERS: Final = re.compile("[0-9]*")
_WORDS: Final = re.compile("[0-9A-Za-z-]*")


class Version(Opaque):
    """A part of `prerelease` is (False, number) or (True, word): numbers come first."""

    __slots__ = ("numbers", "prerelease")
    type = SEMVER

    def __init__(self, numbers: tuple[int, int, int], prerelease: list[tuple[bool, Value]]) -> None:
        self.numbers = numbers
        self.prerelease = prerelease

    @property
    def order(self) -> tuple[object, ...]:
        """What is sorted by. A release is later than its prereleases; build metadata does not matter."""
        return (*self.numbers, not self.prerelease, self.prerelease)

    def equals(self, other: Value) -> bool:
        if not isinstance(other, Version):
            raise no_such_overload()
        return self.order == other.order


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
    """Raises ValueError with the library's message."""
    if not text:
        raise ValueError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise ValueError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "major"), _number(parts[1], "minor")
    rest, plus, build = parts[2].partition("+")
    patch, dash, prerelease = rest.partition("-")
    number = _number(patch, "patch")
    before = [_prerelease(one) for one in prerelease.split(".")] if dash else []
    for one in build.split(".") if plus else ():
        if not one:
            raise ValueError("Build meta data is empty")
        if not _WORDS.fullmatch(one):
            raise ValueError(f"Invalid character(s) found in build meta data {quote(one)}")
    return Version((major, minor, number), before)


def parse_normalized(text: str) -> Version:
    """A leading v, leading zeros and missing numbers are allowed."""
    parts = text.removeprefix("v").split(".", 2)
    for position, part in enumerate(parts):
        if len(part) > 1:
            bare = part.lstrip("0")
            parts[position] = bare if bare[:1].isascii() and bare[:1].isdigit() else f"0{bare}"
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise ValueError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return parse(".".join(parts))


def read(text: str, normalize: bool = False) -> Version:
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
