"""The commands of docs/controllers.md run the operators in `projects`, which write the size of widgets into their status.

kopf is a requirement of the tests. The others are skipped unless they were built before, by `cargo build` in `projects/rust`,
which compiles 200 crates, or by `mvn compile exec:help` in `projects/java`: nothing is downloaded here.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

from noxu.testing.handle import Noxu
from tests.docs.blocks import blocks
from tests.optional import needs_platform, require_package, skip_without_program
from tests.timing import HANGS_AFTER, eventually

PROJECTS: Final = Path(__file__).with_name("projects")
BLOCKS: Final = {block.name: block for block in blocks()}
WIDGET: Final = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 2}}


def kopf(folder: Path) -> Path:
    require_package("kopf")
    return shutil.copytree(PROJECTS / "kopf", folder)


def rust(_: Path) -> Path:
    """It runs where it was built: what cargo has made is for that folder."""
    project = PROJECTS / "rust"
    if not shutil.which("cargo") or not (project / "target/debug/widgets").exists():
        skip_without_program("cargo, with tests/docs/projects/rust built")
    return project


def java(folder: Path) -> Path:
    if not shutil.which("mvn") or not (PROJECTS / "java/target/classes").exists():
        skip_without_program("mvn, with tests/docs/projects/java built")
    shutil.copytree(PROJECTS / "java", folder, ignore=shutil.ignore_patterns("target"))
    (folder / ".mvn").mkdir()
    (folder / ".mvn/maven.config").write_text("--offline\n--batch-mode\n")
    return folder


def java_with_workloads(folder: Path) -> Path:
    """The project with the reconciler of the page, which waits for a Deployment."""
    java(folder)
    block, pom = BLOCKS["docs/controllers.md java Webs.java"], folder / "pom.xml"
    (folder / "src/main/java/com/example" / block.file).write_text(block.text)
    pom.write_text(pom.read_text().replace("com.example.Main<", "com.example.Webs<"))
    return folder


class Run(NamedTuple):
    """A block, what prepares its project (and may skip the test), and the message for want of packages.

    `sizes`: those that a widget gets; `nodes`: simulated ones.
    """

    block: str
    project: Callable[[Path], Path]
    absent: str = ""
    sizes: tuple[int, ...] = (2, 3)
    nodes: int | None = None


RUNS: Final = {
    "kopf": Run("docs/controllers.md sh kopf run --standalone --all-namespaces operator.py", kopf),
    "Rust": Run("docs/controllers.md sh cargo run", rust),
    "Java": Run("docs/controllers.md sh mvn compile exec:java", java, "offline mode"),
    "Java, with pods": Run(
        "docs/controllers.md sh mvn compile exec:java", java_with_workloads, "offline mode", sizes=(2,), nodes=3
    ),
}


def definition() -> dict[str, Any]:
    """The definition of widgets in docs/recipes.md."""
    found: dict[str, Any] = yaml.safe_load(BLOCKS["docs/recipes.md yaml apiVersion: apiextensions.k8s.io/v1"].text)
    return found


@pytest.mark.slow
@needs_platform("process groups", present=hasattr(os, "killpg"))
@pytest.mark.parametrize("tls", [False, True], ids=["HTTP", "TLS and RBAC"])
@pytest.mark.parametrize("name", RUNS)
def test_an_operator_runs_as_the_page_says(name: str, tls: bool, tmp_path: Path) -> None:
    run = RUNS[name]
    project = run.project(tmp_path / "project")
    output = tmp_path / "output"
    modes = ["RBAC"] if tls else None
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # kopf is beside this Python
    with Noxu(tmp_path / "data", manifests=[definition()], tls=tls, authorization_modes=modes, nodes=run.nodes) as noxu:
        with output.open("wb") as file:
            process = subprocess.Popen(
                ["/bin/sh", "-c", BLOCKS[run.block].text],
                cwd=project,
                env=os.environ | {"KUBECONFIG": str(noxu.kubeconfig), "PATH": programs, "CARGO_NET_OFFLINE": "true"},
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            noxu.create(WIDGET)
            for size in run.sizes:
                noxu.patch("widgets", "a", {"spec": {"size": size}})
                ended = eventually(lambda size=size: process.poll() is not None or status(noxu) == {"size": size})
                if process.poll() is not None and run.absent and run.absent in output.read_text():
                    skip_without_program(f"{name} with the packages of tests/docs/projects")
                assert ended
                assert process.poll() is None, output.read_text()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(HANGS_AFTER)


def status(noxu: Noxu) -> Any:
    """What the operator has written, without what kopf keeps there."""
    found = noxu.get("widgets", "a").get("status", {})
    return {name: value for name, value in found.items() if name != "kopf"}
