"""The server's own log on stderr: one message a line as text or JSON, and a line for each request on demand.

    2026-01-02T03:04:05.678Z WARNING the history is not compacted: disk I/O error
    {"time":"2026-01-02T03:04:05.678Z","level":"warning","message":"the history is not compacted: disk I/O error"}

Text from a client cannot end a line or control a terminal: characters that are not printable are escaped as in Go's
strings (`\n`, `\x1b`). Only a traceback, in the text format, has lines of its own.

Colours of output on a terminal (ECMA-48).

A stream has colours if it is a terminal that can show them, unless NO_COLOR is set (no-color.org). FORCE_COLOR gives them
to every stream. Windows Terminal shows them; older consoles of Windows are not asked.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple, TextIO

import orjson

from noxu.go.text import quote

MAX_PATH: Final = 1000  # characters of a request's target in its line
MAX_USER: Final = 256
_CUT: Final = "…"
_OWN: Final = "noxu"


def configure(format_: str, level: int, stream: TextIO | None = None) -> None:
    """Log to stderr from now on: messages of this level and above. `level` DEBUG is of this program only."""
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter(shown_on(stream)) if format_ == "text" else JsonFormatter())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(max(level, logging.INFO))
    logging.getLogger(_OWN).setLevel(level)


def escaped(text: str, limit: int | None = None) -> str:
    """The text on one line of printable characters; what is beyond the limit is cut."""
    if limit is not None and len(text) > limit:
        text = text[:limit] + _CUT
    return text if text.isprintable() else "".join(char if char.isprintable() else quote(char)[1:-1] for char in text)


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC).isoformat(timespec='milliseconds')[:23]}Z"


class TextFormatter(logging.Formatter):
    """`TIME LEVEL MESSAGE`, and the lines of a traceback. Levels have colours if those are shown."""

    def __init__(self, shows_colours: bool = False) -> None:
        super().__init__()
        self._shows_colours = shows_colours

    def format(self, record: logging.LogRecord) -> str:
        level = record.levelname
        if level in COLOURS_OF_LEVELS:
            level = coloured(level, COLOURS_OF_LEVELS[level], shown=self._shows_colours)
        line = f"{_time(record.created)} {level} {escaped(record.getMessage())}"
        trace = _traceback(record)
        return f"{line}\n{trace}" if trace else line


class JsonFormatter(logging.Formatter):
    """An object with `time`, `level`, `message`, and `error` if there is a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": _time(record.created),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        if trace := _traceback(record):
            fields["error"] = trace
        return json_text(fields)


def _traceback(record: logging.LogRecord) -> str:
    """The traceback of a record, "" without one. Its lines are escaped one by one."""
    if not record.exc_info or record.exc_info[1] is None:
        return ""
    lines = "".join(traceback.format_exception(record.exc_info[1])).splitlines()
    return "\n".join(map(escaped, lines))


def json_text(fields: object) -> str:
    """JSON on one line; bytes that are not UTF-8 are replaced."""
    try:
        return orjson.dumps(fields).decode()
    except TypeError:
        assert isinstance(fields, dict)
        valid = {
            name: value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
            for name, value in fields.items()
        }
        return orjson.dumps(valid).decode()


# -- requests ---------------------------------------------------------------------------------------------------------


class Request(NamedTuple):
    """A request that has been answered. `code` is 0 if the client left before."""

    time: float
    """When it was answered, in seconds since 1970."""
    user: str
    verb: str
    """That of the API; of a path of no resource the method."""
    target: str
    code: int
    seconds: float
    id: str
    traceparent: str = ""
    """"" if its client has not said what trace it belongs to; only lines of JSON have it."""


def text_line(request: Request) -> bytes:
    """`TIME USER VERB PATH CODE MILLISECONDS`."""
    user = escaped(request.user, MAX_USER)
    fields = (
        _time(request.time),
        quote(user) if " " in user or not user else user,
        escaped(request.verb, MAX_USER),
        escaped(request.target, MAX_PATH),
        str(request.code),
        f"{request.seconds * 1000:.1f}ms",
    )
    return f"{' '.join(fields)}\n".encode("utf-8", "replace")


def json_line(request: Request) -> bytes:
    fields = {
        "time": _time(request.time),
        "level": "info",
        "message": "request",
        "user": escaped(request.user, MAX_USER),
        "verb": escaped(request.verb, MAX_USER),
        "path": escaped(request.target, MAX_PATH),
        "code": request.code,
        "ms": round(request.seconds * 1000, 1),
        "auditID": escaped(request.id, MAX_USER),
    }
    if request.traceparent:
        fields["traceparent"] = request.traceparent
    return f"{json_text(fields)}\n".encode()


REQUEST_LINES: Final[dict[str, Callable[[Request], bytes]]] = {"text": text_line, "json": json_line}


# -- colours on a terminal (ECMA-48) -----------------------------------------------------------------------------------


_CODES: Final = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33}
COLOURS_OF_LEVELS: Final = {"DEBUG": "dim", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}
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
