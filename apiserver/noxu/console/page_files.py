"""The page of the console, `GET /_noxu/` for a browser, and its files, `/_noxu/console/NAME`.

Plain ES modules without a build step: a file is served as it is, from the folder `page` beside this module, and what a browser
runs is all modules as one (`noxu.console.joined_modules`). What is not in
that folder when the server starts to serve the page does not exist. The policy of the page (CSP) lets it load its own files
and ask its own server, and nothing else: no inline script, no eval, no other origin, no frame around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import PurePath
from typing import Final

from noxu.api import errors
from noxu.console.joined_modules import FIRST, joined, sources
from noxu.control.calls import ControlCall, ControlRoute, Download

SCRIPT: Final = "console.js"
"""All modules as one."""
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
    """All files by their names, as they are answered."""
    texts = {**sources(), SCRIPT: joined()}
    return {name: Download(text.encode(), TYPES[PurePath(name).suffix], HEADERS) for name, text in texts.items()}


@cache
def _page() -> Download:
    """With the script that has all modules: a browser asks for it while it reads on."""
    text = sources()["index.html"].replace(f"/_noxu/console/{FIRST}", f"/_noxu/console/{SCRIPT}")
    preload = ("Link", f"</_noxu/console/{SCRIPT}>; rel=modulepreload")
    return Download(text.encode(), TYPES[".html"], (*HEADERS, preload))


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
