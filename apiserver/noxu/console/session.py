"""The session of a browser: what it needs to change something through `/_noxu/`.

A server without authentication lets every program of its machine do everything. A browser runs programs of other people,
so a web page needs more to change something: the token that `noxu serve` prints with the address of the console.

    http://127.0.0.1:8001/_noxu/#token=K3…      the page takes the token out of the address, and sends it once:
    POST /_noxu/console/session {"token": "K3…"}
    Set-Cookie: noxu-console-8001=K3…; HttpOnly; SameSite=Strict; Path=/_noxu

From then on the browser sends the cookie. `check` refuses a page's request that is not a GET and has none. The filters have
refused pages of other origins before (`noxu.http.filters.CheckOrigin`). A request is a page's if it has one of the headers that only
browsers send. Users who are authenticated need no token: who they are is what counts.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from noxu.api.errors import ApiError
from noxu.config import own_version
from noxu.console.page_files import HEADERS
from noxu.control.arguments import TEXT, Argument
from noxu.control.calls import ControlCall, ControlRoute, Download
from noxu.control.running import Control
from noxu.registry.access import ANONYMOUS, User
from noxu.values import Object

PATH: Final = "/_noxu/console/session"
FREE: Final = (PATH, "/_noxu/console/open", "/_noxu/explain", "/_noxu/schema")
"""What a page may send without the token: it changes nothing."""
OF_BROWSERS: Final = ("Origin", "Sec-Fetch-Site")
"""Headers that no page can set or leave out."""


def check(control: Control, method: str, path: str, headers: Mapping[str, str], user: User) -> None:
    """Raises ApiError Forbidden for a page's request that would change something and lacks the token."""
    if method in ("GET", "HEAD") or path.rstrip("/") in FREE or not any(name in headers for name in OF_BROWSERS):
        return
    if not may_write(control, headers, user):
        raise ApiError(
            403,
            "a web page needs the token to change something: open the address that `noxu serve` prints",
            "Forbidden",
        )


def may_write(control: Control, headers: Mapping[str, str], user: User) -> bool:
    """Whether a page may change something: its user is authenticated, or it has the cookie."""
    return user is not ANONYMOUS or _is_equal(_cookie(control, headers), control.token)


def _cookie(control: Control, headers: Mapping[str, str]) -> str:
    """Its value. By hand: other servers of this machine set cookies, too, and one that is not well-formed hides the rest from http.cookies."""
    pairs = (each.strip().partition("=") for each in headers.get("Cookie", "").split(";"))
    return next((value for name, _, value in pairs if name == cookie_name(control)), "")


def cookie_name(control: Control) -> str:
    """Cookies have no port, so the name has it: several servers run on one machine."""
    return f"noxu-console-{urlsplit(control.server.url).port or 0}"


def _is_equal(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())  # in the same time, however much of it is right


async def begin(call: ControlCall) -> Download:
    """Exchange the token for the cookie. Raises ApiError Forbidden."""
    if not _is_equal(call.body["token"], call.control.token):
        raise ApiError(
            403,
            "this is not the token of this server: it prints one at each start, with the address of the console",
            "Forbidden",
        )
    secure = "; Secure" if call.control.server.url.startswith("https:") else ""
    cookie = f"{cookie_name(call.control)}={call.control.token}; HttpOnly; SameSite=Strict; Path=/_noxu{secure}"
    return Download(b"{}\n", "application/json", (*HEADERS, ("Set-Cookie", cookie)))


async def session(call: ControlCall) -> Object:
    """What the page says about the server, and whether this browser may change something."""
    return {
        "version": own_version(),
        "url": call.control.server.url,
        "user": call.user.name,
        "mayWrite": may_write(call.control, call.headers, call.user),
    }


ROUTES: Final = (
    ControlRoute("GET", PATH, session, "The server, and whether this browser may change something."),
    ControlRoute(
        "POST",
        PATH,
        begin,
        "Exchange the token of the banner for a cookie.",
        body={"token": Argument(TEXT, "what `noxu serve` prints after #token=", required=True)},
    ),
)
