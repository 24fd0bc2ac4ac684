"""A writer of an audit log that keeps the lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


class Lines:
    """Keeps what is written. `accepts` False: nothing can be written."""

    def __init__(self, *, accepts: bool = True) -> None:
        self.lines: list[bytes] = []
        self.accepts = accepts
        self.is_full = False
        self.failed = 0

    def put(self, line: bytes | Callable[[], bytes], weight: int, *, bounded: bool = True) -> None:
        self.lines.append(line if isinstance(line, bytes) else line())

    async def room(self) -> None:
        pass

    async def flushed(self) -> bool:
        return self.accepts

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]
