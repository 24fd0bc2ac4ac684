"""The image: everything that is installed into it is pinned with hashes, and everything that it copies is sent.

No engine of containers is needed: these tests read the Dockerfile and docker-compose.yml, and run their commands.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from noxu.security.certificates import names_in, parse
from tests.timing import HANGS_AFTER, eventually

ROOT = Path(__file__).parents[2]
# One instruction is one line: continued lines are joined.
INSTRUCTIONS = [
    line
    for line in re.sub(r"\s*\\\n\s*", " ", (ROOT / "Dockerfile").read_text()).splitlines()
    if line and not line.startswith("#")
]


def arguments(instruction: str) -> list[str]:
    """The arguments of all instructions with this name."""
    return [line.removeprefix(f"{instruction} ") for line in INSTRUCTIONS if line.startswith(f"{instruction} ")]


def copied() -> list[str]:
    """The paths that are copied from the checkout."""
    return [path for copy in arguments("COPY") if not copy.startswith("--from=") for path in copy.split()[:-1]]


def test_everything_that_is_installed_is_pinned_with_hashes() -> None:
    commands = [
        command for run in arguments("RUN") for command in run.split(" && ") if " install --no-cache" in command
    ]
    kinds = []
    for command in commands:
        words = command.split()
        if "--no-index" in words:  # the wheel that was just built, alone
            assert {"--no-deps", "/wheel/*.whl"} <= set(words), command
            kinds.append("wheel")
        else:
            assert {"--require-hashes", "--only-binary"} <= set(words), command
            assert words[-2] == "-r", command
            assert words[-1] in copied(), command
            kinds.append(words[-1])
    assert kinds == ["requirements/build.txt", "requirements/runtime.txt", "wheel"]


def test_nothing_else_installs_anything() -> None:
    runs = " && ".join(arguments("RUN"))
    assert len(re.findall(r"bin/pip\b", runs)) == 3
    assert not re.search(r"(?<![\w/-])(pip|apt|apt-get|curl|wget|uv)\b|-m (pip|ensurepip)\b", runs)
    assert arguments("ADD") == []


def test_the_base_image_is_one_argument() -> None:
    assert arguments("FROM") == ["${BASE} AS build", "${BASE}"]
    assert arguments("ARG") == ["BASE=python:3.13-slim"]


def test_what_is_copied_exists_and_is_sent() -> None:
    sent = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line != "*"}
    assert set(copied()) == sent
    assert [path for path in copied() if not (ROOT / path).exists()] == []


# -- docker-compose.yml

SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]


def test_containers_have_a_network_of_their_own() -> None:
    for name, service in SERVICES.items():
        assert "network_mode" not in service, name
    assert SERVICES["noxu"]["ports"] == ["127.0.0.1:6440:6440"], "not for other machines"


def test_the_image_and_the_service_listen_on_all_addresses_of_the_container() -> None:
    (image,) = [json.loads(each) for each in arguments("CMD")]
    service = SERVICES["noxu"]["command"]
    for command in (image, service):
        assert command[:5] == ["serve", "--data", "/data", "--host", "0.0.0.0"]
    assert arguments("EXPOSE") == ["6440"]


@pytest.mark.slow
def test_the_commands_of_the_services(tmp_path: Path) -> None:
    """They run with another directory and another port, and with localhost as the name, which can be resolved."""

    def adapted(arguments: list[str], port: str) -> list[str]:
        names = {"/data": str(tmp_path), "6440": port, "noxu": "localhost", "python": sys.executable, "CMD": ""}
        texts = [
            names.get(text, text.replace("/data/", f"{tmp_path}/").replace(":6440", f":{port}")) for text in arguments
        ]
        return [text for text in texts if text]

    noxu = [sys.executable, "-m", "noxu"]
    options = adapted(SERVICES["noxu"]["command"], "0")
    with subprocess.Popen([*noxu, *options], cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            kubeconfig = tmp_path / "kubeconfig"
            assert eventually(lambda: kubeconfig.exists() or server.poll() is not None)
            url = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
            port = url.removeprefix("https://localhost:")
            names = names_in(parse((tmp_path / "pki" / "apiserver.crt").read_bytes()))
            assert "localhost" in names.dns
            subprocess.run(adapted(SERVICES["noxu"]["healthcheck"]["test"], port), check=True, timeout=HANGS_AFTER)
            client = [*noxu, *adapted(SERVICES["client"]["command"], port)]
            ran = subprocess.run(client, check=True, cwd=ROOT, capture_output=True, text=True, timeout=HANGS_AFTER)
            assert ran.stdout == "0 objects of 0 CRDs: 0 no longer validate\n"
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=HANGS_AFTER)
    assert server.returncode == 0
