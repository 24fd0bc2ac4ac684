"""What the console adds to `/_noxu/`: the table of its routes. Everything else that the page asks for stands in `noxu.control`.

`noxu.http.control` imports this room with its first request. The order matters: a name beats a segment in braces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from noxu.console import changes, page_files, session, stored_kinds, stream
from noxu.control.calls import ControlRoute

ROUTES: Final[Sequence[ControlRoute]] = (
    *page_files.ROUTES,
    *changes.ROUTES,
    *session.ROUTES,
    *stored_kinds.ROUTES,
    *stream.ROUTES,
)
