"""The commands of kubectl in the documentation work on a server, and print what the pages show.

All sessions share one server with TLS and RBAC. What starts a server, or needs a program that the tests do not have, is left
out of a session; the kubeconfig is wherever a page expects it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from noxu.apiserver.testing.handle import Noxu
from tests.docs.blocks import SHELLS, Block, blocks, script, statements, steps
from tests.optional import skip_without_program
from tests.timing import HANGS_AFTER

ALWAYS_WITHOUT: Final = {
    "noxu ": "its arguments are checked in test_commands.py",
    "docker ": "its arguments are checked in test_commands.py",
    "kwok ": "another project's program",
    "./": "programs of another project",
}


class Session(NamedTuple):
    """`before`: commands that come first. `without`: the beginnings of further statements that are left out, and why."""

    before: str = ""
    without: Mapping[str, str] = {}


SESSIONS: Final = {
    "docs/authentication.md sh openssl req -new -newkey rsa:2048 -nodes -keyout ann.key -subj /O=dev/CN=ann -out ann.csr": Session(),
    'docs/authentication.md console $ kubectl create -o yaml -f - <<< \'{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "metadata": {}, "spec": {"token": "made up"}}\'': Session(),
    "docs/clients.md sh noxu serve --kubeconfig noxu.kubeconfig": Session(
        without={"kubectl wait": "needs kwok"}
    ),
    "docs/clients.md sh noxu serve --profile cluster --host 0.0.0.0 --external-hostname noxu": Session(),
    "docs/clients.md sh noxu serve --tls --kubeconfig noxu.kubeconfig deploy/crds/*.yaml": Session(
        without={"kubectl apply": "needs the kinds of cert-manager", "kubectl wait": "needs its controllers"}
    ),
    "docs/docker.md sh docker build --tag noxu .": Session(),
    "docs/docker.md sh docker compose up --detach --wait": Session(),
    "docs/docker.md sh docker compose --profile replicas up --detach --wait balancer": Session(),
    "docs/metrics.md console $ kubectl get --raw /metrics | grep '^apiserver_request_total'": Session(
        "kubectl create configmap counted"
    ),
    "docs/metrics.md sh kubectl create serviceaccount prometheus": Session(),
    "docs/metrics.md console $ kubectl get --raw '/readyz?verbose'": Session(),
    "docs/policies.md sh kubectl get validatingadmissionpolicy small -o jsonpath='{.status.typeChecking}'": Session(
        "kubectl apply -f small.yaml"
    ),
    "docs/tls.md sh noxu serve --tls": Session(),
}  # fmt: skip

MESSAGES: Final = {
    'docs/authorization.md text configmaps is forbidden: User "dev" cannot list resource "configmaps" in API group "" in the namespace "default"': (
        "kubectl get configmaps --as dev"
    ),
    'docs/authorization.md text roles.rbac.authorization.k8s.io "r" is forbidden: user "dev" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:': (
        "kubectl create clusterrole makers --verb create --resource roles\n"
        "kubectl create clusterrolebinding makers --clusterrole makers --user dev\n"
        "kubectl create role r --verb get,list --resource secrets --as dev"
    ),
}  # fmt: skip
"""Blocks of text, and the commands that print them."""

BLOCKS: Final = {block.name: block for block in blocks()}
_VARYING: Final = re.compile(r'"[^"]*"|\d+(?:\.\d+)?')


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    for program in ("kubectl", "bash"):
        if not shutil.which(program):
            skip_without_program(program)
    with Noxu(tmp_path_factory.mktemp("server"), profile="cluster", tls=True, authorization_modes=["RBAC"]) as noxu:
        yield noxu


@pytest.fixture
def directory(server: Noxu, tmp_path: Path) -> Path:
    """The directory of the commands: with the kubeconfig under all names, and the files of policies.md."""
    for name in ("kubeconfig", "noxu.kubeconfig", ".noxu/kubeconfig"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(server.kubeconfig, tmp_path / name)
    for block in BLOCKS.values():
        if block.page == "docs/policies.md" and block.file:
            (tmp_path / block.file).write_text(block.text)
    return tmp_path


def run(text: str, directory: Path, *, fails: bool = False) -> str:
    """What commands print. One that fails ends them, which has to be so if `fails`."""
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        check=False,
        cwd=directory,
        env=os.environ | {"KUBECONFIG": "kubeconfig", "HOME": str(directory)},
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
    )
    printed = ran.stdout + ran.stderr
    assert (ran.returncode != 0) is fails, printed
    return printed


def shape(text: str) -> set[str]:
    """The lines without what varies: numbers and what is in quotes."""
    return {_VARYING.sub("…", line) for line in text.splitlines()} - {"…"}


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_prints_what_the_page_shows(name: str, server: Noxu, directory: Path) -> None:
    if not shutil.which("openssl") and "openssl" in name:
        skip_without_program("openssl")
    session, block = SESSIONS[name], BLOCKS[name]
    without = (*ALWAYS_WITHOUT, *session.without)
    kept = [each for each in statements(script(block)) if not each.startswith(without)]
    address = re.compile(r"https://127\.0\.0\.1:644\d")
    printed = run("\n".join([session.before, *(address.sub(server.url, each) for each in kept)]), directory)
    if block.language == "console":
        expected = "".join(shown for _, shown in steps(block.text))
        assert shape(expected) - shape(printed) == set()


@pytest.mark.parametrize("name", MESSAGES)
def test_a_command_prints_the_message_of_the_page(name: str, server: Noxu, directory: Path) -> None:
    assert BLOCKS[name].text.strip() in run(MESSAGES[name], directory, fails=True)


def test_sessions_are_blocks_of_a_shell() -> None:
    assert {BLOCKS[name].language for name in SESSIONS} == set(SHELLS)
    assert isinstance(BLOCKS[next(iter(SESSIONS))], Block)
