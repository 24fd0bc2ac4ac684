"""What a plug-in consists of: a function for mutating admission, one for validating admission, or both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from noxu.admission.attributes import Attributes

Check: TypeAlias = "Callable[[Attributes], Awaitable[None]]"
"""Raises ApiError to refuse. In mutating admission it may change `request.draft.new` in place."""


class Rules(NamedTuple):
    """The functions are called for creations and updates of the resources that the table names, subresources included."""

    mutate: Check | None = None
    validate: Check | None = None
