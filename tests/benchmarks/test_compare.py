"""Arguments of the comparison, growth, the judgement of the gate, and a run with two servers."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks import compare, gate, growth, operations, servers
from benchmarks.gate import Verdict, verdict
from noxu import Noxu
from tests.timing import eventually

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name servers to measure"),
        (["--server", "a"], "not of the form NAME=ADDRESS"),
        (["--server", "a=http://127.0.0.1:1,pid=1"], "no such option: pid"),
        (["--server", "a=http://127.0.0.1:1,pids=x"], "pids are numbers joined by +"),
        (["--server", "a=https://127.0.0.1:1,cert=/x"], "needs both"),
        (["--server", "a=ftp://127.0.0.1"], "begin with http"),
        (["--server", "a=/missing"], "No such file"),
        (["--start", "a=/missing"], "is not a program"),
        (["--checkout", "a=/"], "no checkout of Noxu"),
        (["--checkout", f"a={ROOT}", "--server", "a=http://127.0.0.1:1"], "two servers are named a"),
        (["--checkout", f"a={ROOT}", "--base", "b"], "no server is named b"),
        (["--checkout", f"a={ROOT}", "--rounds", "0"], "positive"),
        (["--checkout", f"a={ROOT}", "--from", "file"], "name servers to measure"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        compare.parse(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_servers_keep_the_order_of_their_options() -> None:
    options = compare.parse([
        "--server", "c=https://127.0.0.1:7/,pids=1+2,token=abc", "--checkout", f"a={ROOT}", "--server", "b=http://127.0.0.1:1",
    ])  # fmt: skip
    assert [source.name for source in options.sources] == ["c", "a", "b"]
    first = options.sources[0]
    assert (first.pids, first.endpoint.authorization) == ((1, 2), "Bearer abc")


def test_the_command_is_shown_without_tokens_and_folders() -> None:
    options = compare.parse([
        "--server", f"a=http://127.0.0.1:1,token=secret,pids={os.getpid()}", "--checkout", f"b={ROOT}", "--out", "/a/b.json",
    ])  # fmt: skip
    assert options.command == (
        f"python -m benchmarks.compare --server a=http://127.0.0.1:1,pids={os.getpid()} --checkout b={ROOT.name} --out b.json"
    )


def test_the_sizes_of_growth_curves() -> None:
    assert growth.sizes(1_000) == [1, 10, 100, 1_000]
    assert growth.sizes(500) == [1, 10, 100, 500]
    assert growth.sizes(100, 2) == [1, 3, 10, 30, 100]


@pytest.mark.parametrize(
    ("ratios", "judged"),
    [
        ([1.0] * 9, (False, False)),
        ([1.2] * 9, (True, False)),
        ([0.9, 0.95, 1.0, 1.0, 1.0, 1.05, 1.05, 1.06, 3.0], (False, False)),
        ([1.0, 1.05, 1.3, 1.3, 1.3, 1.3, 1.3, 1.3, 1.3], (False, True)),
        ([1.0, 1.11, 1.3, 1.3, 1.3, 1.3, 1.3, 1.3, 1.3], (True, False)),
        ([2.0] * 3, (False, True)),
    ],
    ids=[
        "the same",
        "slower",
        "one round disturbed",
        "two rounds not slower",
        "one round not slower",
        "too few rounds",
    ],
)
def test_slower_means_beyond_the_noise(ratios: list[float], judged: tuple[bool, bool]) -> None:
    found = verdict(ratios)
    assert (found.slower, found.doubtful) == judged


def test_the_table_of_the_gate() -> None:
    shown = gate.show({"get": Verdict(1.0, 0.98, 1.02), "list": Verdict(1.3, 1.2, 1.4)})
    assert [line.split() for line in shown.splitlines()[1:]] == [
        ["get", "1.00", "0.98", "1.02"], ["list", "1.30", "1.20", "1.40", "slower"],
    ]  # fmt: skip


def test_a_commit_is_checked_out_for_a_while(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as stopped, gate.checked_out("no-such-commit"):
        pass
    assert stopped.value.code == 2


def test_what_the_last_answer_before_the_end_says_is_created_can_be_deleted() -> None:
    subject = operations.Subject(cast(Any, None), "example.com")
    requests = operations.creates(subject, 0)
    sent = next(requests)
    requests.close()
    assert [f"{sent.path}/{name}" for name in subject.created] == [next(operations.deletes(subject, 0)).path]


@pytest.mark.parametrize("body", [b'{"a":[1]}', b'3\r\n{"a\r\n6\r\n":[1]}\r\n0\r\n\r\n'], ids=["whole", "chunked"])
def test_a_body_is_decoded(body: bytes) -> None:
    assert operations.decoded(body) == {"a": [1]}


@pytest.mark.slow
def test_a_run_with_two_servers(tmp_path: Path) -> None:
    with Noxu() as first, Noxu() as second:
        named = [f"a={first.url},pids={os.getpid()}", f"b={second.kubeconfig},pids={os.getpid()}"]
        # other tests of this process may have started an etcd
        options = compare.parse(["--server", named[0], "--server", named[1], "--quick", "--old-etcd"])
        found = asyncio.run(compare.run(options, tmp_path))
        for noxu in (first, second):
            eventually(lambda noxu=noxu: not noxu.list("customresourcedefinitions"))  # type: ignore[misc]
    measured = {(each.operation, each.server) for each in found.measured}
    assert {operation for operation, server in measured if server == "a"} == {
        operation for operation, server in measured if server == "b"
    }
    assert len(measured) > 40
    assert [each for each in found.measured if each.operations < 1 or each.memory <= 0] == []
    assert {point.curve for point in found.growth} == {"objects", "definitions", "watchers"}


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho no licence; exit 3\n")
    program.chmod(0o700)
    with pytest.raises(SystemExit, match="no licence"):
        asyncio.run(servers.start(servers.started_by(f"a={program}"), tmp_path / "data"))
