"""The console as one file: the page with its style, its modules and the data of a recording, which needs no server and no network.

The modules are joined into one in the order of their imports, by leaving out lines with `import … from "./x.js"` and the word
`export`. So over all modules of the page a name is at top level once, no export is a default, and no import renames
(`tests/console/test_static_file.py`). A library is a function that is called at once, because its short names are its own.

The policy of the file (CSP) names the hashes of its one script and its one style, and allows nothing else. The data are JSON in a
`<script type="application/json">`, which a browser does not run, with every `<` escaped: no text in them can end it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from noxu.console.page_files import files
from noxu.values import Object

FIRST: Final = "app.js"
_IMPORT: Final = re.compile(r"""^import \{[^}]*\} from "(\./[\w./-]+\.js)";$""", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function|class|const|let)\b)", re.MULTILINE)
_EXPORTED: Final = re.compile(r"^export (?:async )?(?:function|class|const|let) (\w+)", re.MULTILINE)
_LIST: Final = re.compile(r"\bexport ?\{([^}]*)\};?")
_LIBRARIES: Final = "vendor/"
_STYLE: Final = '<link rel="stylesheet" href="/_noxu/console/style.css">'
_SCRIPT: Final = '<script type="module" src="/_noxu/console/app.js"></script>'
_HEAD: Final = '<meta charset="utf-8">'
_BODY: Final = "<body>"
DATA: Final = "noxu-recording"
"""The id of the element with the data."""


def page(answers: Object, *, asks: bool = False) -> bytes:
    """The file, with what the page would ask a server: answers by their paths. `asks`: it may ask who has served it, too."""
    style, script = _text("style.css"), joined()
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src {_hash(script)}",
            f"style-src {_hash(style)}",
            "img-src data:",
            *(["connect-src 'self'"] if asks else []),
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    parts = {
        _HEAD: f'{_HEAD}\n<meta http-equiv="Content-Security-Policy" content="{policy}">',
        _STYLE: f"<style>{style}</style>",
        _SCRIPT: f'<script type="module">{script}</script>',
        _BODY: f'{_BODY}\n<script type="application/json" id="{DATA}">{embedded(answers)}</script>',
    }
    text = _text("index.html")
    # in one pass: no part is looked for in another one, whose texts are anything
    return re.sub("|".join(map(re.escape, parts)), lambda found: parts[found[0]], text).encode()


def embedded(value: Object) -> str:
    """JSON that may stand in an element of a page, whatever it says: in ASCII, without any `<`."""
    return (
        json.dumps(value, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# -- modules -----------------------------------------------------------------------------------------------------------


@cache
def joined() -> str:
    """All modules of the page as one. Raises ValueError for one that breaks the rules."""
    text = "\n".join(library(source) if name.startswith(_LIBRARIES) else _own(source) for name, source in in_order())
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
    found = files().get(name)
    if found is None or not isinstance(found.body, bytes):
        raise ValueError(f"{name} is imported, and is no file of the page")
    return found.body.decode()
