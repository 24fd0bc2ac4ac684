"""Tokens of service accounts: what they say, how long they are valid, and that others' are not read."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from noxu.apiserver.security.tokens import ISSUER, Tokens

NOW = datetime(2026, 1, 2, 3, 4, 5, 600_000, tzinfo=UTC)
ACCOUNT = {"metadata": {"name": "robot", "namespace": "ns", "uid": "u-1"}}


def part(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def test_the_claims_of_a_token() -> None:
    tokens = Tokens()
    token = tokens.issue(ACCOUNT, ["a", "b"], 600, NOW)
    assert token.expires == NOW.replace(microsecond=0) + timedelta(seconds=600)
    claims = tokens.read(token.text, NOW)
    assert claims is not None
    assert len(claims.pop("jti")) == 32
    assert claims == {
        "aud": ["a", "b"],
        "iss": ISSUER,
        "sub": "system:serviceaccount:ns:robot",
        "iat": int(NOW.timestamp()),
        "nbf": int(NOW.timestamp()),
        "exp": int(NOW.timestamp()) + 600,
        "kubernetes.io": {"namespace": "ns", "serviceaccount": {"name": "robot", "uid": "u-1"}},
    }


def test_without_audiences_it_is_for_the_server_itself() -> None:
    tokens = Tokens()
    claims = tokens.read(tokens.issue(ACCOUNT, [], 600, NOW).text, NOW)
    assert claims is not None
    assert claims["aud"] == [ISSUER]


def test_no_two_tokens_are_equal() -> None:
    tokens = Tokens()
    assert len({tokens.issue(ACCOUNT, [], 600, NOW).text for _ in range(10)}) == 10


TIMES: list[tuple[str, float, bool]] = [
    ("when it is issued", 0, True),
    ("before it was issued", -1, False),
    ("a second before its end", 598.9, True),
    ("at its end", 599.4, False),
    ("long after", 10_000, False),
]


@pytest.mark.parametrize(("seconds", "valid"), [row[1:] for row in TIMES], ids=[row[0] for row in TIMES])
def test_a_token_is_valid(seconds: float, valid: bool) -> None:
    tokens = Tokens()
    token = tokens.issue(ACCOUNT, [], 600, NOW)
    assert (tokens.read(token.text, NOW + timedelta(seconds=seconds)) is not None) == valid


def test_the_token_of_another_start_is_not_valid() -> None:
    assert Tokens().read(Tokens().issue(ACCOUNT, [], 600, NOW).text, NOW) is None


def forged(how: str) -> str:
    header, claims, signature = TOKENS.issue(ACCOUNT, [], 600, NOW).text.split(".")
    other = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4))) | {"sub": "system:admin"}
    return {
        "nothing": "",
        "no token": "x",
        "dots": "..",
        "no signature": f"{header}.{claims}.",
        "other claims": f"{header}.{part(other)}.{signature}",
        "no algorithm": f"{part({'alg': 'none'})}.{claims}.",
        "another header": f"{part({'alg': 'none'})}.{claims}.{signature}",
        "a shortened signature": f"{header}.{claims}.{signature[:-1]}",
        "a letter outside ASCII": f"{header}.{claims}.{signature}é",
        "a surrogate": f"{header}.{claims}.{signature}\udcff",
    }[how]


TOKENS = Tokens()


@pytest.mark.parametrize(
    "how",
    ["nothing", "no token", "dots", "no signature", "other claims", "no algorithm", "another header",
     "a shortened signature", "a letter outside ASCII", "a surrogate"],
)  # fmt: skip
def test_what_was_not_issued_is_not_read(how: str) -> None:
    assert TOKENS.read(forged(how), NOW) is None
