"""What the system does not let a process do is a sentence that says what to do, never a traceback."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from noxu import Noxu
from noxu.config import Config, StartError
from noxu.process import limits as process_limits
from noxu.process.kubeconfig import place_of_kubeconfig
from noxu.process.server import Server
from noxu.process.supervision import NOT_EXECUTABLE, NotRunnable, check_command
from noxu_storage import database

resource = pytest.importorskip("resource", reason="platform: limits of processes")

SENTENCES: list[tuple[BaseException, str]] = [
    (OSError(errno.EMFILE, "Too many open files", "a.py"), r"a.py: this process may not open more files: raise the limit \(ulimit -n\)"),
    (OSError(errno.ENOSPC, "No space left on device"), "the disk is full; make room"),
    (OSError(errno.EROFS, "Read-only file system", "d"), "d: the file system is read-only; name another directory"),
    (PermissionError(errno.EACCES, "Permission denied", "d"), "d: Permission denied"),
    (RuntimeError("can't start new thread"), "the system has no more threads to give: raise the limit on processes"),
    (MemoryError(), "no more memory to give"),
    (FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']"), "found in .*: set TMPDIR to a directory"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "text"), SENTENCES, ids=[repr(row[0]) for row in SENTENCES])
def test_a_limit_is_a_sentence(error: BaseException, text: str) -> None:
    with pytest.raises(AssertionError, match=text):
        raise AssertionError(process_limits.sentence(error))


def test_a_bug_is_none() -> None:
    assert process_limits.sentence(RuntimeError("other")) == process_limits.sentence(KeyError("x")) == ""


def no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)


def no_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    def create(path: Path) -> None:
        raise OSError(errno.EMFILE, "Too many open files", str(path))

    monkeypatch.setattr(database, "create_directory", create)


def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def create(path: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(database, "create_directory", create)


STARTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "no thread": (no_thread, "no more threads to give"),
    "no descriptor": (no_descriptor, "cannot keep data in .*: Too many open files"),
    "a read-only disk": (read_only, "cannot keep data in .*: Read-only file system"),
}


@pytest.mark.parametrize(("limit", "text"), STARTS.values(), ids=STARTS)
async def test_a_server_that_cannot_start_says_why(
    limit: Callable[[pytest.MonkeyPatch], None], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        limit(patched)
        with pytest.raises(StartError, match=text):
            await Server(Config(port=0, data=tmp_path / "data")).__aenter__()


def test_the_server_of_a_test_says_why_it_does_not_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with monkeypatch.context() as patched:
        no_thread(patched)
        with pytest.raises(StartError, match="no more threads to give"):
            Noxu(profile="envtest").start()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with Noxu(profile="envtest") as noxu, pytest.raises(StartError, match="there is no place for the kubeconfig: "):
        assert noxu.kubeconfig  # which is written when it is first asked for


def test_without_a_temporary_directory_the_kubeconfig_has_no_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(StartError, match=r"there is no place for the kubeconfig: .*; or choose one with --kubeconfig"):
        place_of_kubeconfig(Config()).__enter__()


def test_a_server_with_too_few_files_does_not_start(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))

    command = [sys.executable, "-m", "noxu", "serve", "--memory", "--port", "0"]
    ended = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True, check=False, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])})  # fmt: skip
    assert ended.returncode == 1
    assert ended.stderr == f"noxu: {_too_few(12)}\n"


def _too_few(limit: int) -> str:
    return f"this process may open {limit} files, and a server needs 32 and one for each client: raise the limit (ulimit -n)"


def test_a_system_without_fork_runs_no_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork", raising=False)
    with pytest.raises(NotRunnable, match="sh cannot be run: it needs fork") as caught:
        check_command("sh")
    assert caught.value.status == NOT_EXECUTABLE
