"""The rules for the modules of the page, which are joined into one."""

from __future__ import annotations

import re
from typing import Final

import pytest

from noxu.console.joined_modules import in_order, joined, library
from noxu.console.page_files import FOLDER

SOURCES: Final = {file.relative_to(FOLDER).as_posix(): file.read_text() for file in FOLDER.rglob("*.js")}
_TOP: Final = re.compile(r"^(?:async )?(?:function\*?|class|const|let|var) (\w+|\{[^}]*\})", re.MULTILINE)


def test_each_module_follows_those_that_it_imports() -> None:
    names = [name for name, _ in in_order(SOURCES)]
    assert names[-1] == "app.js"
    assert names[0] == "vendor/preact.js"
    assert len(set(names)) == len(names)


def test_no_import_and_no_export_is_left() -> None:
    assert re.findall(r"^\s*(?:import|export)\b.*", joined(SOURCES), re.MULTILINE) == []


def top_names() -> list[str]:
    """The names at top level, of all modules."""
    own = re.sub(r"\(\(\) => \{\n.*?\n\}\)\(\);", "", joined(SOURCES), flags=re.DOTALL)
    return [each.strip() for found in _TOP.findall(own) for each in found.strip("{}").split(",")]


def test_a_name_is_at_top_level_once() -> None:
    names = top_names()
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


def test_no_module_renames_what_it_imports() -> None:
    own = [source for name, source in in_order(SOURCES) if not name.startswith("vendor/")]
    assert [
        line
        for source in own
        for line in re.findall(r"^import .*", source, re.MULTILINE)
        if " as " in line or "* " in line
    ] == []


def test_the_short_names_of_a_library_are_its_own() -> None:
    assert library("const a = 1;\nexport{a as b,a};") == (
        "const { b, a } = (() => {\nconst a = 1;\n\nreturn { b: a, a: a };\n})();"
    )


WRONG: Final = [
    ("a module that is not there", {"app.js": 'import { a } from "./b.js";'}, "b.js is imported, and is no file"),
    ("one that imports itself", {"app.js": 'import { a } from "./app.js";'}, "app.js imports itself"),
    ("a text that would end the element", {"app.js": "const a = '</script>';"}, "write it in two pieces"),
]


@pytest.mark.parametrize(("sources", "said"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_cannot_be_joined(sources: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        joined(sources)
