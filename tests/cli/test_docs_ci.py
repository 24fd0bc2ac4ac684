"""The jobs in docs/ci.md: their commands are valid, and the start of the server works as the page has it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from noxu import cli
from tests.docs.blocks import blocks, commands
from tests.optional import needs_platform, needs_program
from tests.timing import HANGS_AFTER, eventually

BLOCKS: Final = [block for block in blocks() if block.page == "docs/ci.md"]
JOBS: Final = [yaml.load(block.text, yaml.BaseLoader) for block in BLOCKS if block.language == "yaml"]
RUN, SCRIPT = [block.text for block in BLOCKS if block.language == "sh"]


def scripts(value: Any) -> Iterator[str]:
    """The texts that a job gives to the shell: `run` of a step, `script` of a job."""
    if isinstance(value, list):
        for item in value:
            yield from scripts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in ("run", "script"):
                yield from [item] if isinstance(item, str) else item
            else:
                yield from scripts(item)


COMMANDS: Final = [
    words[1:] for script in scripts(JOBS) for words in commands(script) if words[0].rpartition("/")[2] == "noxu"
]
"""The arguments of noxu in all scripts: `[validate, --output, junit, config/crd]`."""


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_of_a_job_is_valid(words: list[str]) -> None:
    name, *arguments = words
    cli.options_of(name, arguments)


def test_the_jobs_are_found() -> None:
    github, _, _, gitlab = JOBS
    assert set(github["jobs"]) == {"manifests", "integration", "envtest"} == set(gitlab) - {"default"}
    assert {words[0] for words in COMMANDS} == {"lint", "validate", "run", "envtest"}
    outputs = {words[words.index("--output") + 1] for words in COMMANDS if "--output" in words}
    assert outputs == {"github", "sarif", "junit"}


def test_both_run_a_command_with_a_server_as_the_page_explains_it() -> None:
    begin = "noxu run config/crd -- "
    assert all(line.startswith(begin) for line in RUN.splitlines())
    assert sum(script.startswith(begin) for script in scripts(JOBS)) == 2


@needs_program("timeout")
@needs_platform("process groups", present=hasattr(os, "killpg"))
def test_the_server_starts_as_the_page_says(here: Path, write: Callable[..., Path], crd: Callable[..., Any]) -> None:
    """The variable is set when its file is complete, and the server has the manifests then."""
    write("config/crd/widgets.json", crd())
    program = write("bin/noxu", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m noxu "$@"\n')
    program.chmod(0o755)
    shell = subprocess.Popen(
        ["/bin/sh", "-c", f'{SCRIPT}cat "$KUBECONFIG"'],
        cwd=here,
        env={**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(here)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = shell.communicate(timeout=2 * HANGS_AFTER)
        assert shell.returncode == 0, printed
        server = yaml.safe_load(printed)["clusters"][0]["cluster"]["server"]
        with urllib.request.urlopen(f"{server}/apis/example.com/v1/widgets", timeout=HANGS_AFTER) as answer:
            assert answer.status == 200
        os.killpg(shell.pid, signal.SIGTERM)
        eventually(lambda: not (here / "noxu.kubeconfig").exists())
    except BaseException:
        os.killpg(shell.pid, signal.SIGKILL)
        raise


# -- the action, and the hooks of pre-commit ---------------------------------------------------------------------------


ROOT: Final = Path(__file__).parents[2]
ACTION: Final = yaml.safe_load((ROOT / "action.yml").read_text())
HOOKS: Final = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
PROGRAM: Final = '#!/bin/sh\necho "$*"\ntest "$1" != validate\n'


def test_the_commands_of_the_action_are_valid() -> None:
    [step] = JOBS[1]
    assert set(step["with"]) <= set(ACTION["inputs"])
    for line in step["with"]["run"].splitlines():
        name, *arguments = line.split()
        cli.options_of(name, arguments)


@needs_program("bash")
def test_the_action_runs_each_line_and_fails_if_one_fails(tmp_path: Path) -> None:
    program = tmp_path / "noxu/bin/noxu"
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM)
    program.chmod(0o755)
    lines = "lint a\n\nvalidate --output sarif 'b'\n  test c; echo $HOME\nversion"
    environment = {**os.environ, "RUNNER_TEMP": str(tmp_path), "NOXU_RUN": lines}
    step = ACTION["runs"]["steps"][-1]
    ran = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert [line for line in ran.stdout.splitlines() if not line.startswith("noxu ")] == [
        "lint a --output github",
        "validate --output sarif 'b'",
        "test c; echo $HOME --output github",  # words, and nothing that a shell would run
        "version",
    ]


def test_the_hooks_of_the_page_are_there_and_their_commands_are_valid() -> None:
    [repository] = JOBS[2]["repos"]
    used = {hook["id"]: hook.get("args", []) for hook in repository["hooks"]}
    assert used.keys() == HOOKS.keys()
    for name, hook in HOOKS.items():
        _, command, *arguments = hook["entry"].split()
        cli.options_of(command, [*arguments, *(used[name] or hook.get("args", ["a.yaml"]))])
