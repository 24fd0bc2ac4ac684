"""Message types: what `Name{field: value}` makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from noxu.cel.types.types import Type
from noxu.cel.values.values import Value


class MessageType(NamedTuple):
    """`field` returns the type of a field, None if there is no such field. `make` may raise CelError."""

    type: Type
    field: Callable[[str], Type | None]
    make: Callable[[dict[str, Value]], Value]


FindMessage: TypeAlias = Callable[[str], MessageType | None]
"""The message type of a name, None if the name is not that of a message type."""


def no_messages(name: str) -> MessageType | None:  # noqa: ARG001
    """No message types at all."""
    return None
