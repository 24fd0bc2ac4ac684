"""Arguments that are read without argparse are what argparse reads."""

from __future__ import annotations

import contextlib
import io
import shlex
from argparse import Namespace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noxu import cli
from noxu.arguments import plain
from noxu.arguments.commands import COMMANDS, arguments_of
from tests.rows import rows

VALUES: Final = (
    "", "-", "--", "-1", "0", "1", "65536", "true", "10s", "1h30m", "full", "json", "local", "unix:/tmp/socket", "a,b", "a=b", "a.yaml",
    "127.0.0.1", "default/hook:443=127.0.0.1:1", "ns/name", "FieldValidation=true", "http://127.0.0.1:1", "v1.2.3", "serve",
)  # fmt: skip
OPTIONS: Final = {name: sorted(cli.parser_of(name)._option_string_actions) for name in COMMANDS}


def read_by_argparse(command: str, words: list[str]) -> Namespace | None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            return cli.parser_of(command).parse_intermixed_args(words)
        except SystemExit:
            return None


def read_plainly(command: str, words: list[str]) -> Any:
    return plain.options(arguments_of(command).add, words)


@st.composite
def lines(draw: st.DrawFn) -> tuple[str, list[str]]:
    command = draw(st.sampled_from(["serve", *COMMANDS]))
    option, value = st.sampled_from(OPTIONS[command]), st.sampled_from(VALUES)
    part = st.one_of(
        st.tuples(option, value),
        st.tuples(option),
        st.tuples(value),
        st.builds(lambda name, value: (f"{name}={value}",), option, value),
        st.builds(lambda name: (name[:-1],), option),
    )
    return command, [word for words in draw(st.lists(part, max_size=4)) for word in words]


@given(lines())
def test_what_is_read_without_argparse_is_what_argparse_reads(line: tuple[str, list[str]]) -> None:
    found = read_plainly(*line)
    if found is not None:
        expected = read_by_argparse(*line)
        assert expected is not None
        assert vars(found) == vars(expected)


PLAIN: Final = (
    "serve",
    "serve --memory --port 0 --kubeconfig k",
    "serve --data=d --listen unix:/tmp/a --listen=fd:3 a.yaml --tls b/ -",
    "serve -k config --event-ttl 1h --audit-log-path -",
    "lint a.yaml --strict b.yaml",
)
DOUBTFUL: Final = (
    "serve --help",
    "serve --mem",
    "serve --port x",
    "serve --port",
    "serve --memory --data d",
    "serve --memory=yes",
    "serve --audit-log-path --memory",
    "serve --durability none",
    "serve -kconfig",
    "serve -- a.yaml",
    "serve --etcd-prefix=--",
    "serve --unknown",
    "version a",
    "check a.db",
)


@pytest.mark.parametrize("line", PLAIN)
def test_what_is_spelled_out_is_read_without_argparse(line: str) -> None:
    command, *words = shlex.split(line)
    assert vars(read_plainly(command, words)) == vars(read_by_argparse(command, words) or Namespace())


@rows("line", DOUBTFUL)
def test_argparse_decides_at_any_doubt(line: str) -> None:
    command, *words = shlex.split(line)
    assert read_plainly(command, words) is None
