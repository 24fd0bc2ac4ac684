"""`noxu serve --audit-*` and `--log*`: what the options mean for the server, and which are refused."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from noxu import cli
from noxu.config import Audit, Config, LogConfig
from noxu.process import running

AUDIT: list[tuple[str, list[str], Audit]] = [
    ("none", [], Audit()),
    ("a file", ["--audit-log-path", "a.log"], Audit(log_path="a.log")),
    ("a policy", ["--audit-policy-file=p.yaml"], Audit(policy_file=Path("p.yaml"))),
    (
        "all of the log's",
        ["--audit-log-path=-", "--audit-log-format=legacy", "--audit-log-mode=batch", "--audit-log-maxsize=0",
         "--audit-log-maxage=7", "--audit-log-maxbackup=3", "--audit-log-compress"],
        Audit(None, "-", "legacy", "batch", 0, 7, 3, compress=True),
    ),
]  # fmt: skip
LOGS: list[tuple[str, list[str], LogConfig]] = [
    ("none", [], LogConfig()),
    ("JSON", ["--log", "json"], LogConfig("json")),
    ("requests", ["--log-requests"], LogConfig(requests=True)),
    ("verbose", ["--verbose"], LogConfig(level=logging.DEBUG)),
    ("quiet", ["--quiet"], LogConfig(level=logging.WARNING)),
]
REFUSED: list[tuple[str, list[str], str]] = [
    ("a negative size", ["--audit-log-maxsize=-1"], "must be a number that is not negative"),
    ("an age in words", ["--audit-log-maxage=week"], "must be a number that is not negative"),
    ("another format", ["--audit-log-format=yaml"], "invalid choice: 'yaml'"),
    ("another mode", ["--audit-log-mode=never"], "invalid choice: 'never'"),
    (
        "a webhook",
        ["--audit-webhook-config-file=x"],
        "--audit-webhook-config-file: audit events are not sent to webhooks; use --audit-log-path",
    ),
    ("two levels", ["--verbose", "--quiet"], "not allowed with argument"),
    ("another format of the log", ["--log=xml"], "invalid choice: 'xml'"),
]


def config_of(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> Config:
    """The configuration with which `noxu serve` runs the server."""
    found: list[Config] = []

    def run(config: Config, *_: Any, **__: Any) -> None:
        found.append(config)

    monkeypatch.setattr(running, "run", run)
    assert cli.main(["serve", "--memory", *arguments]) == 0
    return found[0]


@pytest.mark.parametrize(("arguments", "audit"), [row[1:] for row in AUDIT], ids=[row[0] for row in AUDIT])
def test_options_of_the_audit_log(monkeypatch: pytest.MonkeyPatch, arguments: list[str], audit: Audit) -> None:
    assert config_of(monkeypatch, arguments).audit == audit


@pytest.mark.parametrize(("arguments", "log"), [row[1:] for row in LOGS], ids=[row[0] for row in LOGS])
def test_options_of_the_log(monkeypatch: pytest.MonkeyPatch, arguments: list[str], log: LogConfig) -> None:
    assert config_of(monkeypatch, arguments).log == log


@pytest.mark.parametrize(("arguments", "reason"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused_options(arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["serve", *arguments])
    assert ended.value.code == 2
    assert reason in capsys.readouterr().err


def test_nothing_about_audit_files_is_imported_before_it_is_needed() -> None:
    program = (
        "import sys, noxu.process.server; "
        "sys.exit(any(f'noxu.{name}' in sys.modules for name in "
        "('observability.log_files', 'observability.line_writer', 'http.access_log')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
