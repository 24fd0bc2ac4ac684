"""Every example of docs/recipes.md runs, in a project of its own."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.optional import require_package

pytestmark = pytest.mark.slow(every=4)

PAGE = (Path(__file__).parents[2] / "docs/recipes.md").read_text()
_NAMED = re.compile(r"# (\w+\.py)\n")


class Recipe(NamedTuple):
    """An example: its files, and how many of its tests pass."""

    arguments: tuple[str, ...]
    passed: int
    package: str = ""


RECIPES = {
    "kopf": Recipe((), 1, "kopf"),
    "Workloads": Recipe((), 1, "kopf"),
    "unittest": Recipe((), 3),
    "kubernetes": Recipe((), 1, "kubernetes"),
    "kubernetes_asyncio": Recipe((), 1, "kubernetes_asyncio"),
    "kr8s": Recipe((), 1, "kr8s"),
    "lightkube": Recipe((), 1, "lightkube"),
    "xdist": Recipe(("-n", "2"), 8, "xdist"),
}


def sections() -> dict[str, str]:
    """The sections of the page, by title."""
    _, *parts = re.split(r"^## (.+)\n", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    [definition] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (pytester.mkdir("crds") / "widget.yaml").write_text(definition)
    options = "asyncio_mode=auto\nasyncio_default_fixture_loop_scope=function\nnoxu_manifests=crds/\n"
    pytester.makefile(".ini", pytest=f"[pytest]\n{options}")
    return pytester


def write(project: pytest.Pytester, title: str) -> None:
    """Write the files of a section: those that begin with their name, and the test."""
    for block in re.findall(r"```python\n(.*?)```", sections()[title], re.DOTALL):
        named = _NAMED.match(block)
        (project.path / (named[1] if named else "test_recipe.py")).write_text(block)


def test_every_recipe_is_listed() -> None:
    assert list(sections()) == list(RECIPES)


@pytest.mark.slow
@pytest.mark.parametrize("title", RECIPES)
def test_the_recipe(title: str, project: pytest.Pytester) -> None:
    recipe = RECIPES[title]
    if recipe.package:
        require_package(recipe.package)
    write(project, title)
    result = project.runpytest_subprocess(*recipe.arguments)
    result.assert_outcomes(passed=recipe.passed)


@pytest.mark.slow
def test_unittest_needs_no_pytest(project: pytest.Pytester) -> None:
    write(project, "unittest")
    result = project.run(sys.executable, "-W", "error", "-m", "unittest", "-v", "test_recipe")
    result.stderr.fnmatch_lines(["Ran 3 tests in *", "OK"])
