"""Colours of output on a terminal (ECMA-48).

A stream has colours if it is a terminal that can show them, unless NO_COLOR is set (no-color.org). FORCE_COLOR gives them
to every stream. Windows Terminal shows them; older consoles of Windows are not asked.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, TextIO

_CODES: Final = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33}
OF_LEVELS: Final = {"DEBUG": "dim", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}
"""The colours of the levels of logs."""


def shown_on(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether what is written to a stream has colours."""
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR"):
        return True
    is_capable = "WT_SESSION" in environment if os.name == "nt" else environment.get("TERM", "dumb") != "dumb"
    return is_capable and stream.isatty()


def coloured(text: str, colour: str, *, shown: bool) -> str:
    """The text in a colour, if colours are shown.

    >>> coloured("error", "red", shown=True)
    '\\x1b[31merror\\x1b[0m'
    """
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if shown and text else text
