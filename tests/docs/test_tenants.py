"""docs/tenants.md: its blocks are run as they are, against a server, in each language whose toolchain is here.

Nothing is downloaded: they need the standard libraries only. Where a toolchain is absent, its tests are skipped.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from noxu.testing.handle import Noxu
from tests.docs.blocks import blocks, steps
from tests.optional import require_package, require_program
from tests.timing import HANGS_AFTER, eventually

PAGE: Final = "docs/tenants.md"
URL: Final = "http://127.0.0.1:6440"
"""Of the server on the page."""
BLOCKS: Final = [block for block in blocks() if block.page == PAGE]
BUILT_WITHIN: Final = 1200  # seconds: the first build on a machine compiles parts of a standard library


def tenants_of(server: Noxu) -> set[str]:
    with urllib.request.urlopen(f"{server.url}/_noxu/tenants") as answer:
        return {each["name"] for each in json.load(answer)["items"]}


def test_curl_holds_a_tenant(noxu: Noxu) -> None:
    require_program("curl")
    [block] = [block for block in BLOCKS if block.language == "console"]
    [(command, printed)] = steps(block.text)
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command.replace(URL, noxu.url)}"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        made = json.loads(process.stdout.readline())
        assert list(made) == list(json.loads(printed))
        assert tenants_of(noxu) == {made["name"]}
    finally:
        process.kill()
        process.communicate(timeout=HANGS_AFTER)
    eventually(lambda: not tenants_of(noxu))


# -- languages


class Recipe(NamedTuple):
    """`program` is what it needs. `command` makes the command that runs its files, which are in the working directory.

    `ran` is what the output has of each test that has run; `tests` are so many.
    """

    language: str
    program: str
    command: Callable[[Path], Sequence[str]]
    ran: str
    tests: int


def go(folder: Path) -> Sequence[str]:
    (folder / "go.mod").write_text("module widgets\n\ngo 1.21\n")
    formatted = subprocess.run(["gofmt", "-l", "."], check=False, cwd=folder, capture_output=True, text=True)
    assert (formatted.stdout, formatted.stderr) == ("", "")
    return ["go", "test", "-v", "-count=1", "."]


IMPORTS: Final = """
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.stream.IntStream;
"""
MAIN: Final = """
    public static void main(String[] arguments) {
        IntStream.range(0, 2).parallel().forEach(number -> {
            try {
                var test = new WidgetsTest();
                try (var tenant = test.tenant) { test.createsANamespace(); }
                System.out.println("passed");
            } catch (Exception error) { throw new IllegalStateException(error); }
        });
    }

    static void assertEquals(int expected, int found) { if (expected != found) throw new AssertionError(found); }

    @interface Test {}

    @interface AutoClose {}
}
"""


def java(folder: Path) -> Sequence[str]:
    """What JUnit does, without JUnit: it makes the test, runs it, and closes its field."""
    test = folder / "WidgetsTest.java"
    test.write_text(IMPORTS + re.sub(r"\}\s*$", MAIN, test.read_text()))
    compiler = require_program("javac")
    compiled = subprocess.run(
        [compiler, "Tenant.java", "WidgetsTest.java"], check=False, cwd=folder, capture_output=True, text=True
    )
    assert (compiled.returncode, compiled.stdout, compiled.stderr) == (0, "", "")
    return ["java", "-cp", ".", "WidgetsTest"]


def rust(folder: Path) -> Sequence[str]:
    compiled = subprocess.run(
        ["rustc", "--edition", "2021", "-D", "warnings", "--test", "widgets.rs", "-o", "widgets"],
        check=False,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=BUILT_WITHIN,
    )
    assert (compiled.returncode, compiled.stderr) == (0, "")
    return ["./widgets"]


RECIPES: Final = {
    "Go": Recipe("go", "go", go, "--- PASS", 2),
    "Java": Recipe("java", "java", java, "passed", 2),
    "Node": Recipe("js", "node", lambda _: ["node", "--test", "widgets.test.mjs"], "creates a namespace", 2),
    "Rust": Recipe("rust", "rustc", rust, "... ok", 2),
    "Python": Recipe("python", "python", lambda _: [sys.executable, "-m", "unittest", "-v"], "... ok", 1),
}


def written(language: str, folder: Path) -> None:
    """The files of a language on the page."""
    found = [block for block in BLOCKS if block.language == language and block.file]
    assert found
    for block in found:
        (folder / block.file).write_text(block.text)


@pytest.mark.slow
@pytest.mark.timeout(BUILT_WITHIN + 600)
@pytest.mark.parametrize("name", [name for name in RECIPES if name != "Python"])
def test_a_recipe_runs(name: str, tmp_path: Path, noxu: Noxu) -> None:
    check_recipe(RECIPES[name], tmp_path, noxu)


def test_the_recipe_for_python_runs(tmp_path: Path, noxu: Noxu) -> None:
    check_recipe(RECIPES["Python"], tmp_path, noxu)


def check_recipe(recipe: Recipe, folder: Path, server: Noxu) -> None:
    """Its tests run in parallel, each creates the same object in a server of its own, and nothing of these is left."""
    if recipe.program != "python":
        require_program(recipe.program)
    written(recipe.language, folder)
    command = recipe.command(folder)
    ran = subprocess.run(
        command,
        check=False,
        cwd=folder,
        env=os.environ | {"NOXU_URL": server.url, "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
        timeout=BUILT_WITHIN,
    )
    output = ran.stdout + ran.stderr
    assert ran.returncode == 0, output
    assert output.count(recipe.ran) >= recipe.tests, output
    eventually(lambda: not tenants_of(server))
    asked = server.requests("namespaces", verb="create")
    assert asked == []  # all of it was in tenants


IN_PARALLEL: Final = """
import json, urllib.request
import pytest
from test_widgets import new_tenant


@pytest.mark.parametrize("number", range(20))
def test_a_namespace_of_its_own(number):
    with new_tenant() as tenant:
        for name in ("mine", f"mine-{number}"):
            body = json.dumps({"metadata": {"name": name}}).encode()
            request = urllib.request.Request(f"{tenant['url']}/api/v1/namespaces", body)
            request.add_header("Content-Type", "application/json")
            urllib.request.urlopen(request)
        with urllib.request.urlopen(f"{tenant['url']}/api/v1/namespaces") as listed:
            names = {each["metadata"]["name"] for each in json.load(listed)["items"]}
        assert {name for name in names if name.startswith("mine")} == {"mine", f"mine-{number}"}
"""


@pytest.mark.slow
def test_workers_of_xdist_share_a_server(tmp_path: Path, noxu: Noxu) -> None:
    require_package("xdist")
    written("python", tmp_path)
    (tmp_path / "test_parallel.py").write_text(IN_PARALLEL)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "test_parallel.py"],
        check=False,
        cwd=tmp_path,
        env=os.environ | {"NOXU_URL": noxu.url},
        capture_output=True,
        text=True,
        timeout=BUILT_WITHIN,
    )
    assert "20 passed" in ran.stdout, ran.stdout + ran.stderr
    eventually(lambda: not tenants_of(noxu))


# -- the example of the handle


def test_the_example_of_the_handle_passes(noxu: Noxu) -> None:
    [block] = [block for block in BLOCKS if block.language == "python" and not block.file]
    scope: dict[str, Any] = {}
    exec(compile(block.text, PAGE, "exec"), scope)
    scope["test_two_clusters"](noxu)
