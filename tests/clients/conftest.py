"""One server for all clients; sessions of kubectl, of every version that is there.

A session is what stands on a console: commands after `$ `, what they print, and `[N]` where the exit status is not 0.
`…` stands for anything within a line, alone in a line for any lines.
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

from apiserver.testing.handle import Noxu

Session = Callable[..., None]

_STEP: Final = re.compile(r"^\$ (.*\n(?:> .*\n)*)", re.MULTILINE)
_STATUS: Final = re.compile(r"^\[(\d+)\]\n", re.MULTILINE)
_PATIENCE: Final = 60  # seconds that a command may take

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
            description: What is wanted.
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
    """One server, which knows widgets."""
    with Noxu(tmp_path_factory.mktemp("server"), [WIDGETS]) as server:
        yield server


_numbers = itertools.count(1)


@pytest.fixture
def new_namespace(server: Noxu) -> Callable[[], str]:
    """Makes one that nobody else uses."""

    def made() -> str:
        name = f"test-{next(_numbers)}"
        server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        return name

    return made


@pytest.fixture(scope="session")
def kubectls(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """For each kubectl that is there a directory with it and its cache: that of the system, and that of the wheel."""
    wheel = Path(sys.executable).with_name("kubectl")
    others = os.pathsep.join(folder for folder in os.get_exec_path() if Path(folder) != wheel.parent)
    directories = []
    for name, found in (("system", shutil.which("kubectl", path=others)), ("wheel", shutil.which(wheel))):
        if found:
            directory = tmp_path_factory.mktemp(name)
            (directory / "kubectl").symlink_to(found)
            directories.append(directory)
    if not directories:
        pytest.skip("there is no kubectl here")
    return directories


@pytest.fixture
def session(server: Noxu, new_namespace: Callable[[], str], kubectls: list[Path], tmp_path: Path) -> Session:
    """`session(text, objects, **files)`: the text is what a console shows, with each kubectl.

    `@ns` stands for a namespace that nobody else uses, in the text, in the files and in the objects that are there.
    """

    def held(text: str, objects: str = "", **files: str) -> None:
        with ThreadPoolExecutor() as threads:
            works = [threads.submit(hold, kubectl, new_namespace(), text, objects, files) for kubectl in kubectls]
        told = [work.result() for work in works]
        if any(told):
            pytest.fail("\n".join(told), pytrace=False)

    def hold(kubectl: Path, namespace: str, text: str, objects: str, files: Mapping[str, str]) -> str:
        """What is different from what the console is to show, if anything."""
        here = tmp_path / namespace
        here.mkdir()
        if objects:
            server.apply(objects.replace("@ns", namespace))
        for name, content in files.items():
            (here / f"{name}.yaml").write_text(textwrap.dedent(content).replace("@ns", namespace))
        config = json.loads(server.kubeconfig.read_text())
        config["contexts"][0]["context"]["namespace"] = namespace
        (here / "kubeconfig").write_text(json.dumps(config))
        environment = {
            "PATH": os.pathsep.join([str(kubectl), *os.get_exec_path()]),
            "HOME": str(here),
            "TMPDIR": str(here),
            "KUBECONFIG": "kubeconfig",
            "KUBECACHEDIR": str(kubectl / "cache"),
        }
        _, *steps = _STEP.split(textwrap.dedent(text).replace("@ns", namespace))
        for command, shown in zip(steps[::2], steps[1::2], strict=True):
            ran = subprocess.run(
                ["sh", "-c", command.replace("\n> ", "\n")],
                check=False,
                cwd=here,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_PATIENCE,
            )
            status = int(found[1]) if (found := _STATUS.search(shown)) else 0
            expected, printed = _trimmed(_STATUS.sub("", shown)), _trimmed(ran.stdout)
            if ran.returncode != status or not _pattern(expected).fullmatch(printed):
                return (
                    f"-- kubectl of the {kubectl.name}:\n$ {command}{printed}[{ran.returncode}]\n"
                    f"-- instead of\n{expected}[{status}]"
                )
        return ""

    return held


def _trimmed(text: str) -> str:
    """Without spaces at the ends of lines and empty lines at the end."""
    return "".join(f"{line.rstrip()}\n" for line in text.rstrip().splitlines())


def _pattern(shown: str) -> re.Pattern[str]:
    lines = (
        r"(?:.*\n)*" if line == "…\n" else r"[^\n]*".join(map(re.escape, line.split("…")))
        for line in shown.splitlines(keepends=True)
    )
    return re.compile("".join(lines))
