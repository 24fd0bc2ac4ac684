"""The options of plain arguments, without argparse: importing and using that is a twentieth of the start of a server.

`options` reads what is spelled out, as in `noxu serve --memory --port=0 config/crd`: options with their whole names, each
value that begins with a dash after `=`, and positional arguments of a command that takes any number of them. At any doubt,
such as an abbreviation, an invalid value or `--help`, it returns None, and argparse decides: it alone knows messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
else:
    from types import SimpleNamespace as Namespace


class Argument(NamedTuple):
    """As `add_argument` describes it. `group`: of it, at most one argument may be given; 0: it has no such group."""

    dest: str
    action: str
    type: Callable[[str], Any] | None
    default: Any
    choices: Sequence[str] | None
    group: int


class Doubt(Exception):
    """Only argparse knows."""


_ACTIONS: Final = ("store", "append", "store_true")


class Declared:
    """Collects the arguments of a command: what `ArgumentParser` is for the modules of this package. Raises Doubt."""

    def __init__(self) -> None:
        self.named: dict[str, Argument] = {}
        self.positional: Argument | None = None
        self.description = ""
        self._groups = 0

    def add_argument_group(self, title: str, description: str = "") -> Declared:
        return self

    def add_mutually_exclusive_group(self) -> _Alternatives:
        self._groups += 1
        return _Alternatives(self, self._groups)

    def add_argument(
        self,
        *names: str,
        dest: str = "",
        action: str = "store",
        type: Callable[[str], Any] | None = None,  # noqa: A002 - argparse's name
        default: Any = None,
        choices: Sequence[str] | None = None,
        metavar: str = "",
        help: str = "",  # noqa: A002
        nargs: str = "",
        group: int = 0,
        **others: object,
    ) -> None:
        is_option = names[0].startswith("-")
        if (
            others
            or action not in _ACTIONS
            or nargs != ("" if is_option else "*")
            or (self.positional and not is_option)
        ):
            raise Doubt
        if action == "store_true":
            default = False
        if not is_option:
            self.positional = Argument(names[0], "append", type, [], choices, group)
            return
        dest = dest or next((name for name in names if name.startswith("--")), names[0]).lstrip("-").replace("-", "_")
        argument = Argument(dest, action, type, default, choices, group)
        self.named |= dict.fromkeys(names, argument)


class _Alternatives:
    """A group of which at most one argument may be given."""

    def __init__(self, declared: Declared, group: int) -> None:
        self._declared = declared
        self._group = group

    def add_argument(self, *names: str, **described: Any) -> None:
        self._declared.add_argument(*names, group=self._group, **described)


def options(add: Callable[[ArgumentParser], None], given: Sequence[str]) -> Namespace | None:
    """What argparse would return for arguments that `add` adds. None: it has to be asked."""
    declared = Declared()
    try:
        add(declared)  # type: ignore[arg-type]
        return _read(declared, given)
    except Doubt:
        return None


def _read(declared: Declared, given: Sequence[str]) -> Namespace:
    """Raises Doubt."""
    found: dict[str, Any] = {}
    chosen: dict[int, Argument] = {}
    words = iter(given)
    for word in words:
        name, has_value, value = ("", "=", word) if _is_value(word) else word.partition("=")
        argument = declared.named.get(name) if name else declared.positional
        if argument is None:
            raise Doubt
        if argument.group and chosen.setdefault(argument.group, argument) is not argument:
            raise Doubt
        if value == "--":  # argparse drops it, in some versions of Python
            raise Doubt
        if argument.action == "store_true":
            if has_value:
                raise Doubt
            found[argument.dest] = True
            continue
        if not has_value:
            value = next(words, "--")
            if not _is_value(value):
                raise Doubt
        one = _value(argument, value)
        if argument.action == "append":
            found.setdefault(argument.dest, [*(argument.default or ())]).append(one)
        else:
            found[argument.dest] = one
    for argument in (*declared.named.values(), declared.positional):
        if argument is not None and argument.dest not in found:
            default = argument.default
            found[argument.dest] = _value(argument, default) if isinstance(default, str) else default
    return Namespace(**found)


def _is_value(word: str) -> bool:
    return not word.startswith("-") or word == "-"


def _value(argument: Argument, text: str) -> Any:
    """Raises Doubt."""
    try:
        value = text if argument.type is None else argument.type(text)
    except _invalid():
        raise Doubt from None
    if argument.choices is not None and value not in argument.choices:
        raise Doubt
    return value


def _invalid() -> tuple[type[Exception], ...]:
    """What the type of an argument raises for an invalid value: asked for only when something has been raised."""
    from argparse import ArgumentTypeError

    return ArgumentTypeError, TypeError, ValueError
