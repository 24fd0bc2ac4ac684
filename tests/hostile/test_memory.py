"""The memory that large requests take: a multiple of their size, and no more than a few of them at a time (S5)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.hostile.raw_http import JSON, YAML, Target, custom_resource, definition, path_of
from tests.optional import needs_platform
from tests.timing import HANGS_AFTER

ROOT = Path(__file__).parents[2]
MEBIBYTE = 1024 * 1024
SIZE = int(os.environ.get("NOXU_BODY_KIB", "700")) * 1024  # of each body; 3000 takes a minute
CONCURRENT = 16
MULTIPLE = 36  # of the size of the body; the smallest objects take 24 times their text in Python, and 6 more while they are read
PIECES = {"empty objects": b"{},", "numbers": b"1,", "small texts": b'"a",'}
DROPS = path_of("drops")

pytestmark = needs_platform("/proc/PID/status", present=Path("/proc/self/status").exists())


@contextlib.contextmanager
def serving(directory: Path) -> Iterator[tuple[Target, int]]:
    """A server in a process of its own, and the process id."""
    files = [directory / "crd.json", directory / "object.json"]
    files[0].write_text(json.dumps(definition("drops")))
    files[1].write_text(json.dumps(custom_resource("Drop", "there", {"a": [1]})))
    command = [sys.executable, "-m", "noxu", "serve", "--memory", "--port", "0", "--kubeconfig", str(directory / "k")]
    with subprocess.Popen([*command, *map(str, files)], cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+", server.stdout.readline())
            assert found
            yield Target(found[0]), server.pid
        finally:
            server.terminate()
            server.wait(HANGS_AFTER)


def body(shape: str, size: int) -> bytes:
    spec = b'{"a":[%b1]}' % (PIECES[shape] * (size // len(PIECES[shape])))
    return json.dumps(custom_resource("Drop", "there", "SPEC")).encode().replace(b'"SPEC"', spec)


@pytest.mark.parametrize("shape", PIECES if SIZE > MEBIBYTE else ["empty objects"])
def test_sixteen_concurrent_large_bodies_take_less_than_a_gibibyte(tmp_path: Path, shape: str) -> None:
    sent = body(shape, SIZE).replace(b'"there"', b'"x"')
    with serving(tmp_path) as (target, pid):
        before = _peak(pid)
        with ThreadPoolExecutor(CONCURRENT) as pool:
            answers = [pool.submit(target.send, "POST", f"{DROPS}?dryRun=All", sent) for _ in range(CONCURRENT)]
            assert {each.result().status for each in answers} == {201}
        assert before < 200 * MEBIBYTE
        assert _peak(pid) < 1024 * MEBIBYTE


WRITES = {
    "update": ("PUT", DROPS + "/there", JSON),
    "apply": ("PATCH", DROPS + "/there?fieldManager=m&force=true", "application/apply-patch+yaml"),
    "merge": ("PATCH", DROPS + "/there", "application/merge-patch+json"),
    "create from YAML": ("POST", DROPS + "?dryRun=All", YAML),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_large_body_takes_a_bounded_multiple_of_its_size(tmp_path: Path, write: str) -> None:
    method, path, media_type = WRITES[write]
    sent = body("empty objects", 1_400_000)
    if method == "POST":
        sent = sent.replace(b'"there"', b'"x"')
    with serving(tmp_path) as (target, pid):
        small = body("numbers", 20_000).replace(b'"there"', b'"y"')
        assert target.send("POST", DROPS, small).status == 201  # modules that are imported once are not counted
        if method == "PUT":
            revision = target.send("GET", f"{DROPS}/there").json["metadata"]["resourceVersion"]
            sent = sent.replace(b'"name": "there"', b'"name": "there", "resourceVersion": "%b"' % revision.encode())
        before = _peak(pid)
        answer = target.send(method, path, sent, {"Content-Type": media_type, "Accept": JSON})
        assert answer.status in (200, 201), answer.message
        assert _peak(pid) - before < MULTIPLE * len(sent)


def _peak(pid: int) -> int:
    """The peak resident memory of a process in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) * 1024
