"""A recording is read as it was written, as far as whole lines go."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from noxu.recordings import lines
from noxu.recordings.lines import NoRecording, Place, RecordingFile, place_of
from tests.rows import rows

HEADER = lines.header("1.0", "2026-03-01T12:00:00Z", 7, {"profile": "envtest", "files": ["/etc/passwd"]})
STEP = {
    "step": 1,
    "at": 0.1,
    "client": {"user": "a", "agent": "b"},
    "method": "GET",
    "path": "/api",
    "expect": {"code": 200},
}
WRITE = {"write": {"revision": 8, "object": None}, "at": 0.2}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.noxu"


def test_what_is_written_is_read(path: Path) -> None:
    file = RecordingFile(path)
    for line in (HEADER, STEP, WRITE):
        file.add(line)
    found = lines.read(path)  # before it is closed: each line is in the file when it is added
    assert (found.began, found.revision, found.version, found.cut) == ("2026-03-01T12:00:00Z", 7, "1.0", False)
    assert list(found.conversation) == [STEP]
    assert list(found.writes) == [WRITE["write"]]
    file.close()


def test_only_known_arguments_of_a_server_count(path: Path) -> None:
    file = RecordingFile(path)
    file.add(HEADER)
    assert lines.read(path).server == {"profile": "envtest"}


@pytest.mark.parametrize("value", [10**40, "\ud800", "\x00", float("1e400"), [[]], "ü"])
def test_whatever_a_client_has_sent_is_read(path: Path, value: object) -> None:
    file = RecordingFile(path)
    for line in (HEADER, {"step": 1, "body": {"a": value}}):
        file.add(line)
    file.close()
    [step] = lines.read(path).conversation
    assert step["body"]["a"] == (None if value == float("inf") else value)


def test_only_its_owner_can_read_it(path: Path) -> None:
    RecordingFile(path).close()
    assert path.stat().st_mode & 0o077 == 0


def test_a_recording_goes_on_or_is_made_anew(path: Path) -> None:
    for goes_on in (False, True, False):
        file = RecordingFile(path, kept=path.stat().st_size if goes_on else 0)
        file.add(HEADER)
        file.close()
    assert path.read_bytes().count(b"\n") == 1


def test_a_recording_goes_on_after_its_last_whole_line(path: Path) -> None:
    path.write_bytes(b'{"a": 1}\n{"b"')
    file = RecordingFile(path, kept=9)
    file.add({"c": 2})
    assert path.read_bytes() == b'{"a": 1}\n{"c":2}\n'


def test_what_is_added_after_the_end_is_lost(path: Path) -> None:
    file = RecordingFile(path)
    file.close()
    file.close()
    file.add(HEADER)
    assert path.read_bytes() == b""


def test_every_cut_of_a_file_is_read_but_for_its_last_line(path: Path) -> None:
    """A process that is killed may have written a part of a line."""
    file = RecordingFile(path)
    for line in (HEADER, STEP, WRITE):
        file.add(line)
    content = path.read_bytes()
    first = content.index(b"\n") + 1
    for size in range(first, len(content) + 1):
        found = lines.parse(content[:size])
        assert len(found.lines) == content[:size].count(b"\n") - 1
        assert found.cut == (content[size - 1 : size] != b"\n")


@rows(
    "content, expected",
    [
        pytest.param(b"", "is no recording", id="an empty file"),
        pytest.param(b'{"id": "a", "steps": []}\n', "is no recording", id="another file"),
        pytest.param(b'{"noxu": "recording", "format": 9}\n', "this version reads 1", id="another format"),
        pytest.param(gzip.compress(b"{}"), "noxu open", id="an exploration"),
        pytest.param(b'{"noxu": "recording", "format": 1}\n{"a"\n{}\n', "line 2 is damaged", id="a damaged line"),
    ],
)
def test_another_file_is_refused(content: bytes, expected: str) -> None:
    with pytest.raises(NoRecording, match=expected):
        lines.parse(content)


@rows(
    "path, expected",
    [
        ("/api/v1/nodes", ("nodes", "", "")),
        ("/api/v1/namespaces/a", ("namespaces", "", "a")),
        ("/api/v1/namespaces/a/pods/b/status", ("pods", "a", "b")),
        ("/apis/apps/v1/deployments?watch=true", ("deployments.apps", "", "")),
        ("/apis/apps/v1/namespaces/a/deployments", ("deployments.apps", "a", "")),
        ("/apis", ("", "", "")),
        ("", ("", "", "")),
    ],
)
def test_a_path_is_about_an_object(path: str, expected: Place) -> None:
    assert place_of(path) == expected
