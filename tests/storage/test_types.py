"""The texts of errors are the same on every platform, as far as the system's are."""

from __future__ import annotations

import errno

import pytest

from noxu_storage.types import reason

REASONS: list[tuple[str, Exception, str]] = [
    ("an error that is not of the system", ValueError("no"), "no"),
    ("an error without a number", OSError("no"), "no"),
    ("one with a number", OSError(errno.EACCES, "Permission denied"), "Permission denied"),
    ("one about a file", FileNotFoundError(errno.ENOENT, "No such file or directory", "f"), "f: No such file or directory"),
    ("one about an address", OSError(errno.EADDRNOTAVAIL, "Not there (while attempting to bind on address ('a', 1))"), "Not there"),
    ("one without a text", OSError(errno.EACCES, ""), "EACCES"),
    ("one with an unknown number and no text", OSError(99999, ""), "[Errno 99999] "),
]  # fmt: skip


@pytest.mark.parametrize(("error", "text"), [row[1:] for row in REASONS], ids=[row[0] for row in REASONS])
def test_the_reason_of(error: Exception, text: str) -> None:
    assert reason(error) == text


def test_a_message_that_names_the_file_itself() -> None:
    assert reason(FileNotFoundError(errno.ENOENT, "Not there", "f"), named=False) == "Not there"
