"""The site of the documentation has every page, and its links lead where the pages' links lead.

`./site` needs packages that the tests do not have; what its strictness asks for is checked here without them.
`test_docs_references.py` has links and anchors.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from docs.site_hooks import PAGES, moved, titled

ROOT: Final = Path(__file__).parents[2]
# BaseLoader reads the tag of a function in Python as data.
CONFIGURATION: Final[dict[str, Any]] = yaml.load((ROOT / "properdocs.yml").read_text(), yaml.BaseLoader)
_LINK: Final = re.compile(r"\]\(([^)\s:#]+)(?:#[^)\s]*)?\)")


def entries(navigation: object) -> Iterator[str]:
    """The pages of the navigation: its items are paths, or have a title, for a path or for further items."""
    if isinstance(navigation, str):
        yield navigation
    elif isinstance(navigation, dict):
        for value in navigation.values():
            yield from entries(value)
    else:
        assert isinstance(navigation, list)
        for item in navigation:
            yield from entries(item)


def pages() -> dict[str, Path]:
    """The pages of the site: their paths in it, and where they are."""
    docs = ROOT / CONFIGURATION["docs_dir"]
    return {str(path.relative_to(docs)): path for path in docs.rglob("*.md")} | {name: ROOT / name for name in PAGES}


def test_the_navigation_has_every_page_once_and_nothing_else() -> None:
    assert sorted(entries(CONFIGURATION["nav"])) == sorted(pages())


def test_all_checks_are_warnings_and_warnings_are_errors() -> None:
    checks = ("omitted_files", "absolute_links", "unrecognized_links", "anchors")
    assert CONFIGURATION["strict"] == "true"
    assert CONFIGURATION["validation"] == dict.fromkeys(checks, "warn")
    assert (ROOT / "site").read_text().count("--strict") == 2


def test_nothing_is_loaded_from_other_hosts() -> None:
    assert CONFIGURATION["theme"]["font"] == "false"
    assert CONFIGURATION["plugins"] == ["search"]  # `offline` loads a script
    assert [path for path in pages().values() if "```mermaid" in path.read_text()] == []


def test_the_pages_of_the_first_page_are_those_of_the_site() -> None:
    listed = set(_LINK.findall((ROOT / "docs/README.md").read_text()))
    assert {page for page in pages() if "/" not in page and page not in PAGES} - listed == {"README.md"}


def test_the_groups_of_the_first_page_are_those_of_the_navigation() -> None:
    sections = re.findall(r"^## (.*)\n((?:(?!## ).*\n)*)", (ROOT / "docs/README.md").read_text(), re.MULTILINE)
    listed = {title: [page for page in _LINK.findall(text) if "/" not in page] for title, text in sections}
    groups = {title: group for item in CONFIGURATION["nav"] for title, group in item.items()}
    assert list(listed) == ["Tutorial", "How-to", "Reference", "Explanation"]
    assert listed == {title: [page for page in entries(groups[title]) if page not in PAGES] for title in listed}


@pytest.mark.parametrize(
    ("page", "text", "there"),
    [
        ("a.md", "[b](b.md#c)", "[b](b.md#c)"),
        ("a.md", "[c](../CONTRIBUTING.md#style)", "[c](CONTRIBUTING.md#style)"),
        ("a.md", "[`data`](../conformance/recordings)", "`data`"),
        ("decisions/1.md", "[a](../a.md), [c](../../SECURITY.md)", "[a](../a.md), [c](../SECURITY.md)"),
        ("CHANGELOG.md", "[docs/a.md](docs/a.md#b)", "[docs/a.md](a.md#b)"),
        ("CONTRIBUTING.md", "[x](https://x.example/y), [s](SECURITY.md)", "[x](https://x.example/y), [s](SECURITY.md)"),
    ],
    ids=["beside it", "a page outside of docs", "a folder", "in a folder", "from outside of docs", "elsewhere"],
)
def test_a_link_in_the_site(page: str, text: str, there: str) -> None:
    assert moved(text, page) == there


def test_the_name_of_a_file_is_the_title_of_its_block() -> None:
    """A fence with another option than those of the site's extension would be a paragraph."""
    assert titled("```yaml file=crd.yaml\na: 1\n```\n") == '```yaml title="crd.yaml"\na: 1\n```\n'
    fences = [
        line for page in pages().values() for line in re.findall(r"^```.*$", titled(page.read_text()), re.MULTILINE)
    ]
    assert [line for line in fences if not re.fullmatch(r'```(\w+( title="\S+")?)?', line)] == []


def test_every_block_of_code_says_its_language() -> None:
    """`text` for output. A fence opens a block if an even number of them is above it."""
    documents = [*pages().values(), ROOT / "README.md"]
    fences = {path: re.findall(r"^ *(```.*)$", path.read_text(), re.MULTILINE) for path in documents}
    assert [path.name for path, found in fences.items() if found[1::2] != ["```"] * (len(found) // 2)] == []
    assert {path.name: found[::2].count("```") for path, found in fences.items() if "```" in found[::2]} == {}


def test_a_diagram_fits_a_page_on_a_display_of_1366_pixels() -> None:
    """110 characters of the size in site.css. What a program prints may be longer, and is scrolled."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    diagrams = re.findall(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(diagrams) > 3
    assert [line for diagram in diagrams for line in diagram.splitlines() if len(line) > 110] == []


def test_the_site_has_an_icon_and_says_on_its_first_page_what_noxu_is() -> None:
    assert {CONFIGURATION["theme"][name] for name in ("logo", "favicon")} == {"icon.svg"}
    before, _, _ = (ROOT / "docs" / "README.md").read_text().partition("\n## ")
    assert "The Kubernetes API for your CustomResourceDefinitions" in before
    assert "](terminal.svg)" in before


def test_an_unknown_argument_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "installed.txt").write_text((ROOT / "requirements/docs.txt").read_text())
    ran = subprocess.run(
        ["/bin/sh", ROOT / "site", "upload"],
        check=False,
        capture_output=True,
        text=True,
        env={"VENV": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    assert (ran.returncode, ran.stderr) == (2, "site: unknown argument upload: build or serve\n")


def test_the_text_for_language_models_names_pages_that_exist_and_is_short() -> None:
    text = (ROOT / "docs" / "llms.txt").read_text()
    assert [page for page in _LINK.findall(text) if page not in pages()] == []
    assert len(text) < 4_000
