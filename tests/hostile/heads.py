"""Heads of requests of the largest size in which one part is as long, or has as many pieces, as it can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

SIZE: Final = 900_000
MAPS: Final = "/api/v1/namespaces/default/configmaps"
_BODY: Final = b'{"metadata":{"name":"x"}}'
_UPGRADE: Final = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    "Sec-WebSocket-Version": "13",
    "Origin": "http://127.0.0.1",
}
_MANY: Final = 9_900  # header fields


class Head(NamedTuple):
    """`make` makes the request, which is answered with this status."""

    status: int
    make: Callable[[], bytes]


def _times(piece: str, size: int = SIZE) -> str:
    return piece * (size // len(piece))


def _request(method: str, path: str, headers: dict[str, str] | list[tuple[str, str]], body: bytes = b"") -> bytes:
    fields = [("Host", "127.0.0.1"), *(headers.items() if isinstance(headers, dict) else headers)]
    fields += [("Content-Length", str(len(body)))] if body else []
    unique = fields[1:] if any(name == "Host" for name, _ in fields[1:]) else fields
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in unique)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def get(status: int, path: str = MAPS, /, **headers: str) -> Head:
    """`Sec_Fetch` is the header Sec-Fetch."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return Head(status, lambda: _request("GET", path, given))


def post(status: int, query: str = "", /, **headers: str) -> Head:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return Head(status, lambda: _request("POST", f"{MAPS}?dryRun=All&{query}", given, _BODY))


def many(status: int, name: Callable[[int], str], **headers: str) -> Head:
    """As many header fields as a head may have."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    fields = [(name(n), "v" * 60) for n in range(_MANY)]
    return Head(status, lambda: _request("GET", MAPS, [*given.items(), *fields]))


def upgrade(status: int, **headers: str) -> Head:
    given = _UPGRADE | {name.replace("_", "-"): value for name, value in headers.items()}
    return Head(status, lambda: _request("GET", f"{MAPS}?watch=1&timeoutSeconds=1", given))


_TOKEN: Final = "base64url.bearer.authorization.k8s.io."
HEADS: Final[dict[str, Head]] = {
    "a header that nobody reads": get(200, X=_times("a")),
    "many headers": many(200, lambda n: f"X{n}"),
    "one header many times": many(200, lambda _: "X"),
    "Accept: clauses": get(431, Accept=_times("a/b;q=0.1,")),
    "Accept: commas": get(431, Accept=_times(",")),
    "Accept: parameters": get(431, Accept="a/b" + _times(";a=1")),
    "Accept: of a document": get(431, "/api", Accept=_times("a/b,")),
    "Accept: of an index": get(200, "/openapi/v3", Accept=_times("a/b,")),
    "Accept: of an error": get(404, "/nothing", Accept=_times("a/b,")),
    "Content-Type: parameters": post(431, Content_Type="application/json" + _times(";a=1")),
    "Content-Type: spaces": post(431, Content_Type="application/json;" + _times(" ") + "x"),
    "Content-Type: a quoted text": post(431, Content_Type='application/json;a="' + _times("\\")),
    "Content-Type: of a patch": Head(
        431, lambda: _request("PATCH", f"{MAPS}/x", {"Content-Type": _times("a,")}, _BODY)),
    "query: separators": get(200, f"{MAPS}?{_times('&')}"),
    "query: names": get(200, f"{MAPS}?{_times('a&')}"),
    "query: escapes in many values": get(200, f"{MAPS}?{_times('a=%41&')}"),
    "query: escapes in one value": get(200, f"{MAPS}?a={_times('%41')}"),
    "query: 10,000 parameters": get(200, f"{MAPS}?{'&'.join(f'a{n}={n:080}' for n in range(9_999))}"),
    "path: escapes": get(404, f"/{_times('%41')}"),
    "path: escapes beyond UTF-8": get(404, f"/{_times('%ff')}"),
    "path: escaped slashes": get(200, f"/api/v1/{_times('%2f')}"),
    "path: segments": get(404, f"/api/v1/{_times('a/')}"),
    "path: a name": get(404, f"{MAPS}/{_times('%41')}"),
    "path: a namespace": get(200, f"/api/v1/namespaces/{_times('a')}/pods"),
    "fieldManager": post(422, f"fieldManager={_times('a')}"),
    "fieldManager that cannot be printed": post(422, f"fieldManager={_times('%01')}"),
    "User-Agent that cannot be printed": post(201, User_Agent=_times("\x80")),
    "dryRun": post(422, _times("dryRun=x&", 80_000)),
    "resourceVersion": get(400, f"{MAPS}?resourceVersion={_times('1')}"),
    "resourceVersionMatch": get(422, f"{MAPS}?resourceVersion=1&resourceVersionMatch={_times('a')}"),
    "limit": get(400, f"{MAPS}?limit={_times('1')}"),
    "continue": get(400, f"{MAPS}?continue={_times('YWFh')}"),
    "timeout": get(400, f"{MAPS}?timeout={_times('1h')}"),
    "timeout of digits": get(400, f"{MAPS}?timeout={_times('1')}s"),
    "labelSelector": get(400, f"{MAPS}?labelSelector={_times('a,')}"),
    "fieldSelector": get(400, f"{MAPS}?fieldSelector={_times('metadata.name=a,')}"),
    "Cookie": get(200, Cookie=_times("a=b; ")),
    "Authorization: a token": get(401, Authorization="Bearer " + _times("a.")),
    "Authorization: words": get(200, Authorization=_times("a ")),
    "Impersonate-Group": many(400, lambda _: "Impersonate-Group", Impersonate_User="a"),
    "Impersonate-Extra": many(400, lambda n: f"Impersonate-Extra-a{n}", Impersonate_User="a"),
    "Impersonate-Extra: escapes": Head(
        200, lambda: _request("GET", MAPS, {"Impersonate-User": "a", f"Impersonate-Extra-{_times('%41')}": "a"})),
    "X-Remote-Extra": many(200, lambda n: f"X-Remote-Extra-a{n}"),
    "Accept-Encoding": get(200, Accept_Encoding=_times("a,")),
    "Accept-Encoding: spaces": get(200, Accept_Encoding=_times(" ,")),
    "Range": get(200, Range="bytes=" + _times("1-,")),
    "If-Match": get(200, If_Match=_times('"a",')),
    "If-None-Match": get(200, "/openapi/v3", If_None_Match=_times('"a",')),
    "If-Modified-Since": get(200, "/openapi/v3", If_Modified_Since=_times("Mon ")),
    "Connection": get(200, Connection=_times("a,")),
    "TE": get(200, TE=_times("a,")),
    "Expect": post(417, Expect=_times("a,")),
    "Sec-WebSocket-Protocol: names": upgrade(400, Sec_WebSocket_Protocol=_times("a,")),
    "Sec-WebSocket-Protocol: tokens": upgrade(401, Sec_WebSocket_Protocol=_times(f"{_TOKEN}AA,")),
    "Sec-WebSocket-Protocol: spaces": upgrade(101, Sec_WebSocket_Protocol="," + _times(" ") + _TOKEN),
    "Sec-WebSocket-Key": upgrade(400, Sec_WebSocket_Key=_times("A")),
    "Host: labels": get(403, Host=_times("a.") + "localhost"),
    "Host: an address": get(403, Host=f"[{_times(':')}]"),
    "Origin": get(403, Origin="http://" + _times("a.")),
    "X-Forwarded-For": get(200, X_Forwarded_For=_times("1.2.3.4,")),
    "traceparent": get(200, traceparent="00-" + _times("a")),
    "Audit-ID": get(200, Audit_ID=_times("a")),
    "a whole URL": get(403, "http://" + _times("a.") + "/"),
}  # fmt: skip
