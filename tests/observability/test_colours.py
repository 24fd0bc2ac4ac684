"""Which output has colours."""

from __future__ import annotations

import io
import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from noxu.config import Config
from noxu.observability import logs
from noxu.observability.logs import coloured, shown_on
from noxu.process.running import banner


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


STREAMS: list[tuple[str, io.StringIO, Mapping[str, str], bool]] = [
    ("a terminal", Terminal(), {"TERM": "xterm"}, True),
    ("a file", io.StringIO(), {"TERM": "xterm"}, False),
    ("a terminal that shows none", Terminal(), {"TERM": "dumb"}, False),
    ("an unknown terminal", Terminal(), {}, False),
    ("a terminal whose user wants none", Terminal(), {"TERM": "xterm", "NO_COLOR": "1"}, False),
    ("an empty NO_COLOR, which counts as absent", Terminal(), {"TERM": "xterm", "NO_COLOR": ""}, True),
    ("a file whose reader wants them", io.StringIO(), {"FORCE_COLOR": "1"}, True),
    ("both wishes", Terminal(), {"TERM": "xterm", "FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
]


@pytest.mark.parametrize(
    ("stream", "environment", "shown"), [row[1:] for row in STREAMS], ids=[row[0] for row in STREAMS]
)
def test_colours_are_shown_on(stream: io.StringIO, environment: Mapping[str, str], shown: bool) -> None:
    assert shown_on(stream, environment) is shown


def test_a_text_without_colours_is_unchanged() -> None:
    assert coloured("a", "red", shown=False) == "a"
    assert coloured("a", "red", shown=True) == "\x1b[31ma\x1b[0m"
    assert coloured("", "red", shown=True) == ""


@pytest.mark.parametrize(
    ("level", "shown"), [("INFO", "INFO"), ("WARNING", "\x1b[33mWARNING\x1b[0m"), ("ERROR", "\x1b[31mERROR\x1b[0m")]
)
def test_levels_of_the_log_have_colours(level: str, shown: str) -> None:
    record = logging.LogRecord("noxu", getattr(logging, level), "", 0, "a\x1b[31mb", None, None)
    assert f"Z {shown} a\\x1b[31mb" in logs.TextFormatter(True).format(record)
    assert f"Z {level} a\\x1b[31mb" in logs.TextFormatter().format(record)


def test_the_banner_says_the_same_with_colours() -> None:
    plain = banner(Config(), "http://127.0.0.1:1", Path("k"))
    assert "\x1b" not in plain
    vivid = banner(Config(), "http://127.0.0.1:1", Path("k"), shows_colours=True)
    assert "\x1b[1mhttp://127.0.0.1:1\x1b[0m" in vivid
    assert vivid.replace("\x1b[1m", "").replace("\x1b[0m", "") == plain
