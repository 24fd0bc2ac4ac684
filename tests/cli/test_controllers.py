"""`noxu serve --profile` and `--controllers`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from noxu import cli
from noxu.config import Config, StartError
from noxu.controllers.manager import AVAILABLE
from noxu.process import running, server

GIVEN: list[tuple[str, list[str], str, tuple[str, ...] | None]] = [
    ("nothing", [], "local", None),
    ("a profile", ["--profile", "envtest"], "envtest", None),
    ("that of a cluster", ["--profile", "cluster"], "cluster", None),
    ("a list", ["--controllers=*,-namespace-controller"], "local", ("*", "-namespace-controller")),
    ("several lists", ["--controllers=*", "--controllers=-namespace,serviceaccount"], "local", ("*", "-namespace", "serviceaccount")),
    ("an empty list", ["--controllers="], "local", ()),
    ("both", ["--profile=envtest", "--controllers=namespace"], "envtest", ("namespace",)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "profile", "controllers"), [row[1:] for row in GIVEN], ids=[row[0] for row in GIVEN]
)
def test_the_command_passes_them_to_the_server(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], profile: str, controllers: tuple[str, ...] | None
) -> None:
    configs: list[Config] = []
    monkeypatch.setattr(running, "run", lambda config, **_: configs.append(config))
    assert cli.main(["serve", *arguments]) == 0
    assert [(config.profile, config.controllers) for config in configs] == [(profile, controllers)]


REFUSED: list[tuple[str, list[str], str]] = [
    ("an unknown profile", ["--profile=kind"], "argument --profile: invalid choice: 'kind' (choose from "),
    (
        "an unknown controller",
        ["--controllers=*,-nope"],
        'argument --controllers: "nope" is not in the list of known controllers',
    ),
    (
        "a controller that is missing here",
        ["--controllers=job-controller"],
        'argument --controllers: "job-controller" is',
    ),
]


@pytest.mark.parametrize(("arguments", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_refused(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as raised:
        cli.main(["serve", *arguments])
    assert raised.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"noxu serve: error: {message}")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (Config(port=0, profile="kind"), '"kind" is not a profile: there are local, cluster, envtest'),  # type: ignore[arg-type]
        (Config(port=0, controllers=("nope",)), '"nope" is not in the list of known controllers'),
    ],
    ids=["an unknown profile", "the controllers"],
)
async def test_a_server_refuses_them_too(config: Config, message: str) -> None:
    with pytest.raises(StartError) as raised:
        await server.Server(config).__aenter__()
    assert str(raised.value).startswith(message)


def test_the_help_lists_the_controllers(run: Callable[..., Any]) -> None:
    out = "".join(run("serve --help").out.split())
    assert all(name in out for name in AVAILABLE)


@pytest.mark.parametrize(
    ("config", "names"),
    [
        (Config(port=0), [*AVAILABLE]),
        (Config(port=0, profile="envtest"), []),
        (Config(port=0, profile="envtest", controllers=("namespace",)), ["namespace-controller"]),
        (Config(port=0, controllers=()), []),
    ],
    ids=["local", "envtest", "envtest with one", "an empty list"],
)
async def test_a_server_runs_them(config: Config, names: list[str]) -> None:
    of_the_server = ["bootstrap-controller", "legacy-token-tracking-controller", "kube-apiserver-autoregistration"]
    async with server.Server(config) as running:
        assert [found.name for found in running.plane.background_controllers] == [*of_the_server, *names]


def test_the_names_are_known_without_the_modules_of_the_server(run: Callable[..., Any]) -> None:
    """`noxu --help` stays fast."""
    import subprocess

    code = "import sys; from noxu import cli; cli.parser_of('serve'); print('noxu.registry.write' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
