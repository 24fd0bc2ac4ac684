"""The changes of docs/first-change.md apply to the code as it is, and do what the page says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.docs.blocks import ROOT

PAGE: Final = ROOT / "docs" / "first-change.md"
_SECTION: Final = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_DIFF: Final = re.compile(r"^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE: Final = re.compile(r"^--- (\S+)\n\+\+\+ b/(\S+)\n(.*?)(?=^--- |\Z)", re.MULTILINE | re.DOTALL)
_HUNK: Final = re.compile(r"^@@[^\n]*\n(.*?)(?=^@@|\Z)", re.MULTILINE | re.DOTALL)


class Edit(NamedTuple):
    """The changes of one file: pairs of what is there and what replaces it. A new file has one, of nothing."""

    path: str
    is_new: bool
    hunks: list[tuple[str, str]]


def edits(diff: str) -> list[Edit]:
    return [
        Edit(path, old == "/dev/null", [_sides(hunk) for hunk in _HUNK.findall(body)])
        for old, path, body in _FILE.findall(diff)
    ]


def _sides(hunk: str) -> tuple[str, str]:
    lines = [line or " " for line in hunk.splitlines()]  # an empty line of context may have lost its space
    before, after = (["", *(line[1:] for line in lines if line[0] in f" {sign}"), ""] for sign in "-+")
    return "\n".join(before), "\n".join(after)


def applied(edit: Edit, root: Path) -> str:
    """The text of a file with its changes. Each place has to be there, once."""
    path = root / edit.path
    if edit.is_new:
        assert not path.exists(), f"{edit.path} exists"
        [(_, text)] = edit.hunks
        return text.removeprefix("\n")
    text = "\n" + path.read_text()
    for before, after in edit.hunks:
        assert text.count(before) == 1, f"{edit.path} has changed: docs/first-change.md shows\n{before}"
        text = text.replace(before, after)
    return text.removeprefix("\n")


CHANGES: Final = {
    title: [edit for diff in _DIFF.findall(body) for edit in edits(diff)]
    for title, body in _SECTION.findall(PAGE.read_text())
}
BEHAVIOUR: Final = """
import json, sys, tempfile, time, urllib.request
from pathlib import Path
from noxu import Noxu

def send(method, path, value=None):
    body = None if value is None else json.dumps(value).encode()
    request = urllib.request.Request(noxu.url + path, body, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.headers.get("Warning"), json.load(answer)
    except urllib.error.HTTPError as error:
        return None, json.load(error)

def named(kind, name, **fields):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}

options = dict(profile="local", enable_admission_plugins=["DenyServiceExternalIPs"])
with Noxu(Path(tempfile.mkdtemp()), **options) as noxu:
    maps = "/api/v1/namespaces/default/configmaps"
    assert send("POST", maps, named("ConfigMap", "a" * 63))[0] is None
    assert "no label can have this name" in send("POST", maps, named("ConfigMap", "a" * 64))[0]

    services = "/api/v1/namespaces/default/services"
    spec = {"ports": [{"port": 1}]}
    assert send("POST", services, named("Service", "s", spec=spec))[1]["kind"] == "Service"
    refused = send("POST", services, named("Service", "t", spec={**spec, "externalIPs": ["192.0.2.1"]}))[1]
    assert "Use of external IPs is denied by admission control" in refused["message"], refused

    send("POST", "/api/v1/nodes", named("Node", "n"))
    for _ in range(500):
        annotations = send("GET", "/api/v1/nodes/n")[1]["metadata"].get("annotations")
        if annotations:
            break
        time.sleep(0.01)
    assert annotations == {"node.alpha.kubernetes.io/ttl": "0"}, annotations
"""
"""What the changes do, in a server of the changed code."""
SERVE: Final = ["serve", "--memory", "--port", "0", "--log-requests", "--log-slower-than", "9", "--help"]


def test_each_section_is_a_change() -> None:
    assert [len(found) for found in CHANGES.values()] == [2, 4, 3, 3]


@pytest.mark.parametrize("title", CHANGES)
def test_a_change_applies_to_the_code_as_it_is(title: str) -> None:
    for edit in CHANGES[title]:
        compile(applied(edit, ROOT), edit.path, "exec")


@pytest.mark.slow
def test_the_changed_code_does_what_the_page_says(tmp_path: Path) -> None:
    for package in ("apiserver", "storage"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    for edit in (edit for found in CHANGES.values() for edit in found):
        (tmp_path / edit.path).write_text(applied(edit, tmp_path))
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path / 'apiserver'}:{tmp_path / 'storage'}", "COLUMNS": "100"}
    for command in (["-c", BEHAVIOUR], ["-m", "noxu", *SERVE]):
        ran = subprocess.run(
            [sys.executable, *command], check=False, env=environment, cwd=tmp_path, capture_output=True, text=True
        )
        assert ran.returncode == 0, ran.stderr
    assert "--log-slower-than SECONDS" in ran.stdout
