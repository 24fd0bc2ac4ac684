"""What the documentation refers to exists: pages and their sections, files, tests and modules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.rows import rows

ROOT: Final = Path(__file__).parents[2]
DOCUMENTS: Final = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("requirements/*.md")])
BASES: Final = (ROOT, ROOT / "tests", ROOT / "apiserver/noxu", ROOT / "storage/noxu_storage")
_FENCED: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_CODE: Final = re.compile(r"`([^`\n]+)`")
_FILE: Final = re.compile(r"(?<![\w./-])(?:[\w-]+/)+[\w-]+\.(?:py|md|jsonl|json|toml|txt)(?![\w/])")
_FOLDER: Final = re.compile(
    r"(?<![\w./-])(?:tests|apiserver|storage|conformance|benchmarks|docs)(?:/[\w-]+)*(?![\w./-])"
)
_TEST: Final = re.compile(r"\btest_[a-z0-9_]+(?:…|\b)")
_NAME: Final = re.compile(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)`")  # of a module, class, function …; also `Class.method`
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_PLACE: Final = re.compile(r"\b[a-z_]+/[a-z_]+\b")  # a module in a diagram
MAPS: Final = (ROOT / "docs/architecture.md", ROOT / "CONTRIBUTING.md")  # they describe this code, name by name
NO_NAMES: Final = {"utils", "helpers", "elif"}  # what CONTRIBUTING.md says not to write
_MODULE: Final = re.compile(r"python3? -m ((?:benchmarks|conformance|noxu)[\w.]*)")


def prose(document: Path) -> str:
    """A document without its code blocks."""
    return _FENCED.sub("", document.read_text())


def anchors(document: Path) -> set[str]:
    """The anchors of the headings of a document, as GitHub makes them: `## A (b) c` has `a-b-c`."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def missing_links(document: Path) -> Iterator[str]:
    for target in _LINK.findall(prose(document)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        page = (document.parent / path).resolve() if path else document
        if not page.exists() or (anchor and anchor not in anchors(page)):
            yield target


def missing_files(document: Path) -> Iterator[str]:
    for code in _CODE.findall(prose(document)):
        for pattern in (_FILE, _FOLDER):
            for name in pattern.findall(code):
                if not any((base / name).exists() for base in BASES):
                    yield name


@cache
def sources() -> str:
    return "\n".join(path.read_text() for path in sorted((ROOT / "tests").rglob("test_*.py")))


def missing_tests(document: Path) -> Iterator[str]:
    for code in _CODE.findall(prose(document)):
        for name in [] if "/" in code else _TEST.findall(code):
            if f"def {name.removesuffix('…')}{'' if name.endswith('…') else '('}" not in sources():
                yield name


def missing_modules(document: Path) -> Iterator[str]:
    for name in _MODULE.findall(document.read_text()):
        paths = [folder / name.replace(".", "/") for folder in (ROOT, ROOT / "apiserver")]
        if not any(path.with_suffix(".py").exists() or (path / "__main__.py").exists() for path in paths):
            yield name


@rows("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
@pytest.mark.parametrize("missing", [missing_links, missing_files, missing_tests, missing_modules])
def test_everything_that_a_document_refers_to_exists(document: Path, missing: object) -> None:
    assert callable(missing)
    assert list(missing(document)) == []


@cache
def names() -> frozenset[str]:
    """All words in the code, and the names of its files and folders."""
    files = [
        path for folder in ("apiserver", "storage", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")
    ]
    texts = frozenset(word for path in files for word in _WORD.findall(path.read_text()))
    return texts.union(*({path.stem, *path.parent.parts} for path in files))


@pytest.mark.parametrize("document", MAPS, ids=lambda path: path.name)
def test_a_map_names_what_is_in_the_code(document: Path) -> None:
    found = {part for name in _NAME.findall(prose(document)) for part in name.split(".")}
    places = {place for block in _FENCED.findall(document.read_text()) for place in _PLACE.findall(block)}
    assert len(found) > 30
    assert sorted(found - names() - NO_NAMES - {"py", "md", "toml", "txt"}) == []
    assert [
        place
        for place in sorted(places)
        if not any(base.joinpath(place).with_suffix(".py").exists() or base.joinpath(place).exists() for base in BASES)
    ] == []


def test_the_references_are_found() -> None:
    deviations, reliability = ROOT / "docs/deviations.md", ROOT / "docs/reliability.md"
    assert len(_LINK.findall(prose(deviations))) >= 4
    assert len(_TEST.findall(prose(reliability))) >= 15
    assert len(_FILE.findall(prose(reliability))) >= 10
