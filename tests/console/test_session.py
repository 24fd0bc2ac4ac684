"""What a web page may do, and the files that it gets."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import pytest

from noxu import Noxu
from noxu.console.page_files import FOLDER, POLICY, SCRIPT, files
from noxu.values import Object
from tests.rows import rows


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def value(self) -> Any:
        return json.loads(self.body)


@pytest.fixture(scope="module")
def server(noxu_module: Noxu) -> Noxu:
    return noxu_module


def ask(server: Noxu, method: str, path: str, headers: Mapping[str, str], body: Object | None = None) -> Reply:
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), dict(headers))
        answer = connection.getresponse()
        return Reply(answer.status, dict(answer.headers), answer.read().decode())
    finally:
        connection.close()


def token(server: Noxu) -> str:
    return str(server._runner.server.control.token)


HTML: Final = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@rows(
    "path, headers, status, content_type",
    [
        ("/_noxu/", HTML, 200, "text/html; charset=utf-8"),
        ("/_noxu", HTML, 200, "text/html; charset=utf-8"),
        ("/_noxu/", {"Accept": "*/*"}, 200, "application/json"),
        ("/_noxu/", {}, 200, "application/json"),
        ("/_noxu/clock", HTML, 200, "application/json"),
        ("/_noxu/console/app.js", {}, 200, "text/javascript; charset=utf-8"),
        ("/_noxu/console/style.css", {}, 200, "text/css; charset=utf-8"),
        ("/_noxu/console/vendor/preact.js", {}, 200, "text/javascript; charset=utf-8"),
        ("/_noxu/console/vendor/LICENCES.txt", {}, 404, "text/plain; charset=utf-8"),
        ("/_noxu/console/..%2f__init__.py", {}, 404, "application/json"),
        ("/_noxu/console/nothing.js", {}, 404, "text/plain; charset=utf-8"),
    ],
)
def test_a_path_answers(server: Noxu, path: str, headers: Mapping[str, str], status: int, content_type: str) -> None:
    reply = ask(server, "GET", path, headers)
    assert (reply.status, reply.headers["Content-Type"]) == (status, content_type)


def test_the_page_loads_and_asks_nothing_but_its_server(server: Noxu) -> None:
    reply = ask(server, "GET", "/_noxu/", HTML)
    assert reply.headers["Content-Security-Policy"] == POLICY
    assert "unsafe" not in POLICY
    assert "://" not in POLICY
    assert "<script>" not in reply.body
    assert "style=" not in reply.body


def test_the_page_asks_for_one_script(server: Noxu) -> None:
    """A browser has it at once, and need not read one module to learn of another."""
    page = ask(server, "GET", "/_noxu/", HTML).body
    assert re.findall(r"<script[^>]* src=\"([^\"]*)\"", page) == [f"/_noxu/console/{SCRIPT}"]
    assert not re.search(r"^import ", ask(server, "GET", f"/_noxu/console/{SCRIPT}", {}).body, re.MULTILINE)


def test_every_file_of_the_page_is_served() -> None:
    names = {file.relative_to(FOLDER).as_posix() for file in FOLDER.rglob("*") if file.is_file()}
    assert names - {*files()} == {"vendor/LICENCES.txt"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 201),  # a program
        ({"Origin": "{url}"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 403),
        ({"Origin": "{url}", "Cookie": "{name}=wrong"}, 403),
        ({"Origin": "{url}", "Cookie": "other={token}"}, 403),
        ({"Origin": "{url}", "Cookie": "{name}={token}"}, 201),
        ({"Origin": "{url}", "Cookie": "a=b; {name}={token}"}, 201),
        ({"Origin": "{url}", "Cookie": 'of another server={{"a":1}}; {name}={token}'}, 201),
        ({"Origin": "http://example.com", "Cookie": "{name}={token}"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Cookie": "{name}={token}"}, 403),
        ({"Origin": "{url}", "Cookie": '{name}="'}, 403),
    ],
)
def test_a_page_needs_the_token_to_change_something(server: Noxu, headers: Mapping[str, str], status: int) -> None:
    name = f"noxu-console-{urlsplit(server.url).port}"
    known = {"url": server.url, "token": token(server), "name": name}
    sent = {key: value.format(**known) for key, value in headers.items()}
    assert ask(server, "POST", "/_noxu/snapshots", {**sent, "Content-Type": "application/json"}, {}).status == status


def test_the_token_is_exchanged_for_a_cookie(server: Noxu) -> None:
    own = {"Origin": server.url, "Content-Type": "application/json"}
    path = "/_noxu/console/session"
    assert ask(server, "POST", path, own, {"token": "wrong"}).status == 403
    assert ask(server, "GET", path, own).value["mayWrite"] is False
    reply = ask(server, "POST", path, own, {"token": token(server)})
    cookie, *attributes = reply.headers["Set-Cookie"].split("; ")
    assert attributes == ["HttpOnly", "SameSite=Strict", "Path=/_noxu"]
    assert ask(server, "GET", path, {**own, "Cookie": cookie}).value["mayWrite"] is True


def test_who_is_authenticated_needs_no_token() -> None:
    from noxu.console.session import may_write
    from noxu.registry.access import ANONYMOUS, User

    class OfServer:
        class server:  # noqa: N801
            url = "http://127.0.0.1:1"

        token = "t"

    assert may_write(OfServer, {}, User("jane"))  # type: ignore[arg-type]
    assert not may_write(OfServer, {}, ANONYMOUS)  # type: ignore[arg-type]
