"""The progress of long work, on stderr: a bar on a terminal, a line every few seconds elsewhere, nothing with --quiet.

    validate ━━━━━━━━━━╸━━━━━━━━━ 5300/10000 objects 0:00:04
    noxu: validate: 5300 of 10000 objects

Short work shows nothing. A bar disappears when the work ends; lines of the log appear above it. Nothing is drawn between two
reports, so a bar needs no thread. rich draws it, and is imported when the first bar is shown: it takes a tenth of a second.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TextIO, TypeVar

from noxu_storage.types import Progress, no_progress

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

T = TypeVar("T")

BAR_AFTER: Final = 0.5  # seconds of work without a bar
REDRAW_EVERY: Final = 0.1  # seconds
LINE_EVERY: Final = 5.0  # seconds
ERASE_LINE: Final = "\r\x1b[2K"


class _Display(Protocol):
    def report(self, done: int, total: int) -> None: ...

    def close(self) -> None: ...


@contextlib.contextmanager
def shown(
    work: str,
    unit: str = "objects",
    *,
    quiet: bool = False,
    stream: TextIO | None = None,
    now: Callable[[], float] = time.monotonic,
    say: Callable[[str], object] | None = None,
    note: Callable[[], str] = str,
) -> Iterator[Progress]:
    """Show how far `work` is while the context is open. `unit` is what is counted, `say` writes a line (None: to `stream`).

    `note` is asked what stands behind it.
    """
    stream = stream or sys.stderr
    if quiet:
        yield no_progress
        return
    display: _Display
    if is_terminal(stream):
        display = _Bar(work, unit, stream, now, note)
    else:
        display = _Lines(work, unit, say or partial(_print_line, stream), now, note)
    try:
        yield display.report
    finally:
        display.close()


def each(items: Iterable[T], progress: Progress, total: int = 0) -> Iterator[T]:
    """The items; before each one, how many have been used."""
    for done, item in enumerate(items):
        progress(done, total)
        yield item


def is_terminal(stream: TextIO) -> bool:
    """Whether a line on it can be drawn again."""
    return stream.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")


def _print_line(stream: TextIO, line: str) -> None:
    print(f"noxu: {line}", file=stream, flush=True)


class _Lines:
    """A line every LINE_EVERY seconds of work."""

    def __init__(
        self, work: str, unit: str, say: Callable[[str], object], now: Callable[[], float], note: Callable[[], str]
    ) -> None:
        self._work, self._unit, self._say, self._now, self._note = work, unit, say, now, note
        self._last = now()

    def report(self, done: int, total: int) -> None:
        now = self._now()
        if now - self._last >= LINE_EVERY:
            self._last = now
            text = f"{self._work}: {f'{done} of {total}' if total else done} {self._unit} {self._note()}"
            self._say(text.rstrip())

    def close(self) -> None:
        pass


class _Bar:
    """A bar, after BAR_AFTER seconds of work."""

    def __init__(self, work: str, unit: str, stream: TextIO, now: Callable[[], float], note: Callable[[], str]) -> None:
        self._work, self._unit, self._stream, self._now, self._note = work, unit, stream, now, note
        self._next = now() + BAR_AFTER
        self._drawn: tuple[RichProgress, TaskID] | None = None
        self._filtered: list[logging.Handler] = []

    def report(self, done: int, total: int) -> None:
        now = self._now()
        if now < self._next:
            return
        self._next = now + REDRAW_EVERY
        if self._drawn is None:
            self._draw(done, total)
        else:
            bar, task = self._drawn
            bar.update(task, completed=done, total=total or None, note=self._note())
            bar.refresh()

    def _draw(self, done: int, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        bar = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(self._unit),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            console=Console(file=self._stream, force_terminal=True),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            get_time=self._now,
        )
        self._drawn = bar, bar.add_task(self._work, completed=done, total=total or None, note=self._note())
        self._filtered = [
            handler for handler in logging.getLogger().handlers if getattr(handler, "stream", None) is self._stream
        ]
        for handler in self._filtered:
            handler.addFilter(self._erase)
        bar.start()

    def _erase(self, _: logging.LogRecord) -> bool:
        self._stream.write(ERASE_LINE)
        self._stream.flush()
        return True

    def close(self) -> None:
        for handler in self._filtered:
            handler.removeFilter(self._erase)
        if self._drawn is not None:
            self._drawn[0].stop()
