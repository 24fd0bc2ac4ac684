"""The modules of the page joined into one, so that a browser asks for one script instead of for each when it has read another.

They are joined in the order of their imports, by leaving out lines with `import … from "./x.js"` and the word `export`. So over all
modules a name is at top level once, none is that of a global of browsers, no export is a default, and no import renames
(`tests/console/test_joined_modules.py`). A library is a function that is called at once, because its short names are its own.
Pure: `sources` are the texts of modules by their names, such as `vendor/preact.js`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

FIRST: Final = "app.js"
_IMPORT: Final = re.compile(r"""^import \{[^}]*\} from "(\./[\w./-]+\.js)";$""", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function|class|const|let)\b)", re.MULTILINE)
_EXPORTED: Final = re.compile(r"^export (?:async )?(?:function|class|const|let) (\w+)", re.MULTILINE)
_LIST: Final = re.compile(r"\bexport ?\{([^}]*)\};?")
_LIBRARIES: Final = "vendor/"


def joined(sources: Mapping[str, str]) -> str:
    """All modules that the first one needs. Raises ValueError for one that breaks the rules."""
    modules = in_order(sources)
    text = "\n".join(library(source) if name.startswith(_LIBRARIES) else _own(source) for name, source in modules)
    if "</script" in text.lower() or "<!--" in text:
        raise ValueError("a module has </script or <!-- in a text, which would end the element: write it in two pieces")
    return text


def in_order(sources: Mapping[str, str]) -> list[tuple[str, str]]:
    """The modules that the page imports, and their texts: each after those that it imports. Raises ValueError."""
    found: dict[str, str] = {}
    _visit(FIRST, sources, found, ())
    return list(found.items())


def _visit(name: str, sources: Mapping[str, str], found: dict[str, str], above: tuple[str, ...]) -> None:
    if name in found:
        return
    if name in above:
        raise ValueError(f"{name} imports itself: {' → '.join([*above, name])}")
    if name not in sources:
        raise ValueError(f"{name} is imported, and is no file of the page")
    source = sources[name]
    for imported in _IMPORT.findall(source):
        _visit(imported.removeprefix("./"), sources, found, (*above, name))
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
