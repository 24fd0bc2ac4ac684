"""`noxu serve --leader-elect`: the options, and what is wrong with them."""

from __future__ import annotations

import sys

import pytest

from noxu import cli
from noxu.config import Config, Etcd, LeaderElection
from noxu.control_plane import elected
from noxu.process import running

FLAG = "--leader-elect"
VALID: list[tuple[str, list[str], LeaderElection]] = [
    ("nothing", [], LeaderElection(None, 15.0, 10.0, 2.0)),
    ("on", [f"{FLAG}=true"], LeaderElection(enabled=True)),
    ("off", [f"{FLAG}=false"], LeaderElection(enabled=False)),
    (
        "all periods",
        [f"{FLAG}-lease-duration=1m", f"{FLAG}-renew-deadline=40s", f"{FLAG}-retry-period=500ms"],
        LeaderElection(None, 60.0, 40.0, 0.5),
    ),
]
INVALID: list[tuple[str, list[str], str]] = [
    ("a duration that is no longer than the deadline", [f"{FLAG}-lease-duration=10s"], "leaseDuration must be greater than renewDeadline"),
    ("a period that is too long", [f"{FLAG}-retry-period=9s"], "renewDeadline must be greater than retryPeriod*JitterFactor"),
    ("no duration", [f"{FLAG}-lease-duration=0s"], "leaseDuration must be greater than zero"),
    ("no deadline", [f"{FLAG}-renew-deadline=0s"], "renewDeadline must be greater than zero"),
    ("no period", [f"{FLAG}-retry-period=0s"], "retryPeriod must be greater than zero"),
    ("a part of a second", [f"{FLAG}-lease-duration=10500ms"], "leaseDuration must be whole seconds, because a Lease has it so"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "expected"), [row[1:] for row in VALID], ids=[row[0] for row in VALID])
def test_valid_options(arguments: list[str], expected: LeaderElection, monkeypatch: pytest.MonkeyPatch) -> None:
    configs: list[Config] = []
    monkeypatch.setattr(sys, "argv", ["noxu", "serve", *arguments])
    monkeypatch.setattr(running, "run", lambda config, **_: configs.append(config))
    assert cli.main(["serve", *arguments]) == 0
    assert [config.leader_election for config in configs] == [expected]


@pytest.mark.parametrize(("arguments", "message"), [row[1:] for row in INVALID], ids=[row[0] for row in INVALID])
def test_invalid_options(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["serve", *arguments])
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"noxu serve: error: argument --leader-elect: {message}\n")


SHARED = Etcd(("http://127.0.0.1:2379",))
HELD: list[tuple[str, Config, bool]] = [
    ("one server", Config(), False),
    ("one server, on request", Config(leader_election=LeaderElection(enabled=True)), True),
    ("servers that share etcd", Config(etcd=SHARED), True),
    ("servers that share etcd, and run all controllers", Config(etcd=SHARED, leader_election=LeaderElection(enabled=False)), False),
]  # fmt: skip


@pytest.mark.parametrize(("config", "held"), [row[1:] for row in HELD], ids=[row[0] for row in HELD])
def test_there_is_an_election_for(config: Config, held: bool) -> None:
    assert (elected(config) is not None) is held
