"""`noxu serve --event-ttl`: a duration in Go's syntax, as kube-apiserver's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from noxu import cli
from noxu.config import DEFAULT_EVENT_TTL, Config
from noxu.controllers.expiry import ExpiryController
from noxu.kinds import scheme
from noxu.process import running, server

VALID: list[tuple[str, str, float]] = [
    ("hours, minutes and seconds", "1h30m15s", 5415.0),
    ("upstream's default", "1h0m0s", 3600.0),
    ("a fraction", "1.5m", 90.0),
    ("milliseconds", "250ms", 0.25),
    ("zero, which retains Events", "0", 0.0),
    ("a sign", "+90s", 90.0),
]  # fmt: skip
INVALID: list[tuple[str, str]] = [
    ("no unit", "60"),
    ("another unit", "1d"),
    ("words", "an hour"),
    ("nothing", ""),
    ("a negative duration", "-1h"),
    ("a duration that is too long", "9999999999h"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "seconds"), [row[1:] for row in VALID], ids=[row[0] for row in VALID])
def test_valid_durations(text: str, seconds: float) -> None:
    assert cli.parser_of("serve").parse_args([f"--event-ttl={text}"]).event_ttl == seconds


@pytest.mark.parametrize("text", [row[1] for row in INVALID], ids=[row[0] for row in INVALID])
def test_invalid_durations(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.parser_of("serve").parse_args([f"--event-ttl={text}"])
    assert capsys.readouterr().err.splitlines()[-1] == (
        "noxu serve: error: argument --event-ttl: must be a duration that is not negative, such as 1h30m, 90s or 0"
    )


def test_the_default_is_that_of_the_kinds() -> None:
    assert cli.parser_of("serve").parse_args([]).event_ttl == DEFAULT_EVENT_TTL == Config().event_ttl
    assert {kind.lifetime for kind in scheme.served() if kind.kind == "Event"} == {DEFAULT_EVENT_TTL}


def test_the_help_shows_the_default(run: Callable[..., Any]) -> None:
    out = " ".join(run("serve --help").out.split())
    assert "--event-ttl DURATION the time for which Events are retained" in out
    assert "(default: 1h0m0s)" in out


def test_the_command_passes_it_to_the_server(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    configs: list[Config] = []
    monkeypatch.setattr(running, "run", lambda config, **_: configs.append(config))
    assert run("serve --memory --event-ttl 30m").status == 0
    assert run("serve --memory").status == 0
    assert [config.event_ttl for config in configs] == [1800.0, 3600.0]


async def test_the_server_passes_it_to_the_controller_of_events() -> None:
    async with server.Server(Config(port=0, event_ttl=90.0)) as running:
        found = [controller for controller in running.plane.controllers if isinstance(controller, ExpiryController)]
        assert [controller.lifetime for controller in found] == [90.0]
