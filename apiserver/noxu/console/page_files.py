"""The page of the console, `GET /_noxu/` for a browser, and its files, `/_noxu/console/NAME`.

Plain ES modules without a build step: a file is served as it is, from the folder `page` beside this module. What is not in
that folder when the server starts to serve the page does not exist. The policy of the page (CSP) lets it load its own files
and ask its own server, and nothing else: no inline script, no eval, no other origin, no frame around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from noxu.api import errors
from noxu.control.calls import ControlCall, ControlRoute, Download

FOLDER: Final = Path(__file__).with_name("page")
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
    """All files by their names below `page`, such as `vendor/preact.js`, as they are answered. Read once: 100 KB."""
    return {
        file.relative_to(FOLDER).as_posix(): Download(file.read_bytes(), TYPES[file.suffix], HEADERS)
        for file in sorted(FOLDER.rglob("*"))
        if file.suffix in TYPES
    }


@cache
def _page() -> Download:
    """It says which modules it will need, so that a browser asks for all at once, instead of for each when it has read another."""
    modules = [f"</_noxu/console/{name}>; rel=modulepreload" for name in files() if name.endswith(".js")]
    content = files()["index.html"]
    return content._replace(headers=(*content.headers, ("Link", ", ".join(modules))))


async def page(_call: ControlCall) -> Download:
    """The page itself."""
    return _page()


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
