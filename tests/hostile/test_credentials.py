"""Credentials and names of users that clients make up: refused, never a bug."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from noxu.testing.handle import Noxu
from tests.hostile.raw_http import Target

ISSUER = "https://kubernetes.default.svc.cluster.local"


@pytest.fixture(scope="module")
def noxu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    with Noxu(tmp_path_factory.mktemp("credentials"), authorization_modes=["RBAC"]) as running:
        yield running


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
claims = st.dictionaries(st.sampled_from(["aud", "exp", "nbf", "sub", "kubernetes.io"]), json_values)
tokens = st.builds(
    lambda header, payload, signature: f"{part(header)}.{part({'iss': ISSUER} | payload)}.{signature or 'A'}",
    st.dictionaries(st.sampled_from(["alg", "kid", "crit", "typ", "b64"]), json_values),
    claims,
    st.text(alphabet="ABab01-_", max_size=90),
)
header_texts = st.text(
    st.characters(min_codepoint=33, max_codepoint=255, exclude_characters="\x7f\x85\xa0"), min_size=1
)


@given(tokens | header_texts)
@example(f"{part({'alg': 'none'})}.{part({'iss': ISSUER})}.A")
@example(f"{part({'alg': 'ES256', 'kid': ''})}.{part({'iss': ISSUER})}.{'A' * 86}")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_token_that_was_made_up_is_refused(target: Target, caplog: pytest.LogCaptureFixture, token: str) -> None:
    caplog.set_level(logging.WARNING)
    answer = target.send("GET", "/api/v1/namespaces", headers={"Authorization": f"Bearer {token}"})
    assert (answer.status, answer.message) == (401, "Unauthorized")
    assert caplog.records == []


@given(
    st.dictionaries(
        st.sampled_from(["User", "Group", "Uid", "Extra-a", "Extra-%2F", "Extra-acme.com%2Fa"]), header_texts
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_impersonation_by_an_anonymous_user_is_refused(
    target: Target, caplog: pytest.LogCaptureFixture, named: dict[str, str]
) -> None:
    caplog.set_level(logging.WARNING)
    headers = {f"Impersonate-{name}": value for name, value in named.items()}
    answer = target.send("GET", "/api/v1/namespaces", headers=headers)
    assert answer.status == (403 if "User" in named or not named else 400)
    assert caplog.records == []
