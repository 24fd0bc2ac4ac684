"""The commands in the documentation are valid: those of `noxu` are parsed as the program parses them, and so on.

A command has a check, is part of a session with a server (`test_sessions.py`), or a table says why it cannot be run.
"""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from noxu import cli
from tests.docs.blocks import ROOT, SHELLS, Block, blocks, commands, script, statements, steps
from tests.docs.test_sessions import SESSIONS
from tests.rows import rows

# The blocks whose commands another test runs, all of them.
RUN: Final = (
    "README.md sh eval",
    "docs/apply.md console",
    "docs/audit.md sh jq",
    "docs/ci.md sh",
    "docs/cli.md console",
    "docs/crd-upgrades.md console",
    "docs/from-other-validators.md console",
    "docs/from-schemas.md console",
    "docs/control.md console $ noxu blame",
    "docs/control.md sh kubectl",
    "docs/controllers.md sh cargo",
    "docs/controllers.md sh kopf",
    "docs/controllers.md sh mvn",
    "docs/envtest.md sh pip",
    "docs/envtest.md sh export NOXU_NODES=3",
    "docs/fake-clients.md sh eval",
    "docs/quickstart.md sh",
    "docs/tenants.md console",
    "docs/workloads.md console",
    "docs/kuttl.md console",
    "docs/tests-of-crds.md console",
)

# Programs whose commands cannot be run, and why.
NOT_RUN: Final = {
    "make": "reads a file of kubebuilder, which downloads its tools",
    "kwok": "another project's program, which is not installed",
    "./cainjector": "another project's program, which is not installed",
    "./controller": "another project's program, which is not installed",
    "helm": "renders a chart of the reader",
    "kustomize": "builds a folder of the reader",
    "etcdctl": "mends an etcd without space",
    "uvx": "downloads what it runs",
}

NEEDS_MORE: Final = {
    "kubectl port-forward": "needs the service in a cluster of the reader",
    'kubectl --server "$URL': "needs the URL of a server; tests/clients/test_kubectl_past.py runs such commands",
}
"""The beginnings of statements that cannot be run, and why."""

BUILT_IN: Final = {"{", "}", "cat", "cp", "echo", "eval", "exit", "export", "source"}
"""Commands of the shell around others."""

PROGRAMS: Final[dict[str, Callable[[list[str]], None]]] = {}
"""Programs, and what checks the words of their commands."""


def checks(*programs: str) -> Callable[[Callable[[list[str]], None]], Callable[[list[str]], None]]:
    def added(check: Callable[[list[str]], None]) -> Callable[[list[str]], None]:
        PROGRAMS.update(dict.fromkeys(programs, check))
        return check

    return added


# -- commands


@checks("noxu", ".venv/bin/noxu")
def a_command_of_noxu(words: list[str]) -> None:
    """Invalid arguments end the test."""
    name, *arguments = words[1:]
    cli.options_of(name, arguments)


@checks("./check", "./release", "./site")
def a_script_of_the_checkout(words: list[str]) -> None:
    name, *arguments = words
    comments = re.findall(rf"^#   {re.escape(name)} (\w+)  ", (ROOT / name).read_text(), re.MULTILINE)
    assert all(each in comments or (ROOT / each).exists() for each in arguments)


@checks("pip", ".venv/bin/pip")
def an_installation(words: list[str]) -> None:
    """Of files that exist, or of packages within the bounds of pyproject.toml. What it does needs the network."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds = {re.split(r"[<>=;]", each)[0]: each.partition(";")[0] for each in project["dependencies"]}
    assert words[1] == "install"
    arguments = iter(words[2:])
    for word in arguments:
        if word == "-r":
            assert (ROOT / next(arguments)).is_file()
        elif word == "--only-binary":
            assert next(arguments) == ":all:"
        elif re.match(r"[a-z]", word):
            name, _, extra = word.rstrip("]").partition("[")
            package = re.split(r"[<>=]", name)[0]
            assert package.startswith("noxu") or word == bounds[package]
            assert not extra or extra in project["optional-dependencies"]
        else:
            assert word in ("-q", "--no-deps", "--require-hashes", ".")


@checks("python", "python3")
def a_module_of_the_checkout(words: list[str]) -> None:
    """Its arguments are parsed as it parses them; what they ask for is not done."""
    assert words[1] == "-m"
    if words[2] == "venv":
        return
    main: Callable[[], object] = importlib.import_module(words[2]).main
    parse = argparse.ArgumentParser.parse_args

    def parsed(self: argparse.ArgumentParser, given: list[str] | None = None, namespace: object = None) -> None:
        parse(self, given)
        raise Parsed

    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program")
        program.touch(mode=0o700)
        patch.setattr(argparse.ArgumentParser, "parse_args", parsed)
        patch.setattr("sys.argv", [PLACEHOLDER.sub(f"={program}", word) for word in words[2:]])
        with pytest.raises(Parsed):
            main()


PLACEHOLDER: Final = re.compile(r"=(PROGRAM|START\.sh)$")
"""A program of the reader, which has to exist."""


class Parsed(Exception):
    """The arguments of a program are valid."""


@checks("docker")
def a_command_of_docker(words: list[str]) -> None:
    """Services, profiles and arguments of builds exist. An image is built and run in `test_image.py`."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    if words[1] == "compose":
        names = [word.partition(":")[0] for word in words[2:] if ":" in word or re.match(r"noxu|balancer", word)]
        profiles = [words[n + 1] for n, word in enumerate(words) if word == "--profile"]
        assert all(name in compose for name in names)
        assert {profile for each in compose.values() for profile in each.get("profiles", ())} >= set(profiles)
    elif words[1] == "build":
        given = [words[n + 1].partition("=")[0] for n, word in enumerate(words) if word == "--build-arg"]
        declared = re.findall(r"^ARG (\w+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
        assert set(given) <= set(declared)
    elif words[1] == "run":
        inner = words[words.index("noxu", words.index("run")) + 1 :] if words[-1] != "noxu" else []
        if inner:
            a_command_of_noxu(["noxu", *inner])
    else:
        assert words[1] == "cp"


def unchecked(block: Block) -> Iterator[str]:
    """The commands of a block for which there is neither a check nor a reason."""
    for statement in statements(script(block)):
        if block.name in SESSIONS or statement.startswith(tuple(NEEDS_MORE)):
            continue
        for words in commands(statement):
            if words[0] not in {*BUILT_IN, *NOT_RUN, *PROGRAMS}:
                yield shlex.join(words)


SHELL_BLOCKS: Final = [block for block in blocks() if block.language in SHELLS]


@rows("block", SHELL_BLOCKS, ids=lambda block: block.name)
def test_the_commands_of_a_block_are_valid(block: Block) -> None:
    assert block.language == "sh" or steps(block.text), "a console has commands after `$ `"
    found = [words for words in commands(script(block)) if words[0] in PROGRAMS]
    for words in found:
        PROGRAMS[words[0]](words)
    assert block.name.startswith(RUN) or list(unchecked(block)) == []


def test_a_command_without_a_check_is_found() -> None:
    wrong = Block("docs/x.md", 1, "sh", "", "kubectl get pods | frobnicate\nnoxu serve\n")
    assert list(unchecked(wrong)) == ["kubectl get pods", "frobnicate"]


@pytest.mark.parametrize(
    "text",
    ["noxu serve --nonsense", "pip install aiohttp==1", "pip install 'noxu[x]'", "./check slowly", "python -m benchmarks.http --x 1", "docker compose cp other:/a ."],
)  # fmt: skip
def test_an_invalid_command_is_found(text: str) -> None:
    [words] = commands(text)
    with pytest.raises((AssertionError, SystemExit, KeyError)):
        PROGRAMS[words[0]](words)


COMMANDS: Final = [
    ("a comment", "noxu serve  # run it", [["noxu", "serve"]]),
    ("a continued line", "noxu serve \\\n  --tls", [["noxu", "serve", "--tls"]]),
    ("a pipe, and a list", "a | b && c || d; e &", [["a"], ["b"], ["c"], ["d"], ["e"]]),
    ("a substitution", "eval $(noxu envtest env)", [["eval", "$"], ["noxu", "envtest", "env"]]),
    ("another one", "source <(noxu completion zsh)", [["source"], ["noxu", "completion", "zsh"]]),
    ("redirections", "noxu serve > log 2>&1 < in", [["noxu", "serve"]]),
    ("variables before it", "A=1 B='2 3' noxu serve", [["noxu", "serve"]]),
    ("only a variable", "A=1", []),
    ("quotes", "kubectl get -o 'jsonpath={.a}' \"b c\"", [["kubectl", "get", "-o", "jsonpath={.a}", "b c"]]),
    ("a here-document", "kubectl apply -f - <<'END'\nkind: A\nEND\nnoxu serve", [["kubectl", "apply", "-f", "-"], ["noxu", "serve"]]),
    ("a here-string", "kubectl apply -f - <<< '{}'\nnoxu serve", [["kubectl", "apply", "-f", "-"], ["noxu", "serve"]]),
]  # fmt: skip


@rows(("text", "found"), [row[1:] for row in COMMANDS], ids=[row[0] for row in COMMANDS])
def test_the_commands_of_a_script(text: str, found: list[list[str]]) -> None:
    assert list(commands(text)) == found


def test_no_entry_of_a_table_is_without_a_use() -> None:
    texts = [script(block) for block in SHELL_BLOCKS]
    used = {words[0] for text in texts for words in commands(text)}
    assert [program for program in (*NOT_RUN, *PROGRAMS) if program not in used] == ["./site"]
    found = [statement for text in texts for statement in statements(text)]
    assert [start for start in NEEDS_MORE if not any(each.startswith(start) for each in found)] == []
