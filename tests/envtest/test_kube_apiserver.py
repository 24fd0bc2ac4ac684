"""The exit status of envtest's kube-apiserver. How it serves is tested in test_environments.py."""

from __future__ import annotations

from typing import NoReturn

import pytest

from noxu.config import Config, StartError
from noxu.envtest import configuration, data_directory, kube_apiserver
from noxu.process import running
from noxu.process.signals import Interrupted

ENDS: list[tuple[str, Exception, int]] = [
    ("a signal before it is ready", Interrupted(15), 0),
    ("a server that cannot start", StartError("no"), 1),
]


@pytest.mark.parametrize(("end", "status"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
def test_it_ends_with(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], end: Exception, status: int
) -> None:
    def serve(*_: object) -> NoReturn:
        raise end

    monkeypatch.setattr(configuration, "check", lambda _: None)
    monkeypatch.setattr(configuration, "address", lambda _: ("127.0.0.1", 0))
    monkeypatch.setattr(configuration, "configure", lambda *_: (Config(), []))
    monkeypatch.setattr(data_directory, "find", lambda _: object())
    monkeypatch.setattr(running, "run_quietly", serve)
    assert kube_apiserver.run([]) == status
    assert ("command failed" in capsys.readouterr().err) is bool(status)
