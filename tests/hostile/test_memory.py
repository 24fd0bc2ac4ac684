"""What large requests take: a multiple of their size, and together what those take that have their turn (S5)."""

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

from tests.hostile.wire import JSON, YAML, Target, definition, path_of, thing

ROOT = Path(__file__).parents[2]
MEBIBYTE = 1024 * 1024
SIZE = int(os.environ.get("NOXU_BODY_KIB", "700")) * 1024  # of each body; 3000 takes a minute
AT_ONCE = 16
TIMES = 36  # the body; the smallest objects take 24 times their text in Python, and 6 more while they are read
PIECES = {"empty objects": b"{},", "numbers": b"1,", "small texts": b'"a",'}
DROPS = path_of("drops")

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="this machine does not tell what a process uses"
)


@contextlib.contextmanager
def serving(place: Path) -> Iterator[tuple[Target, int]]:
    """A server of its own with the process that it is; it has answered a small request."""
    files = [place / "crd.json", place / "object.json"]
    files[0].write_text(json.dumps(definition("drops")))
    files[1].write_text(json.dumps(thing("Drop", "there", {"a": [1]})))
    command = [sys.executable, "-m", "apiserver", "serve", "--memory", "--port", "0", "--kubeconfig", str(place / "k")]
    with subprocess.Popen([*command, *map(str, files)], cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+", server.stdout.readline())
            assert found
            yield Target(found[0]), server.pid
        finally:
            server.terminate()
            server.wait(20)


def body(shape: str, size: int) -> bytes:
    spec = b'{"a":[%b1]}' % (PIECES[shape] * (size // len(PIECES[shape])))
    return json.dumps(thing("Drop", "there", "SPEC")).encode().replace(b'"SPEC"', spec)


@pytest.mark.parametrize("shape", PIECES if SIZE > MEBIBYTE else ["empty objects"])
def test_sixteen_of_the_largest_bodies_at_once_take_less_than_a_gibibyte(tmp_path: Path, shape: str) -> None:
    sent = body(shape, SIZE).replace(b'"there"', b'"x"')
    with serving(tmp_path) as (target, pid):
        before = _peak(pid)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            asked = [pool.submit(target.ask, "POST", f"{DROPS}?dryRun=All", sent, timeout=100) for _ in range(AT_ONCE)]
            assert {each.result().status for each in asked} == {201}
        assert before < 200 * MEBIBYTE
        assert _peak(pid) < 1024 * MEBIBYTE


WAYS = {
    "update": ("PUT", DROPS + "/there", JSON),
    "apply": ("PATCH", DROPS + "/there?fieldManager=m&force=true", "application/apply-patch+yaml"),
    "merge": ("PATCH", DROPS + "/there", "application/merge-patch+json"),
    "create, which is YAML": ("POST", DROPS + "?dryRun=All", YAML),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_large_body_takes_so_many_times_its_size(tmp_path: Path, way: str) -> None:
    method, path, media_type = WAYS[way]
    sent = body("empty objects", 1_400_000)
    if method == "POST":
        sent = sent.replace(b'"there"', b'"x"')
    with serving(tmp_path) as (target, pid):
        small = body("numbers", 20_000).replace(b'"there"', b'"y"')
        assert target.ask("POST", DROPS, small).status == 201  # what is loaded once is no part of it
        if method == "PUT":
            revision = target.ask("GET", f"{DROPS}/there").json["metadata"]["resourceVersion"]
            sent = sent.replace(b'"name": "there"', b'"name": "there", "resourceVersion": "%b"' % revision.encode())
        before = _peak(pid)
        answer = target.ask(method, path, sent, {"Content-Type": media_type, "Accept": JSON}, timeout=100)
        assert answer.status in (200, 201), answer.message
        assert _peak(pid) - before < TIMES * len(sent)


def _peak(pid: int) -> int:
    """The most memory that a process has had, in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) * 1024
