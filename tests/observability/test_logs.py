r"""The server's log: one line for each message, whatever clients put into it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from io import StringIO
from typing import Any, cast

import pytest

from noxu.observability import logs
from noxu.observability.logs import MAX_PATH, Request, escaped, json_line, text_line
from tests.rows import rows

AT: float = 1767323045.678
REQUEST = Request(AT, "ann", "get", "/api/v1/pods?limit=1", 200, 0.00123, "id-1")


@pytest.fixture
def restored() -> Iterator[None]:
    """The root logger is as before afterwards."""
    root, own = logging.getLogger(), logging.getLogger("noxu")
    before = (root.handlers[:], root.level, own.level)
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    own.setLevel(before[2])


def logged(format_: str, level: int = logging.INFO) -> tuple[logging.Logger, StringIO]:
    stream = StringIO()
    logs.configure(format_, level, stream)
    return logging.getLogger("noxu"), stream


@pytest.mark.usefixtures("restored")
def test_a_message_as_text_and_as_json() -> None:
    for format_ in ("text", "json"):
        log, stream = logged(format_)
        log.warning("the disk is %s", "full")
        line = stream.getvalue()
        if format_ == "json":
            found = json.loads(line)
            assert {key: found[key] for key in ("level", "message")} == {
                "level": "warning",
                "message": "the disk is full",
            }
            assert found["time"].endswith("Z")
        else:
            assert line.endswith("Z WARNING the disk is full\n")


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(
    ("level", "shown"),
    [
        (logging.DEBUG, ["debug", "info", "warning"]),
        (logging.INFO, ["info", "warning"]),
        (logging.WARNING, ["warning"]),
    ],
)
def test_levels(level: int, shown: list[str]) -> None:
    log, stream = logged("json", level)
    logging.getLogger("asyncio").debug("of a library")
    log.debug("debug")
    log.info("info")
    log.warning("warning")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == shown


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("format_", ["text", "json"])
@pytest.mark.parametrize("text", ["a\nb", "\x1b[2J", "\r", "\x00", "\x9b1m", "\u2028", "\u202e", "\udcff"])
def test_no_message_ends_a_line_or_controls_a_terminal(format_: str, text: str) -> None:
    log, stream = logged(format_)
    log.info("before %s after", text)
    line = stream.getvalue()
    assert (line.count("\n"), line[-1]) == (1, "\n")
    if format_ == "text":
        assert line[:-1].isprintable()
    assert "\x1b" not in line


@pytest.mark.usefixtures("restored")
def test_a_traceback_is_in_the_line_of_json_and_follows_the_line_of_text() -> None:
    for format_ in ("text", "json"):
        log, stream = logged(format_)
        log.error("failed", exc_info=ValueError("a\x1bb"))
        assert "\x1b" not in stream.getvalue()
        if format_ == "json":
            assert json.loads(stream.getvalue())["error"].endswith("ValueError: a\\x1bb")
        else:
            assert stream.getvalue().splitlines()[-1] == "ValueError: a\\x1bb"


def test_a_request_as_text_and_as_json() -> None:
    assert text_line(REQUEST) == b"2026-01-02T03:04:05.678Z ann get /api/v1/pods?limit=1 200 1.2ms\n"
    assert json_line(REQUEST) == (
        b'{"time":"2026-01-02T03:04:05.678Z","level":"info","message":"request","user":"ann","verb":"get",'
        b'"path":"/api/v1/pods?limit=1","code":200,"ms":1.2,"auditID":"id-1"}\n'
    )


@rows("text", ["a\nb", "\x1b[2J", "\r", "\x00", "\x9b1m", "\u2028", "\udcff", "x" * 10_000])
@pytest.mark.parametrize("field", ["user", "verb", "target", "id"])
def test_nothing_of_a_request_ends_its_line_or_controls_a_terminal(field: str, text: str) -> None:
    request = REQUEST._replace(**{field: cast(Any, text)})
    for line in (text_line(request), json_line(request)):
        assert line.count(b"\n") == 1
        assert line[:-1].decode().isprintable()
        assert len(line) < MAX_PATH + 300


@pytest.mark.parametrize(("user", "shown"), [("a b", b' "a b" '), ("", b' "" '), ("system:admin", b" system:admin ")])
def test_a_user_with_spaces_is_one_field(user: str, shown: bytes) -> None:
    assert shown in text_line(REQUEST._replace(user=user))


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("abc", None, "abc"),
        ("abc", 2, "ab…"),
        ("ä", None, "ä"),
        ("\t\x07", None, "\\t\\a"),
        ("\u200b", None, "\\u200b"),
    ],
)
def test_escaping(text: str, limit: int | None, expected: str) -> None:
    assert escaped(text, limit) == expected
