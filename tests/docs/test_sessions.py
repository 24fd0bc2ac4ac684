"""The commands of kubectl in the documentation work on a server, and print what the pages show.

All sessions share one server with TLS and RBAC. What starts a server, or needs a program that the tests do not have, is left
out of a session; the kubeconfig is wherever a page expects it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from noxu.testing.handle import Noxu
from tests.docs.blocks import SHELLS, Block, blocks, script, statements, steps
from tests.optional import needs_program, skip_without_program
from tests.rows import rows
from tests.timing import HANGS_AFTER, eventually

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
    "docs/policies.md console $ kubectl get validatingadmissionpolicy small -o jsonpath='{.status.typeChecking.expressionWarnings[0].warning}'": Session(
        "kubectl apply -f widgets.yaml\n"
        "sed 's/spec.size/spec.siez/' small.yaml | kubectl apply -f -\n"
        "kubectl wait validatingadmissionpolicy small --for jsonpath='{.status.observedGeneration}'=1"
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
_VARYING: Final = re.compile(
    r"(?P<uid>[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})|(?P<time>\d{4}-\d\d-\d\dT[\d:]{8}(?:\.\d+)?Z)"
    r"|(?P<address>127\.0\.0\.1:\d+)|(?P<version>\bv\d+\.\d+\.\d+\S*)|(?P<age>\b(?:\d+[dhms])+(?=\s|$))|(?P<value>(?<= )\d+(?:\.\d+)?$)",
    re.MULTILINE,
)
_ANYTHING: Final = "…"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    for program in ("kubectl", "bash"):
        if not shutil.which(program):
            skip_without_program(program)
    with Noxu(tmp_path_factory.mktemp("server"), profile="cluster", tls=True, authorization_modes=["RBAC"]) as noxu:
        yield noxu


@pytest.fixture
def directory(server: Noxu, tmp_path: Path) -> Path:
    """The directory of the commands: with the kubeconfig under all names, the files of policies.md, and a definition."""
    for name in ("kubeconfig", "noxu.kubeconfig", ".noxu/kubeconfig"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(server.kubeconfig, tmp_path / name)
    for block in BLOCKS.values():
        if block.page == "docs/policies.md" and block.file:
            (tmp_path / block.file).write_text(block.text)
    (tmp_path / "widgets.yaml").write_text(BLOCKS["docs/recipes.md yaml apiVersion: apiextensions.k8s.io/v1"].text)
    return tmp_path


def run(text: str, directory: Path, *, fails: bool = False) -> tuple[str, str]:
    """What commands print to stdout and stderr. One that fails ends them, which has to be so if `fails`."""
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        check=False,
        cwd=directory,
        env=os.environ | {"KUBECONFIG": "kubeconfig", "HOME": str(directory)},
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
    )
    assert (ran.returncode != 0) is fails, ran.stdout + ran.stderr
    return ran.stdout, ran.stderr


def stable(text: str) -> str:
    """A text without what is different each time: uids, times, addresses, versions, ages, a number that ends a line."""
    return _VARYING.sub(lambda found: f"<{found.lastgroup}>", text)


def is_shown(printed: str, shown: str) -> bool:
    """Whether a page shows what was printed: the same lines; one of `…` is any number of lines."""
    parts = ["(?:.*\n)*?" if line == _ANYTHING else f"{re.escape(line)} *\n" for line in stable(shown).splitlines()]
    return re.fullmatch("".join(parts), stable(printed if printed.endswith("\n") else f"{printed}\n")) is not None


@pytest.mark.slow(every=19)
@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_prints_what_the_page_shows(name: str, server: Noxu, directory: Path) -> None:
    if not shutil.which("openssl") and "openssl" in name:
        skip_without_program("openssl")
    session, block = SESSIONS[name], BLOCKS[name]
    without = (*ALWAYS_WITHOUT, *session.without)
    kept = [each for each in statements(script(block)) if not each.startswith(without)]
    address = re.compile(r"https://127\.0\.0\.1:644\d")
    run(session.before, directory)
    printed, error = run("\n".join(address.sub(server.url, each) for each in kept), directory)
    if block.language == "console":
        assert is_shown(printed + error, "".join(shown for _, shown in steps(block.text))), printed + error
    elif "openssl" not in name:  # which prints its progress
        assert error == "", "a page of commands shows no warning"


@pytest.mark.parametrize("name", MESSAGES)
def test_a_command_prints_the_message_of_the_page(name: str, server: Noxu, directory: Path) -> None:
    assert BLOCKS[name].text.strip() in run(MESSAGES[name], directory, fails=True)[1]


COMPARED: Final = [
    ("the same", "a\nb\n", "a\nb\n", True),
    ("another line", "a\nc\n", "a\nb\n", False),
    ("another order", "b\na\n", "a\nb\n", False),
    ("a line more", "a\nb\nc\n", "a\nb\n", False),
    ("a line less", "a\n", "a\nb\n", False),
    ("lines that are left out", "x\na\ny\nz\nb\n", "…\na\n…\nb\n", True),
    ("none that is left out", "a\nb\n", "a\n…\nb\n", True),
    ("another value in quotes", 'a{code="200"} 1\n', 'a{code="201"} 1\n', False),
    ("another number", 'a{code="200"} 1\n', 'a{code="200"} 2.5\n', True),
    ("another age", "a   Active   3s\n", "a   Active   4m5s\n", True),
    ("another status", "a   Failed   3s\n", "a   Active   3s\n", False),
    ("another port", "at https://127.0.0.1:123/x\n", "at https://127.0.0.1:6440/x\n", True),
    ("a uid", "uid: 6a78f17c-40bc-4cc8-be3d-34d9c9195ae5\n", "uid: 12345678-40bc-4cc8-be3d-34d9c9195ae5\n", True),
]


@rows(("printed", "shown", "same"), [row[1:] for row in COMPARED], ids=[row[0] for row in COMPARED])
def test_what_is_printed_is_compared_with_what_a_page_shows(printed: str, shown: str, same: bool) -> None:
    assert is_shown(printed, shown) is same


@pytest.mark.slow
@needs_program("jq")
@needs_program("kubectl")
def test_a_question_to_the_audit_log(directory: Path) -> None:
    """A server of its own writes the log: the handle of a test has none."""
    options = ["--memory", "--port", "0", "--kubeconfig", "of-audit", "--audit-log-path", "audit.log", "widgets.yaml"]
    with subprocess.Popen([sys.executable, "-m", "noxu", "serve", *options], cwd=directory) as process:
        try:
            assert eventually(lambda: (directory / "of-audit").exists() or process.poll() is not None)
            shutil.copy(directory / "of-audit", directory / "kubeconfig")
            run(
                "printf 'apiVersion: example.com/v1\\nkind: Widget\\nmetadata: {name: a}' | kubectl create -f -\n"
                "kubectl label widget a a=b\n"
                "kubectl get widgets",
                directory,
            )
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(HANGS_AFTER)
    [question] = [block.text for name, block in BLOCKS.items() if name.startswith("docs/audit.md sh jq")]
    printed, _ = run(question, directory)
    assert re.fullmatch(r"kubectl\S* \(.*\) kubernetes/\w+\ta\t200\n", printed), printed


def test_sessions_are_blocks_of_a_shell() -> None:
    assert {BLOCKS[name].language for name in SESSIONS} == set(SHELLS)
    assert isinstance(BLOCKS[next(iter(SESSIONS))], Block)
