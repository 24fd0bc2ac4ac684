"""The modules of the page, and all of them joined into one: a browser that asks for twenty files shows nothing before the last one.

They are joined in the order of their imports, by leaving out lines with `import … from "./x.js"` and the word
`export`. So over all modules of the page a name is at top level once, no export is a default, and no import renames
(`tests/console/test_static_file.py`). A library is a function that is called at once, because its short names are its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).with_name("page")
SUFFIXES: Final = (".css", ".html", ".js")
FIRST: Final = "app.js"
_IMPORT: Final = re.compile(r"""^import \{[^}]*\} from "(\./[\w./-]+\.js)";$""", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function|class|const|let)\b)", re.MULTILINE)
_EXPORTED: Final = re.compile(r"^export (?:async )?(?:function|class|const|let) (\w+)", re.MULTILINE)
_LIST: Final = re.compile(r"\bexport ?\{([^}]*)\};?")
_LIBRARIES: Final = "vendor/"


@cache
def sources() -> Mapping[str, str]:
    """The files of the page by their names below its folder, such as `vendor/preact.js`. Read once: 200 KB."""
    return {
        file.relative_to(FOLDER).as_posix(): file.read_text("utf-8")
        for file in sorted(FOLDER.rglob("*"))
        if file.suffix in SUFFIXES
    }


@cache
def joined() -> str:
    """All modules of the page as one. Raises ValueError for one that breaks the rules."""
    text = "\n".join(
        f"// {name}\n{library(source) if name.startswith(_LIBRARIES) else _own(source)}" for name, source in in_order()
    )
    if "</script" in text.lower() or "<!--" in text:
        raise ValueError("a module has </script or <!-- in a text, which would end the element: write it in two pieces")
    return text


def in_order() -> list[tuple[str, str]]:
    """The modules that the page imports, and their texts: each after those that it imports."""
    found: dict[str, str] = {}
    _visit(FIRST, found, ())
    return list(found.items())


def _visit(name: str, found: dict[str, str], above: tuple[str, ...]) -> None:
    if name in found:
        return
    if name in above:
        raise ValueError(f"{name} imports itself: {' → '.join([*above, name])}")
    source = _text(name)
    for imported in _IMPORT.findall(source):
        _visit(imported.removeprefix("./"), found, (*above, name))
    found[name] = source


def _own(source: str) -> str:
    return _EXPORT.sub("", _IMPORT.sub("", source))


def library(source: str) -> str:
    """A library as the value of a function: `const { html, render } = (() => { …; return { html: fe, render: M }; })();`."""
    exports = dict(_exports(source))
    body = _EXPORT.sub("", _LIST.sub("", source))
    listed = ", ".join(f"{name}: {value}" for name, value in exports.items())
    return f"const {{ {', '.join(exports)} }} = (() => {{\n{body}\nreturn {{ {listed} }};\n}})();"


def _exports(source: str) -> Iterator[tuple[str, str]]:
    """The names that a module exports, and those that it has for them itself."""
    for name in _EXPORTED.findall(source):
        yield name, name
    for listed in _LIST.findall(source):
        for each in filter(None, (part.strip() for part in listed.split(","))):
            value, _, name = each.partition(" as ")
            yield name or value, value


def _text(name: str) -> str:
    found = sources().get(name)
    if found is None:
        raise ValueError(f"{name} is imported, and is no file of the page")
    return found
