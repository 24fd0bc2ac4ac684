"""`noxu diff`, `noxu blame` and `noxu bisect`: what they ask, what they print, and what they refuse."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from conformance.client import Client
from noxu import cli
from noxu.testing.handle import Noxu
from noxu.values import Object
from tests.clocks import ManualClock
from tests.docs.blocks import blocks, steps

Run = Callable[..., Any]


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Noxu, list[int]]]:
    """A server with a ConfigMap that was written three times, a minute apart, and the revisions of these writes."""
    clock = ManualClock()
    with Noxu(clock=clock) as noxu:
        revisions = []
        for data in ({"k": "1"}, {"k": "1", "size": "9"}, {"k": "1", "size": "3"}):
            clock.jump(60)
            [written] = noxu.apply(config_map("a", **data))
            revisions.append(int(written["metadata"]["resourceVersion"]))
        clock.jump(60)
        yield noxu, revisions


def test_diff(run: Run, server: tuple[Noxu, list[int]]) -> None:
    noxu, (first, second, third) = server
    at = f"--server {noxu.url}"
    name = "v1.ConfigMap.default.a"
    expected = (
        f'--- {first}/{name}\n+++ {second}/{name}\n@@ -1,6 +1,7 @@\n apiVersion: v1\n data:\n   k: "1"\n+  size: "9"\n'
    )
    assert run(f"diff {first} {second} {at}").out.startswith(expected)
    assert run(f"diff {first} {second} cm/a {at}").out.startswith(expected)
    assert '+  size: "3"' in run(f"diff {first} cm/a {at}").out
    assert run(f"diff {second} {third} secrets {at}").out == ""
    for ago in ("-1m30s", "90s"):
        assert run(f"diff {ago} {at} -o json").json["from"]["revision"] == second
    assert run(f"diff {first} {at} -o table").out.split() == [
        "CHANGE",
        "KIND",
        "NAMESPACE",
        "NAME",
        "changed",
        "ConfigMap",
        "default",
        "a",
    ]
    some = run(f"diff 1 {first} --limit 1 {at}")
    assert (some.status, some.out.count("+++")) == (0, 1)
    assert "more objects were written in between: --limit shows more" in some.err


def test_blame(run: Run, server: tuple[Noxu, list[int]]) -> None:
    noxu, (first, _, third) = server
    ran = run(f"blame cm/a --server {noxu.url}")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines()[:4] == [
        f"{first}  2026-01-02T03:05:05Z  noxu  apiVersion: v1",
        f"{first}  2026-01-02T03:05:05Z  noxu  data:",
        f'{first}  2026-01-02T03:05:05Z  noxu    k: "1"',
        f'{third}  2026-01-02T03:07:05Z  noxu    size: "3"',
    ]
    assert "managedFields" not in ran.out
    assert "managedFields" in run(f"blame cm/a --show-managed-fields --server {noxu.url}").out
    assert run(f"blame cm/a --at {first} --server {noxu.url} -o json").json["revision"] == first


def test_bisect(run: Run, server: tuple[Noxu, list[int]]) -> None:
    noxu, (first, second, third) = server
    at = f"--server {noxu.url}"
    ran = run(f"bisect cm/a has(self.data.size)&&self.data.size>'5' {at}")
    assert (ran.status, ran.err) == (0, "")
    assert [line.split() for line in ran.out.splitlines()] == [
        ["REVISION", "TIME", "TRUE", "WRITER"],
        [str(first), "2026-01-02T03:05:05Z", "false", "noxu"],
        [str(second), "2026-01-02T03:06:05Z", "true", "noxu"],
        [str(third), "2026-01-02T03:07:05Z", "false", "noxu"],
    ]
    assert run(f"bisect cm/a self.data.size=='9' {at}").out.splitlines()[1].split()[3:] == [
        "noxu",
        "no",
        "such",
        "key:",
        "size",
    ]
    assert run(f"bisect cm/a self.data.size=='9' {at} -o json").json["revision"] == second
    never = run(f"bisect cm/a self.data.size=='7' {at}")
    assert (never.status, "it was true in none of 3 states" in never.err) == (1, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("diff", "the following arguments are required: FROM"),
        ("blame widgets", "widgets is no TYPE/NAME, such as widgets/a"),
        ("blame /a", "/a is no TYPE/NAME, such as widgets/a"),
        ("bisect widgets/a", "the following arguments are required: CONDITION"),
        ("diff -x 5m", "unrecognized arguments: -x"),
    ],
)
def test_what_is_refused(run: Run, words: str, message: str) -> None:
    ran = run(f"{words} --server http://127.0.0.1:1")
    assert (ran.status, message in ran.err) == (2, True), ran.err


def test_what_the_server_refuses(run: Run, server: tuple[Noxu, list[int]]) -> None:
    noxu, _ = server
    ran = run(f"blame cm/z --server {noxu.url}")
    assert ran.status == 1
    assert "there is no configmaps default/z at revision" in ran.err


# -- the example of the documentation ----------------------------------------------------------------------------------


DOCUMENTED: Final = (66, 67, 68)
"""The revisions in the example: how many a server begins with is no part of it."""


def replaced(text: str, numbers: dict[int, int]) -> str:
    return re.sub(r"\b\d+\b", lambda match: str(numbers.get(int(match[0]), match[0])), text)


def words(printed: str) -> list[list[str]]:
    """The words of each line, without uids."""
    return [line.split() for line in re.sub(r"uid: \S+", "uid: …", printed).splitlines()]


def test_the_example_of_the_documentation(capsys: pytest.CaptureFixture[str]) -> None:
    [example] = [block for block in blocks() if block.name == "docs/control.md console $ noxu blame configmaps/web"]
    clock = ManualClock()
    with Noxu(clock=clock) as noxu, Client(noxu.url) as client:
        maps, merge = "/api/v1/namespaces/default/configmaps", "application/merge-patch+json"
        revisions = []
        for manager, method, path, value in (
            ("kubectl", "POST", maps, config_map("web", size="1")),
            ("operator", "PATCH", f"{maps}/web", {"data": {"colour": "blue"}}),
            ("kubectl", "PATCH", f"{maps}/web", {"metadata": {"labels": {"tier": "front"}}}),
        ):
            clock.jump(60)
            kind = merge if method == "PATCH" else "application/json"
            written = client.send(method, f"{path}?fieldManager={manager}", value, kind).body
            revisions.append(int(written["metadata"]["resourceVersion"]))
        asked, shown = dict(zip(DOCUMENTED, revisions, strict=True)), dict(zip(revisions, DOCUMENTED, strict=True))
        for command, printed in steps(example.text):
            assert cli.main([*shlex.split(replaced(command, asked))[1:], "--server", noxu.url]) == 0
            assert words(replaced(capsys.readouterr().out, shown)) == words(printed)
