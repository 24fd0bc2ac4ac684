"""The command line of kube-apiserver, read as by pflag (github.com/spf13/pflag): its forms of flags, and its errors.

`--name=value`, `--name value`; booleans are set by their name alone, and never take the next word as their value. `_` in a
name is `-`. Unlike pflag, this accepts names with a single dash, and reports unknown flags instead of refusing them; such a
flag takes the next word as its value unless that is a flag.
"""

from __future__ import annotations

import csv
import ipaddress
from collections import deque
from typing import Final, NamedTuple

from noxu.envtest.flags import BOOL, REFUSED, SHORTHANDS, Kind, kind_of
from noxu.features import FALSE, TRUE
from noxu.go.text import quote
from noxu.go.time import SECOND, parse_duration

_INT64: Final = range(-(2**63), 2**63)


class FlagError(ValueError):
    """The command line is invalid."""


class Arguments(NamedTuple):
    """The `values` of each flag, in the order of its uses; `notes` are about flags that kube-apiserver does not have."""

    values: dict[str, list[str]]
    notes: list[str]

    def has(self, name: str) -> bool:
        return name in self.values

    def last(self, name: str, default: str = "") -> str:
        return self.values.get(name, [default])[-1]

    def all(self, name: str) -> tuple[str, ...]:
        return tuple(self.values.get(name, ()))

    def number(self, name: str, default: int) -> int:
        return int(self.last(name, str(default)), 0)

    def is_set(self, name: str, *, default: bool = False) -> bool:
        return self.last(name, "true" if default else "false") in TRUE

    def seconds(self, name: str, default: float) -> float:
        return parse_duration(self.last(name)) / SECOND if self.has(name) else default


def parse(words: list[str]) -> Arguments:
    """Reads no further than --help and --version. Raises FlagError."""
    found = Arguments({}, [])
    others: list[str] = []
    remaining = deque(words)
    while remaining and not (found.is_set("help") or found.has("version")):
        word = remaining.popleft()
        if word == "--":
            others += remaining
            break
        if word.startswith("-") and word != "-":
            _read(word, remaining, found)
        elif word:
            others.append(word)
    if others and not (found.is_set("help") or found.has("version")):
        listed = " ".join(quote(word) for word in others)
        raise FlagError(f'"kube-apiserver" does not take any arguments, got [{listed}]')
    return found


def _read(word: str, remaining: deque[str], found: Arguments) -> None:
    """Read one flag, and its value from `remaining` if it is another word."""
    name, value = _name_and_value(word)
    kind = kind_of(name)
    if kind is None:
        if value is None and remaining and not remaining[0].startswith("-"):
            remaining.popleft()
        found.notes.append(f"unknown flag: --{name}; it has no effect")
        return
    if value is None and kind == BOOL:
        value = "true"
    elif value is None and not remaining:
        shown = f"'{name}' in -{name}" if name in SHORTHANDS and not word.startswith("--") else f"--{name}"
        raise FlagError(f"flag needs an argument: {shown}")
    elif value is None:
        value = remaining.popleft()
    if name in REFUSED and not (name == "insecure-port" and value == "0"):
        raise FlagError(f"--{name} is not available: {REFUSED[name]}")
    try:
        values = [value] if name == "version" else _values(kind, value)  # --version=raw
    except ValueError as error:
        flag = f"-{name}, --{name}" if name in SHORTHANDS else f"--{name}"
        raise FlagError(f"invalid argument {quote(value)} for {quote(flag)} flag: {error}") from None
    found.values.setdefault(name, []).extend(values)


def _name_and_value(word: str) -> tuple[str, str | None]:
    """The name of the flag in its usual form, and the value that follows `=` or a shorthand."""
    dashes = 2 if word.startswith("--") else 1
    name, equals, value = word[dashes:].partition("=")
    if not name or name.startswith("-"):
        raise FlagError(f"bad flag syntax: {word}")
    name = name.replace("_", "-")
    if dashes == 1 and name[0] in SHORTHANDS and kind_of(name) is None:
        return SHORTHANDS[name[0]], word[2:]  # -v4
    return SHORTHANDS.get(name, name) if dashes == 1 else name, value if equals else None


def _values(kind: Kind, text: str) -> list[str]:
    """The values that one use of a flag adds. Raises ValueError."""
    match kind:
        case "bool" if text not in TRUE | FALSE:
            raise ValueError(f"strconv.ParseBool: parsing {quote(text)}: invalid syntax")
        case "int":
            _check_integer(text)
        case "duration":
            parse_duration(text)
        case "ip" if text:
            return [_address(text)]
        case "strings":
            return _comma_separated(text)
    return [text]


def _check_integer(text: str) -> None:
    try:
        number = int(text, 0)
    except ValueError:
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax") from None
    if number not in _INT64:
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: value out of range")


def _address(text: str) -> str:
    """An IP address in its shortest form."""
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        raise ValueError(f"failed to parse IP: {quote(text)}") from None


def _comma_separated(text: str) -> list[str]:
    """One line of CSV, as Go's encoding/csv reads it."""
    try:
        return next(csv.reader(text.splitlines(), strict=True), [])
    except csv.Error as error:
        raise ValueError(str(error)) from None
