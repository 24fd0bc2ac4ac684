"""Bearer tokens in headers: what is one, what is ignored with a warning, what is refused."""

from __future__ import annotations

import base64
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from noxu.security.credentials import (
    EXTRA_SPACE,
    NOT_A_TOKEN,
    PROTOCOL_PREFIX,
    Rejected,
    Token,
    in_authorization,
    in_subprotocol,
    subprotocols,
)
from tests.rows import rows
from tests.timing import cpu_seconds

AUTHORIZATION: list[tuple[str, str, str, list[str]]] = [
    ("none", "", "", []),
    ("a token", "Bearer t", "t", []),
    ("a scheme in any case", "bEARER t", "t", []),
    ("spaces around", "  Bearer t ", "t", []),
    ("a token and more, which is ignored", "Bearer t u v", "t", []),
    ("an extra space", "Bearer  t", "", [EXTRA_SPACE]),
    ("no token", "Bearer", "", [NOT_A_TOKEN]),
    ("another scheme", "Basic dXNlcjpwYXNz", "", [NOT_A_TOKEN]),
    ("no scheme", "t", "", [NOT_A_TOKEN]),
]


def text(token: Token | None) -> str:
    return "" if token is None else token.text


@pytest.mark.parametrize(
    ("header", "token", "warnings"), [row[1:] for row in AUTHORIZATION], ids=[row[0] for row in AUTHORIZATION]
)
def test_authorization(header: str, token: str, warnings: list[str]) -> None:
    found: list[str] = []
    assert text(in_authorization(CIMultiDict({"Authorization": header}), found)) == token
    assert found == warnings


def protocol(token: bytes) -> str:
    return PROTOCOL_PREFIX + base64.urlsafe_b64encode(token).rstrip(b"=").decode()


TOKEN = protocol(b"t")
SUBPROTOCOLS: list[tuple[str, str, str, str]] = [
    ("none", "v4.channel.k8s.io", "", ""),
    ("a token", f"v4.channel.k8s.io, {TOKEN}", "t", ""),
    ("a token that comes first", f"{TOKEN},v4.channel.k8s.io", "t", ""),
    ("an empty one", f"{PROTOCOL_PREFIX},v4", "", ""),
    ("nothing else", TOKEN, "", "missing additional subprotocol"),
    ("spaces around", f" {TOKEN} , v4", "t", ""),
    ("an empty name besides it", f"{TOKEN},", "t", ""),
    ("two", f"{TOKEN},{TOKEN},v4", "", "multiple base64.bearer.authorization tokens specified"),
    ("padding", f"{PROTOCOL_PREFIX}dA==,v4", "", "invalid base64.bearer.authorization token encoding"),
    ("a length that none has", f"{PROTOCOL_PREFIX}d,v4", "", "invalid base64.bearer.authorization token encoding"),
    ("no UTF-8", f"{protocol(bytes([255]))},v4", "", "invalid base64.bearer.authorization token"),
]


@rows(("header", "token", "error"), [row[1:] for row in SUBPROTOCOLS], ids=[row[0] for row in SUBPROTOCOLS])
def test_the_subprotocol_of_a_websocket(header: str, token: str, error: str) -> None:
    headers = CIMultiDict({"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Protocol": header})
    if not error:
        assert text(in_subprotocol(headers)) == token
        return
    with pytest.raises(Rejected) as rejected:
        in_subprotocol(headers)
    assert str(rejected.value) == error


def test_without_a_websocket_its_header_means_nothing() -> None:
    assert in_subprotocol(CIMultiDict({"Sec-WebSocket-Protocol": TOKEN})) is None


def test_half_a_million_subprotocols_cost_little() -> None:
    headers = CIMultiDict({"Upgrade": "websocket", "Connection": "upgrade", "Sec-WebSocket-Protocol": "a," * 450_000})
    assert cpu_seconds(lambda: in_subprotocol(headers)) < cpu_seconds(lambda: list(subprotocols(headers))) / 3


@given(st.text(), st.text())
def test_any_header_is_a_token_or_not(authorization: str, protocols: str) -> None:
    headers = CIMultiDict({"Authorization": authorization, "Upgrade": "websocket", "Connection": "upgrade"})
    headers["Sec-WebSocket-Protocol"] = protocols
    in_authorization(headers, [])
    with contextlib.suppress(Rejected):
        in_subprotocol(headers)
