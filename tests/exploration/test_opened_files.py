"""A file that is opened in the console: what it is, what a page is answered, and when the plan of a run has struck."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any

import pytest

from noxu.exploration import opened_files
from noxu.exploration.opened import moments
from noxu.exploration.recording import RunFile, to_bytes
from noxu.recordings import lines
from noxu.values import Object
from tests.exploration.recordings import CONFIGS, WIDGETS, Script, clean

KILLED: Object = {
    "class": "crash",
    "title": "the controller is killed after the create of configmaps a",
    "faults": [{"name": "crash", "match": {"verbs": ["create"]}, "nth": 1, "process": {"kill": "after"}}],
}
HIT: Object = {
    "rule": "crash",
    "number": 1,
    "process": {"kill": "after"},
    "request": {"verb": "create", "resource": CONFIGS},
}


def broken() -> Script:
    """The run of a controller that is killed after its first write: the Secret is never made."""
    script = Script()
    script.write("workload", "create", WIDGETS, "a", spec={"size": 2})
    script.write("controller", "create", CONFIGS, "a", data={"size": "2"}, why=[("watch", 10, "ADDED", WIDGETS, "a")])
    return script


def finding_file(**changes: Any) -> bytes:
    finding = {"sentence": "secrets default/a is missing", "details": [], "others": [], "stable": True}
    file = RunFile(KILLED, broken().recording(fired=[HIT]), finding, clean().recording())
    return to_bytes(file._replace(**changes))


def test_a_finding_is_beside_a_run_without_its_plan() -> None:
    answers = opened_files.page_answers(finding_file(), "findings/explore-1.noxu")
    runs = answers["/_noxu/console/runs"]
    assert (runs["finding"]["sentence"], runs["plan"]) == ("secrets default/a is missing", KILLED)
    assert runs["titles"] == ["a run without the plan", "explore-1.noxu"]
    assert runs["sentence"].startswith(
        "The first difference is a write that the other run lacks: create secrets default/a"
    )
    assert "secrets default/a" in [each["place"] for each in runs["objects"]]


def test_the_moment_of_the_plan_is_among_the_marks() -> None:
    marks = opened_files.page_answers(finding_file(), "a")["/_noxu/console/timeline"]["marks"]
    assert [(mark["lane"], mark["verb"], mark["because"]) for mark in marks] == [
        ("workload", "create", []),
        ("controller", "create", [10]),
        ("the plan", "the program is killed or paused (create configmaps)", [11]),
    ]


def test_a_file_of_an_earlier_version_has_the_plan_alone() -> None:
    answers = opened_files.page_answers(finding_file(finding=None, clean=None), "a")
    assert answers["/_noxu/console/runs"] == {"plan": KILLED, "finding": None, "output": ""}


MOVED: Object = {"move": {"when": {}, "restart": True, "view": {"resource": WIDGETS, "name": "a"}}, "revision": 10}


@pytest.mark.parametrize(
    ("fired", "expected"),
    [
        (HIT, (11, False, "the program is killed or paused (create configmaps)")),
        ({"rule": "other", "number": 1, "error": "Conflict", "request": HIT["request"]}, (11, True, "the request is refused: Conflict (create configmaps)")),
        ({"rule": "w", "number": 1, "watch": "drop", "request": {"verb": "watch", "resource": CONFIGS}}, (11, False, "an event is lost or late: drop (watch configmaps)")),
        ({"rule": "w", "number": 1, "error": "Gone", "request": {"verb": "get", "resource": "pods"}}, (0, True, "the request is refused: Gone (get pods)")),
        (MOVED, (10, False, "the view of widgets.example.com a stays at an earlier state; the program is killed, and starts again")),
        ({"move": {"when": {}, "mark": "old"}, "revision": 10}, (10, False, "a revision is marked")),
    ],
)  # fmt: skip
def test_when_a_plan_has_struck(fired: Object, expected: tuple[int, bool, str]) -> None:
    [moment] = moments(KILLED, broken().recording(fired=[fired]))
    assert tuple(moment.values()) == expected


RECORDED = json.dumps(lines.header("1.0", "2026-03-01T12:00:00Z", 3, {})).encode() + b"\n"


@pytest.mark.parametrize("content", [RECORDED, gzip.compress(RECORDED)], ids=["as it is", "compressed"])
def test_a_recording_of_a_server(content: bytes) -> None:
    answers = opened_files.opened("run.noxu", base64.b64encode(content).decode())
    assert answers["/_noxu/console/recording"]["version"] == "1.0"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello", "a.txt is no recording: `noxu serve --record FILE` makes one"),
        (b"", "a.txt is no recording: `noxu serve --record FILE` makes one"),
        (RECORDED + b"damaged\n", "a.txt: line 2 is damaged; remove it to read the others"),
        (gzip.compress(b"hello"), "a.txt is no recording: "),
        (gzip.compress(b'{"noxu": 1}'), "a.txt is no recording: "),
        (gzip.compress(b'{"format":1}'), "a.txt: it is no recording of an exploration: "),
        (gzip.compress(RECORDED)[:-9], "a.txt is damaged: "),
        (b"\x1f\x8b\x08damaged", "a.txt is damaged: "),
    ],
    ids=[
        "a text",
        "nothing",
        "a damaged line",
        "a compressed text",
        "other JSON",
        "a run without its parts",
        "a cut file",
        "a damaged file",
    ],
)
def test_another_file_is_refused_with_a_sentence(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        opened_files.opened("a.txt", base64.b64encode(content).decode())


def test_what_becomes_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened_files, "MAX_SENT", len(RECORDED))
    opened_files.read(gzip.compress(RECORDED), "a")
    with pytest.raises(ValueError, match="a has more than 0 MiB: `noxu open a` shows it"):
        opened_files.read(gzip.compress(RECORDED + b"\n"), "a")


def test_what_is_no_base64_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a\.txt has not arrived as base64"):
        opened_files.opened("a.txt", "$")
