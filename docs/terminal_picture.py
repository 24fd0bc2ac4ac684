"""Draws docs/terminal.svg, the picture of a terminal session on the first pages.

    python -m docs.terminal_picture

The session is run: a server in memory, kubectl and noxu, in a folder of their own. So the picture shows what the programs
print. Only the port and the folder of the server are replaced by those of a reader. rich draws the text.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

PICTURE: Final = Path(__file__).with_name("terminal.svg")
COLUMNS: Final = 108
TITLE: Final = "noxu: the Kubernetes API for your CRDs"

FILES: Final = {
    "crds/widget.yaml": """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, minimum: 1, default: 1}
              limit: {type: integer}
            x-kubernetes-validations:
            - {rule: "!has(self.limit) || self.size <= self.limit", message: size exceeds the limit}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Limit, type: integer, jsonPath: .spec.limit}
""",
    "widget.yaml": """apiVersion: example.com/v1
kind: Widget
metadata: {name: first}
spec: {limit: 5}
""",
    "typo.yaml": """apiVersion: example.com/v1
kind: Widget
metadata: {name: second}
spec: {limt: 5}
""",
}

SERVE: Final = "noxu serve --memory crds/ &"
COMMANDS: Final = (
    "kubectl create -f widget.yaml",
    "kubectl get widgets",
    """kubectl patch widget first --type merge -p '{"spec": {"size": 9}}'""",
    "noxu explain-write -f crds/ -f typo.yaml",
)

FORMAT: Final = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="A terminal session">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: system-ui, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""rich's own, without the fonts of another host."""

THEME: Final = TerminalTheme(
    (16, 24, 39),
    (226, 232, 240),
    [(30, 41, 59), (248, 113, 113), (74, 222, 128), (250, 204, 21), (96, 165, 250), (192, 132, 252), (45, 212, 191), (203, 213, 225)],
)  # fmt: skip


class Step(NamedTuple):
    """A command as a reader types it, and what it prints, with the escape sequences of colours."""

    command: str
    output: str


def session(programs: Path) -> Iterator[Step]:
    """Run the session with the programs of a folder (`noxu`, `kubectl`). Raises CalledProcessError, OSError."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in FILES.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text)
        environment = {
            "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', '')}",
            "HOME": name,
            "FORCE_COLOR": "1",
            "KUBECONFIG": ".noxu/kubeconfig",
        }
        arguments = [*shlex.split(SERVE.rstrip(" &")), "--port", "0", "--kubeconfig", environment["KUBECONFIG"]]
        with subprocess.Popen(
            arguments, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as server:
            try:
                yield Step(SERVE, _banner(server, folder))
                for command in COMMANDS:
                    ran = subprocess.run(
                        shlex.split(command), cwd=folder, env=environment, check=False,
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                    )  # fmt: skip
                    yield Step(command, ran.stdout)
            finally:
                server.send_signal(signal.SIGTERM)
                server.wait()


def _banner(server: subprocess.Popen[str], folder: Path) -> str:
    """What the server prints until it is ready, with the port and the folder of a reader."""
    assert server.stdout is not None
    lines: list[str] = []
    for line in server.stdout:
        if line.startswith("Press "):
            break
        lines.append(line)
    text = "".join(lines).rstrip() + "\n"
    text = re.sub(r"#token=[\w-]+", "", text)  # another one at each start
    return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:6440", text).replace(str(folder.resolve()), "~/widgets")


def text_of(steps: list[Step]) -> Text:
    """The text of the picture: prompts, commands, output."""
    text = Text()
    for step in steps:
        text.append("$ ", "bold green").append(f"{step.command}\n", "bold")
        text.append_text(Text.from_ansi(step.output.rstrip("\n"))).append("\n\n")
    text.rstrip()
    return text


def drawn(text: Text) -> str:
    """The picture of a text: SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(text, soft_wrap=False, highlight=False)
    return console.export_svg(title=TITLE, theme=THEME, code_format=FORMAT, unique_id="terminal")


def shown(svg: str) -> list[str]:
    """The lines of a picture, without spaces at their ends."""
    lines: dict[str, str] = {}
    for clip, part in re.findall(r'<text [^>]*clip-path="url\(#([^)]*)\)">([^<]*)</text>', svg):
        lines[clip] = lines.get(clip, "") + part
    entities: dict[str, str] = {"&#160;": " ", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'", "&amp;": "&"}
    return [
        re.sub("|".join(entities), lambda found: entities[found[0]], line).rstrip()
        for line in lines.values()
    ]  # fmt: skip


def main(write: Callable[[str], object] = PICTURE.write_text) -> None:
    write(drawn(text_of(list(session(Path(sys.executable).parent)))))


if __name__ == "__main__":
    main()
