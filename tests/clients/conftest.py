"""One server for all clients, and console sessions that are run with every installed kubectl.

A session is the text of a console: commands after `$ ` (continued after `> `), their output, and `[N]` if the exit
status is not 0. `…` matches any text within a line; a line that is only `…` matches any number of lines:

    $ kubectl get widgets
    NAME   SIZE
    a      2
    $ kubectl get widgets b
    Error from server (NotFound): …
    [1]
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from noxu.testing.handle import Noxu
from tests.optional import skip_without_program
from tests.timing import HANGS_AFTER

SLOW = pytest.mark.slow(every=40)


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.get_closest_marker("slow") is None:
        item.add_marker(SLOW)


Session = Callable[..., None]

_STEP: Final = re.compile(r"^\$ (.*\n(?:> .*\n)*)", re.MULTILINE)
_STATUS: Final = re.compile(r"^\[(\d+)\]\n", re.MULTILINE)
_COMMAND_TIMEOUT: Final = 2 * HANGS_AFTER

WIDGETS: Final = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd], categories: [all, tools]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size, labelSelectorPath: .status.selector}
    selectableFields: [{jsonPath: .spec.colour}]
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Colour, type: string, jsonPath: .spec.colour, priority: 1}
    schema:
      openAPIV3Schema:
        description: A widget does something.
        type: object
        properties:
          spec:
            description: The desired state.
            type: object
            required: [size]
            properties:
              size: {description: How large., type: integer, minimum: 0, default: 1}
              colour: {type: string, enum: [red, green]}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, count: {type: integer}}}
          status:
            type: object
            properties:
              size: {type: integer}
              selector: {type: string}
              conditions:
                type: array
                items: {type: object, properties: {type: {type: string}, status: {type: string}}}
"""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    """A server that serves the kind Widget."""
    with Noxu(tmp_path_factory.mktemp("server"), [WIDGETS]) as server:
        yield server


_numbers = itertools.count(1)


@pytest.fixture
def new_namespace(server: Noxu) -> Callable[[], str]:
    """Returns a function that creates a namespace for the calling test only."""

    def create() -> str:
        name = f"test-{next(_numbers)}"
        server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        return name

    return create


@pytest.fixture(scope="session")
def kubectls(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A directory for each installed kubectl, the system's and the wheel's, with a link to it and its cache."""
    wheel = Path(sys.executable).with_name("kubectl")
    others = os.pathsep.join(folder for folder in os.get_exec_path() if Path(folder) != wheel.parent)
    directories = []
    for name, program in (("system", shutil.which("kubectl", path=others)), ("wheel", shutil.which(wheel))):
        if program:
            directory = tmp_path_factory.mktemp(name)
            (directory / "kubectl").symlink_to(program)
            directories.append(directory)
    if not directories:
        skip_without_program("kubectl")
    return directories


@pytest.fixture
def session(server: Noxu, new_namespace: Callable[[], str], kubectls: list[Path], tmp_path: Path) -> Session:
    """`session(text, objects, **files)` runs a session with each kubectl and compares the output.

    `objects` are created before; `files` are written as NAME.yaml to the current directory of the commands. In all
    three texts `@ns` is replaced by the session's own namespace.
    """

    def run(text: str, objects: str = "", **files: str) -> None:
        with ThreadPoolExecutor() as threads:
            runs = [threads.submit(run_with, kubectl, new_namespace(), text, objects, files) for kubectl in kubectls]
        differences = [run.result() for run in runs]
        if any(differences):
            pytest.fail("\n".join(differences), pytrace=False)

    def run_with(kubectl: Path, namespace: str, text: str, objects: str, files: Mapping[str, str]) -> str:
        """The first command whose output or status differs, with both outputs; an empty string if none does."""
        directory = tmp_path / namespace
        directory.mkdir()
        if objects:
            server.apply(objects.replace("@ns", namespace))
        for name, content in files.items():
            (directory / f"{name}.yaml").write_text(textwrap.dedent(content).replace("@ns", namespace))
        config = json.loads(server.kubeconfig.read_text())
        config["contexts"][0]["context"]["namespace"] = namespace
        (directory / "kubeconfig").write_text(json.dumps(config))
        environment = {
            "PATH": os.pathsep.join([str(kubectl), *os.get_exec_path()]),
            "HOME": str(directory),
            "TMPDIR": str(directory),
            "KUBECONFIG": "kubeconfig",
            "KUBECACHEDIR": str(kubectl / "cache"),
            "GOGC": "off",  # it ends before that pays
        }
        _, *steps = _STEP.split(textwrap.dedent(text).replace("@ns", namespace))
        for command, result in zip(steps[::2], steps[1::2], strict=True):
            process = subprocess.run(
                ["sh", "-c", command.replace("\n> ", "\n")],
                check=False,
                cwd=directory,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_COMMAND_TIMEOUT,
            )
            status = int(match[1]) if (match := _STATUS.search(result)) else 0
            expected, printed = _trimmed(_STATUS.sub("", result)), _trimmed(process.stdout)
            if process.returncode != status or not _pattern(expected).fullmatch(printed):
                return (
                    f"-- kubectl of the {kubectl.name}:\n$ {command}{printed}[{process.returncode}]\n"
                    f"-- instead of\n{expected}[{status}]"
                )
        return ""

    return run


def _trimmed(text: str) -> str:
    """Remove spaces at the ends of lines and empty lines at the end."""
    return "".join(f"{line.rstrip()}\n" for line in text.rstrip().splitlines())


def _pattern(expected: str) -> re.Pattern[str]:
    lines = (
        r"(?:.*\n)*" if line == "…\n" else r"[^\n]*".join(map(re.escape, line.split("…")))
        for line in expected.splitlines(keepends=True)
    )
    return re.compile("".join(lines))
