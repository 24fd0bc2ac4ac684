"""docs/http.md is the page that the code makes, and a server answers as it says."""

from __future__ import annotations

import http.client
import json
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from docs import http_page
from docs.http_page import PAGE, PATHS, REFUSED, page
from noxu import Noxu
from tests.definitions import widgets

DEFINITION: Final = widgets()
WIDGETS: Final = "/apis/example.com/v1/namespaces/default/widgets"
JSON: Final = {"Content-Type": "application/json"}
GADGET: Final = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a"}}


@pytest.fixture(scope="module")
def server(noxu_module: Noxu) -> Noxu:
    noxu_module.apply(DEFINITION)
    return noxu_module


def ask(
    server: Noxu, method: str, path: str, headers: dict[str, str] | None = None, body: Any = None
) -> tuple[int, str]:
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@pytest.mark.slow
def test_the_page_is_that_of_the_code() -> None:
    assert PAGE.read_text() == page(), "python -m docs.http_page"


@pytest.mark.parametrize(
    ("table", "row", "message"),
    [
        ("STATUSES", (410, "Expired"), r"statuses: not in a table \[\(410, 'Expired'\)\]"),
        ("REQUEST_HEADERS", "Expect", r"headers: not in a table \['Expect'\]"),
        ("PARAMETERS", "includeObject", r"parameters: not in a table \['includeObject'\]"),
    ],
)
def test_what_the_code_has_and_no_table_is_an_error(
    monkeypatch: pytest.MonkeyPatch, table: str, row: object, message: str
) -> None:
    monkeypatch.delitem(getattr(http_page, table), row)
    with pytest.raises(ValueError, match=message):
        page()


def test_a_row_that_the_code_does_not_have_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(http_page.REQUEST_HEADERS, "X-Nothing", "")
    with pytest.raises(ValueError, match=r"headers: not in a table \[\], not in the code \['X-Nothing'\]"):
        page()


def test_the_paths_that_a_server_lists_are_on_the_page(server: Noxu) -> None:
    _, text = ask(server, "GET", "/")
    checks = ("/livez/", "/readyz/", "/healthz/")
    listed = {path for path in json.loads(text)["paths"] if not path.startswith(("/apis/", *checks))}
    assert listed - PATHS.keys() == set()


@pytest.mark.parametrize("path", [path for path in PATHS if "openid" not in path])
def test_a_path_of_the_page_exists(server: Noxu, path: str) -> None:
    names = {"GROUP": "example.com", "VERSION": "v1", "CHECK": "ping", "MOMENT": "now", "PATH": "version"}
    for placeholder, name in names.items():
        path = path.replace(placeholder, name)
    assert ask(server, "GET", path)[0] == 200


@pytest.mark.parametrize(
    ("row", "method", "path", "headers", "body"),
    [
        ("an object of a namespaced resource without its namespace", "GET", "/apis/example.com/v1/widgets/a", {}, None),
        ("PUT, PATCH or DELETE of a built-in collection that does not have it", "PUT", "/api/v1/namespaces", JSON, {}),
        ("a body of another kind, for a custom resource", "POST", WIDGETS, JSON, GADGET),
        ("a body of another kind, for a built-in one", "POST", "/api/v1/namespaces", JSON, GADGET),
        ("protobuf in the body for a custom resource", "POST", WIDGETS,
         {"Content-Type": "application/vnd.kubernetes.protobuf"}, {}),
        ("a watch that accepts YAML only", "GET", f"{WIDGETS}?watch=1", {"Accept": "application/yaml"}, None),
        ("strategic merge patches of custom resources", "PATCH", f"{WIDGETS}/a",
         {"Content-Type": "application/strategic-merge-patch+json"}, {}),
        ("a patch without `Content-Type`", "PATCH", f"{WIDGETS}/a", {}, {}),
        ("other transfer encodings than `chunked`", "POST", WIDGETS, JSON | {"Transfer-Encoding": "gzip, chunked"}, None),
        ("web pages of other sites", "GET", "/version", {"Origin": "https://example.com"}, None),
        ("without TLS, other names in `Host`", "GET", "/version", {"Host": "example.com"}, None),
    ],
)  # fmt: skip
def test_what_is_refused(server: Noxu, row: str, method: str, path: str, headers: dict[str, str], body: Any) -> None:
    assert ask(server, method, path, headers, body)[0] == int(REFUSED[row][:3])
