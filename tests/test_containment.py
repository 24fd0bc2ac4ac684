"""`Contained`: bugs are logged and kept; cancellation and exceptions that are meant to propagate do."""

from __future__ import annotations

import asyncio
import logging
import re
from pathlib import Path

import pytest

from noxu.api.errors import ApiError, bad_request
from noxu.containment import Contained

PACKAGES = [Path(__file__).parents[1] / name for name in ("apiserver/noxu", "storage/noxu_storage")]


def test_an_exception_is_logged_with_its_traceback_and_kept(caplog: pytest.LogCaptureFixture) -> None:
    bug = RuntimeError("planned")
    with Contained("a watch of widgets") as contained:
        raise bug
    assert contained.error is bug
    [record] = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.ERROR, "a watch of widgets failed")
    assert record.exc_info is not None
    assert record.exc_info[1] is bug


def test_without_an_exception_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with Contained("a watch of widgets") as contained:
        pass
    assert (contained.error, caplog.records) == (None, [])


PROPAGATING: list[tuple[str, BaseException]] = [
    ("an exception that is meant to propagate", bad_request("planned")),
    ("cancellation", asyncio.CancelledError()),
    ("the end of the process", SystemExit()),
    ("an interrupt", KeyboardInterrupt()),
]  # fmt: skip


@pytest.mark.parametrize("error", [row[1] for row in PROPAGATING], ids=[row[0] for row in PROPAGATING])
def test_these_propagate(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(type(error)), Contained("a request", passing=ApiError) as contained:
        raise error
    assert (contained.error, caplog.records) == (None, [])


def test_only_these_places_catch_every_exception() -> None:
    """And all of them log it: no bug goes unnoticed."""
    found = {
        str(path.relative_to(package.parent)): path.read_text()
        for package in PACKAGES
        for path in package.rglob("*.py")
        if re.search(r"except Exception\b|except:|suppress\(Exception", path.read_text())
    }
    assert sorted(found) == ["noxu/http/app.py", "noxu/registry/cache.py"]
    for name, text in found.items():
        handlers = re.findall(r"except Exception as bug:.*\n +(\w+)\(", text)
        assert handlers == ["log_bug"] * text.count("except Exception"), name
