"""Progress on stderr: a bar on a terminal, lines elsewhere, nothing with --quiet. Time is what the tests say."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, Final, TextIO

import pytest

from noxu.commands import progress, serve
from noxu.commands.progress import BAR_AFTER, ERASE_LINE, LINE_EVERY, REDRAW_EVERY
from noxu.config import Config
from noxu.control_plane import ControlPlane, running
from noxu.manifests.documents import Document
from noxu.process import running as process
from noxu.process import server
from noxu.process.server import Server
from noxu_storage.types import Progress
from tests.cli.conftest import Run, Write
from tests.definitions import widgets
from tests.timing import hang_guard

CRD: Final = widgets()


def widget(name: str) -> Any:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}}


END: Final = "\0"


class Time:
    """A clock that stands still."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal:
    """A pseudo terminal: what is written to `stream` is read from it."""

    def __init__(self) -> None:
        self._reader, writer = pty.openpty()
        self.stream: TextIO = os.fdopen(writer, "w")

    def shown(self) -> str:
        """What has been written since the last call, without colours."""
        self.stream.write(END)
        self.stream.flush()
        text = b""
        while not text.endswith(END.encode()):  # the system hands on what is written a little later, in pieces
            text += os.read(self._reader, 65536)
        return re.sub(r"\x1b\[[0-9;]*m", "", text.decode().removesuffix(END))

    def close(self) -> None:
        self.stream.close()
        os.close(self._reader)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    yield terminal
    terminal.close()


@pytest.fixture
def time() -> Time:
    return Time()


def test_a_terminal_has_a_bar_while_long_work_lasts(terminal: Terminal, time: Time) -> None:
    with progress.shown("validate", stream=terminal.stream, now=time) as report:
        report(0, 40)
        assert terminal.shown() == ""
        time.now += BAR_AFTER
        report(10, 40)
        first = terminal.shown()
        assert "validate" in first
        assert "━ 10/40 objects" in first
        time.now += REDRAW_EVERY / 2
        report(11, 40)
        assert terminal.shown() == "", "it is not drawn more often than it can be seen"
        time.now += 60
        report(30, 40)
        later = terminal.shown()
        assert "30/40 objects" in later
        assert "0:01:00" in later
    assert terminal.shown().endswith("\x1b[2K"), "the bar is removed"


def test_a_total_that_is_not_known(terminal: Terminal, time: Time) -> None:
    with progress.shown("validate", stream=terminal.stream, now=time) as report:
        time.now += BAR_AFTER
        report(10, 0)
        assert "10/? objects" in terminal.shown()


def test_short_work_has_no_bar(terminal: Terminal, time: Time) -> None:
    with progress.shown("check", "rows", stream=terminal.stream, now=time) as report:
        time.now += BAR_AFTER / 2
        report(10, 20)
    assert terminal.shown() == ""


def test_a_bar_is_removed_after_an_error(terminal: Terminal, time: Time) -> None:
    def fail() -> None:
        with progress.shown("check", stream=terminal.stream, now=time) as report:
            time.now += BAR_AFTER
            report(10, 20)
            assert "\x1b[?25l" in terminal.shown(), "without a cursor"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    shown = terminal.shown()
    assert "\x1b[?25h" in shown, "with a cursor"
    assert shown.endswith("\x1b[2K")


def test_lines_of_the_log_replace_the_bar_until_it_is_drawn_again(terminal: Terminal, time: Time) -> None:
    handler = logging.StreamHandler(terminal.stream)
    logging.getLogger().addHandler(handler)
    try:
        with progress.shown("load", stream=terminal.stream, now=time) as report:
            time.now += BAR_AFTER
            report(10, 20)
            terminal.shown()
            logging.getLogger("noxu").warning("a warning")
            assert terminal.shown() == f"{ERASE_LINE}a warning\r\n"
        terminal.shown()
        logging.getLogger("noxu").warning("later")
        assert terminal.shown() == "later\r\n"
    finally:
        logging.getLogger().removeHandler(handler)


@pytest.mark.parametrize("term", ["dumb", "unknown", None])
def test_a_terminal_that_cannot_draw_has_lines(
    term: str | None, terminal: Terminal, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TERM")
    if term is not None:
        monkeypatch.setenv("TERM", term)
    with progress.shown("check", "rows", stream=terminal.stream, now=time) as report:
        time.now += LINE_EVERY
        report(10, 20)
    assert terminal.shown() == "noxu: check: 10 of 20 rows\r\n"


def test_without_a_terminal_there_is_a_line_every_few_seconds(time: Time) -> None:
    stream = io.StringIO()
    with progress.shown("migrate widgets.example.com", stream=stream, now=time) as report:
        for done in range(12):
            report(done, 12 if done < 8 else 0)
            time.now += LINE_EVERY / 4
    assert stream.getvalue() == (
        "noxu: migrate widgets.example.com: 4 of 12 objects\nnoxu: migrate widgets.example.com: 8 objects\n"
    )


def test_a_server_writes_the_lines_to_its_log(time: Time) -> None:
    lines: list[str] = []
    with progress.shown("load", stream=io.StringIO(), now=time, say=lines.append) as report:
        time.now += LINE_EVERY
        report(1, 2)
    assert lines == ["load: 1 of 2 objects"]


def test_quiet_shows_nothing(terminal: Terminal, time: Time) -> None:
    for stream in (terminal.stream, io.StringIO()):
        with progress.shown("check", quiet=True, stream=stream, now=time) as report:
            time.now += 10 * LINE_EVERY
            report(10, 20)
    assert terminal.shown() == ""


def test_items_are_reported_before_they_are_used() -> None:
    seen: list[object] = []
    seen.extend(progress.each("ab", lambda done, total: seen.append((done, total)), 2))
    assert seen == [(0, 2), "a", (1, 2), "b"]


# -- the commands


@pytest.fixture
def every_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each report is a line."""
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a CRD and two widgets."""
    directory = tmp_path_factory.mktemp("stored")

    async def store() -> None:
        documents = [Document(value, "") for value in (CRD, widget("a"), widget("b"))]
        async with Server(Config(port=0, data=directory), documents):
            pass

    asyncio.run(store())
    return directory


@pytest.fixture
def data(stored: Path, here: Path, write: Write) -> Path:
    """A copy of that directory, and the objects as files."""
    write("crd.json", CRD)
    write("a.json", widget("a"))
    shutil.copytree(stored, here / "data")
    return here / "data"


LONG: list[tuple[str, list[str]]] = [
    ("validate -f crd.json -f a.json", ["noxu: validate: 0 of 2 objects", "noxu: validate: 1 of 2 objects"]),
    ("validate --stored --data data", ["noxu: validate: 0 of 2 objects", "noxu: validate: 1 of 2 objects"]),
    ("migrate --data data widgets.example.com", ["noxu: migrate widgets.example.com: 0 of 2 objects"]),
]


@pytest.mark.parametrize(("line", "expected"), LONG, ids=[line for line, _ in LONG])
@pytest.mark.usefixtures("every_report")
def test_commands_show_their_progress(line: str, expected: list[str], run: Run, data: Path) -> None:
    ran = run(line)
    assert ran.err.splitlines() == expected
    assert ran.status == 0
    assert run(f"{line} --quiet") == (0, ran.out, "")


@pytest.mark.usefixtures("every_report")
def test_a_check_shows_its_progress(run: Run, data: Path) -> None:
    ran = run("check data")
    rows = int(ran.out.split(" rows")[0].rpartition(" ")[2])
    assert ran.err.splitlines() == [f"noxu: check: {done} of {rows} rows" for done in range(rows)]
    assert run("check data --quiet") == (0, ran.out, "")


def test_the_integrity_check_shows_that_it_goes_on(
    data: Path, monkeypatch: pytest.MonkeyPatch, run: Run, every_report: None
) -> None:
    monkeypatch.setattr("noxu_storage.check.STEPS", 100)
    assert "noxu: check: 0 rows" in run("check data").err.splitlines()


def test_a_server_shows_what_it_loads(data: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def load(config: Any, around: Callable[[Any], Any], compiling: Any, **others: Any) -> None:
        loaded.extend(around(["a", "b"]))
        with compiling() as report:
            report(1, 3)

    said: list[str] = []
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    monkeypatch.setattr(process, "run", load)
    monkeypatch.setattr(logging.getLogger("noxu"), "info", said.append)
    assert serve.run  # imported before `info` is replaced
    assert run("serve --memory").status == 0
    assert run("serve --memory --quiet").status == 0
    assert loaded == ["a", "b", "a", "b"]
    assert said == ["load: 0 of 2 objects", "load: 1 of 2 objects", "start: 1 of 3 definitions"]


async def test_a_server_shows_how_many_definitions_are_served(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The start is held up until that was shown."""
    monkeypatch.setattr(server, "SHOWN_AFTER", 0.0)
    monkeypatch.setattr(server, "SHOWN_EVERY", 0.0)
    was_shown, seen = asyncio.Event(), []

    @contextlib.contextmanager
    def compiling() -> Iterator[Progress]:
        def report(done: int, total: int) -> None:
            seen.append((done, total))
            was_shown.set()

        yield report

    @contextlib.asynccontextmanager
    async def held_up(plane: ControlPlane) -> AsyncIterator[ControlPlane]:
        await was_shown.wait()
        async with running(plane):
            yield plane

    monkeypatch.setattr(server, "running", held_up)
    async with hang_guard(), Server(Config(port=0, data=data), compiling=compiling):
        assert seen[0] == (0, 1)
        assert set(seen) <= {(0, 1), (1, 1)}


def test_short_commands_do_not_import_the_library(data: Path, here: Path) -> None:
    program = "import sys; from noxu import cli; cli.main(sys.argv[1:]); print('rich' in sys.modules, file=sys.stderr)"
    ran = subprocess.run(
        [sys.executable, "-c", program, "check", "data"], check=True, cwd=here, capture_output=True, text=True
    )
    assert ran.stderr == "False\n"
