"""The console as one file: the page with its style, its modules and the data of a recording, which needs no server and no network.

The policy of the file (CSP) names the hashes of its one script and its one style, and allows nothing else. The data are JSON in a
`<script type="application/json">`, which a browser does not run, with every `<` escaped: no text in them can end it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Final

from noxu.console.page_files import SCRIPT, files
from noxu.values import Object

_STYLE: Final = '<link rel="stylesheet" href="/_noxu/console/style.css">'
_SCRIPT: Final = f'<script type="module" src="/_noxu/console/{SCRIPT}"></script>'
_HEAD: Final = '<meta charset="utf-8">'
_BODY: Final = "<body>"
DATA: Final = "noxu-recording"
"""The id of the element with the data."""


def page(answers: Object, *, asks: bool = False) -> bytes:
    """The file, with what the page would ask a server: answers by their paths. `asks`: it may ask who has served it, too."""
    style, script = _text("style.css"), _text(SCRIPT)
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


def _text(name: str) -> str:
    body = files()[name].body
    assert isinstance(body, bytes)
    return body.decode()
