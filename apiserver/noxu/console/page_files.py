"""The page of the console, `GET /_noxu/` for a browser, and its files, `/_noxu/console/NAME`.

Plain ES modules without a build step: a file is served as it is, from the folder `page` beside this module, and SCRIPT is all
modules in one. What is not in that folder when the server starts to serve the page does not exist. The policy of the page (CSP)
lets it load its own files and ask its own server, and nothing else: no inline script, no eval, no other origin, no frame around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from noxu.api import errors
from noxu.console.joined_modules import joined
from noxu.control.calls import ControlCall, ControlRoute, Download

FOLDER: Final = Path(__file__).with_name("page")
SCRIPT: Final = "page.js"
"""All modules in one: what the page loads."""
POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "form-action 'none'",
    ]
)
HEADERS: Final = (
    ("Cache-Control", "no-cache, private"),  # a server on the same port may be of another version
    ("Content-Security-Policy", POLICY),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("Vary", "Accept"),
    ("X-Content-Type-Options", "nosniff"),
)
TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}


@cache
def files() -> Mapping[str, Download]:
    """All files by their names below `page`, such as `vendor/preact.js`, as they are answered. Read once: 200 KB."""
    found = {
        file.relative_to(FOLDER).as_posix(): file.read_bytes()
        for file in sorted(FOLDER.rglob("*"))
        if file.suffix in TYPES
    }
    found[SCRIPT] = joined({name: body.decode() for name, body in found.items() if name.endswith(".js")}).encode()
    return {name: Download(body, TYPES[Path(name).suffix], HEADERS) for name, body in found.items()}


async def page(_call: ControlCall) -> Download:
    """The page itself."""
    return files()["index.html"]


async def file(call: ControlCall) -> Download:
    """One of its files. Raises ApiError NotFound."""
    return _found(call.path["name"])


async def library(call: ControlCall) -> Download:
    """A library. Raises ApiError NotFound."""
    return _found(f"vendor/{call.path['name']}")


def _found(name: str) -> Download:
    found = files().get(name)  # a key, no path: there is nothing to climb out of
    if found is None:
        raise errors.page_not_found()
    return found


ROUTES: Final = (
    ControlRoute("GET", "/_noxu/", page, "The console, for a browser."),
    ControlRoute("GET", "/_noxu/console/{name}", file, "A file of its page."),
    ControlRoute("GET", "/_noxu/console/vendor/{name}", library, "A library of its page."),
)
