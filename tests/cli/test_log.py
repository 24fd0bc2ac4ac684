"""`noxu log`: its lines, its formats, and what it says about what it leaves out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from noxu.commands import log as command
from noxu.testing.handle import Noxu
from tests.rows import rows

Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(here / "home"))


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture
def written(noxu: Noxu) -> Noxu:
    noxu.create(config_map("a", k="1"))
    noxu.create(config_map("b"))
    noxu.patch("configmaps", "a", {"data": {"k": "2"}})
    noxu.delete("configmaps", "b")
    return noxu


LINE = re.compile(r"[0-9]+ +\S+T\S+Z +(?P<verb>\S+) +(?P<object>\S+ \S+) +(?P<who>\S+ \(.*?\)) +(?P<changed>.*)")


def test_a_line_for_each_write(run: Run, written: Noxu) -> None:
    ran = run(f"log cm -n default --kubeconfig {written.kubeconfig}")
    assert (ran.status, ran.err) == (0, "")
    title, *lines = ran.out.splitlines()
    assert title.split() == ["REVISION", "TIME", "VERB", "OBJECT", "WHO", "CHANGED"]
    found = [match.group("verb", "object", "changed") for line in lines if (match := LINE.match(line))]
    assert found[-4:] == [
        ("create", "configmaps default/a", "-"),
        ("create", "configmaps default/b", "-"),
        ("patch", "configmaps default/a", "data.k"),
        ("delete", "configmaps default/b", "-"),
    ]
    assert "system:anonymous (" in lines[-1]


@pytest.mark.parametrize("what", ["cm/a", "configmaps/a", "ConfigMap a"])
def test_one_object(run: Run, written: Noxu, what: str) -> None:
    listed = run(f"log {what} -n default -o json --server {written.url}").json["items"]
    assert [(item["verb"], item["name"]) for item in listed] == [("create", "a"), ("patch", "a")]
    assert yaml.safe_load(run(f"log {what} -n default -o yaml --server {written.url}").out)["items"] == listed


def test_later_writes_only(run: Run, written: Noxu) -> None:
    first, second = run(f"log cm/a -n default -o json --server {written.url}").json["items"]
    since = run(f"log cm/a -n default --since {first['revision']} -o json --server {written.url}").json["items"]
    assert since == [second]
    assert len(run(f"log cm/a -n default --since 1h -o json --server {written.url}").json["items"]) == 2


def test_what_is_left_out_is_said_on_stderr(run: Run, written: Noxu) -> None:
    ran = run(f"log cm -n default --limit 1 --server {written.url}")
    assert len(ran.out.splitlines()) == 2
    assert ran.err.startswith("noxu: only the newest 1 writes are listed: a larger limit")


@rows(
    "arguments, message",
    [
        ("widgtes", "type: no kind 'widgtes' is served"),
        ("configmapz/a", "did you mean configmaps?"),
        ("--since soon", "since: 'soon' is no revision"),
    ],
)
def test_what_the_server_refuses(run: Run, noxu: Noxu, arguments: str, message: str) -> None:
    ran = run(f"log {arguments} --server {noxu.url}")
    assert ran.status == 1
    assert message in ran.err


@rows(
    "arguments, message",
    [
        ("/a", "/a is neither TYPE nor TYPE/NAME"),
        ("cm/", "cm/ is neither TYPE nor TYPE/NAME"),
        ("-f -o yaml", "--follow has no output yaml"),
        ("--limit many", "argument --limit: invalid int value: 'many'"),
    ],
)
def test_arguments_that_are_invalid(run: Run, arguments: str, message: str) -> None:
    ran = run(f"log {arguments} --server http://127.0.0.1:1")
    assert ran.status == 2
    assert message in ran.err


# -- rows --------------------------------------------------------------------------------------------------------------

ITEM = {
    "revision": 12,
    "time": "2026-03-01T12:00:00.123456Z",
    "verb": "update",
    "subresource": "",
    "resource": "widgets.example.com",
    "namespace": "default",
    "name": "a",
    "user": "jane",
    "userAgent": "kubectl/v1.37.0 (linux/amd64) kubernetes/1234567",
    "manager": "kubectl-edit",
    "controller": "",
    "changed": ["spec.size"],
}
WATCHED = {
    "how": "watch",
    "revision": 11,
    "event": "MODIFIED",
    "resource": "gadgets.example.com",
    "namespace": "default",
    "name": "b",
}


@rows(
    "change, cells",
    [
        (
            {},
            (
                "12",
                "2026-03-01T12:00:00Z",
                "update",
                "widgets.example.com default/a",
                "jane (kubectl-edit kubectl/v1.37.0)",
                "spec.size",
            ),
        ),
        ({"subresource": "status"}, (..., ..., "update/status", ..., ..., ...)),
        ({"namespace": ""}, (..., ..., ..., "widgets.example.com a", ..., ...)),
        ({"controller": "garbage-collector"}, (..., ..., ..., ..., "garbage-collector (of the server)", ...)),
        ({"user": "", "manager": "", "userAgent": ""}, (..., ..., ..., ..., "", ...)),
        ({"manager": "a/1", "userAgent": "a/1"}, (..., ..., ..., ..., "jane (a/1)", ...)),
        ({"changed": list("abcdef")}, (..., ..., ..., ..., ..., "a, b, c, d and 2 more")),
        ({"time": ""}, (..., "", ..., ..., ..., ...)),
        ({"changed": ["spec.\x1b[2J"]}, (..., ..., ..., ..., ..., "spec.\ufffd[2J")),
        ({"userAgent": "a\x9b2J"}, (..., ..., ..., ..., "jane (kubectl-edit a\ufffd2J)", ...)),
    ],
)
def test_the_cells_of_a_write(change: dict[str, Any], cells: tuple[Any, ...]) -> None:
    [_, row] = command._rows([{**ITEM, **change}])
    assert tuple(cell if expected is not ... else ... for cell, expected in zip(row, cells, strict=True)) == cells


@rows(
    "cause, cells",
    [
        (WATCHED, ("gadgets.example.com default/b", "MODIFIED at 11 (watch)")),
        ({**WATCHED, "how": "get", "event": ""}, ("gadgets.example.com default/b", " at 11 (get)")),
        (
            {"how": "list", "revision": 9, "resource": "gadgets", "namespace": "", "name": ""},
            ("gadgets", "read at 9 (list)"),
        ),
        ({"how": "more", "number": 3}, ("… and 3 more", " ")),
    ],
)
def test_the_cells_of_a_cause(cause: dict[str, Any], cells: tuple[str, str]) -> None:
    [_, _, row] = command._rows([{**ITEM, "why": [cause]}])
    assert row[2:5] == ("because", *cells)


class Stopped(Exception):
    pass


def test_follow_goes_on_with_what_is_newer(
    run: Run, written: Noxu, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pauses = 0

    def pause(seconds: float) -> None:
        nonlocal pauses
        pauses += 1
        if pauses == 3:
            raise KeyboardInterrupt
        written.patch("configmaps", "a", {"data": {"k": f"new {pauses}"}})

    monkeypatch.setattr("noxu.commands.log.sleep", pause)
    ran = run(f"log cm/a -n default -f -o json --limit 1 --server {written.url}")
    assert ran.status == 130
    items = [json.loads(line) for line in ran.out.splitlines()]
    assert [item["verb"] for item in items] == ["patch"] * 3
    assert len({item["revision"] for item in items}) == 3
