"""The documents by which others verify tokens of service accounts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jwt
import pytest

from noxu.config import Authentication
from noxu.testing.handle import Noxu
from tests.hostile.raw_http import JSON, Reply, Target

CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/openid/v1/jwks"
ISSUER = "https://kubernetes.default.svc.cluster.local"
CACHED = "public, max-age=3600"


@pytest.fixture(scope="module")
def noxu(noxu_session: Noxu) -> Noxu:
    return noxu_session


def get(noxu: Noxu, path: str) -> Reply:
    return Target.of(noxu).send("GET", path)


def test_the_configuration(noxu: Noxu) -> None:
    reply = get(noxu, CONFIGURATION)
    assert (reply.status, reply.headers["Content-Type"], reply.headers["Cache-Control"]) == (
        200,
        "application/json",
        CACHED,
    )
    body = json.loads(reply.body)
    assert list(body.items()) == [
        ("issuer", ISSUER),
        ("jwks_uri", f"{noxu.url}{KEYS}"),
        ("response_types_supported", ["id_token"]),
        ("subject_types_supported", ["public"]),
        ("id_token_signing_alg_values_supported", ["ES256"]),
    ]


def test_the_keys_verify_a_token(noxu: Noxu) -> None:
    reply = get(noxu, KEYS)
    assert (reply.status, reply.headers["Content-Type"], reply.headers["Cache-Control"]) == (
        200,
        "application/jwk-set+json",
        CACHED,
    )
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    made: Any = Target.of(noxu).send("POST", path, b'{"spec": {"audiences": ["me"]}}', {"Content-Type": JSON}).json
    token = made["status"]["token"]
    keys = {key["kid"]: key for key in json.loads(reply.body)["keys"]}
    key = keys[jwt.get_unverified_header(token)["kid"]]
    assert list(key) == ["use", "kty", "kid", "crv", "alg", "x", "y"]
    claims = jwt.decode(token, jwt.PyJWK(key), algorithms=["ES256"], audience="me", issuer=ISSUER)
    assert claims["sub"] == "system:serviceaccount:default:default"


def test_they_are_among_the_paths(noxu: Noxu) -> None:
    assert {CONFIGURATION, KEYS} <= set(get(noxu, "/").json["paths"])
    assert get(noxu, f"{KEYS}/").status == 200
    assert Target.of(noxu).send("POST", KEYS, b"{}").status == 405


def test_the_keys_may_be_elsewhere(tmp_path: Path) -> None:
    options = Authentication(
        service_account_jwks_uri="https://keys.example/jwks", service_account_issuers=("https://i.example",)
    )
    with Noxu(tmp_path, authentication=options) as running:
        body = get(running, CONFIGURATION).json
        assert (body["issuer"], body["jwks_uri"]) == ("https://i.example", "https://keys.example/jwks")


def test_an_issuer_that_is_no_https_url_has_no_documents(tmp_path: Path) -> None:
    with Noxu(tmp_path, authentication=Authentication(service_account_issuers=("kubernetes",))) as running:
        assert [get(running, path).status for path in (CONFIGURATION, KEYS)] == [404, 404]


OPTIONS: list[tuple[str, Authentication, str]] = [
    ("keys without https", Authentication(service_account_jwks_uri="http://x"),
     "service-account-jwks-uri requires https scheme, parsed as: http://x"),
    ("an empty issuer", Authentication(service_account_issuers=("",)), "--service-account-issuer: must not be empty"),
    ("a token file that does not exist", Authentication(token_auth_file=Path("/none")),
     "--token-auth-file /none: No such file or directory"),
    ("a key file that does not exist", Authentication(service_account_key_files=(Path("/none"),)),
     "--service-account-key-file /none: No such file or directory"),
    ("a key file without keys", Authentication(service_account_signing_key_file=Path("/dev/null")),
     "--service-account-signing-key-file /dev/null: data does not contain a valid RSA or ECDSA private key"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), [row[1:] for row in OPTIONS], ids=[row[0] for row in OPTIONS])
def test_a_server_does_not_start_with(tmp_path: Path, options: Authentication, message: str) -> None:
    from noxu.config import StartError

    with pytest.raises(StartError) as error:
        Noxu(tmp_path, authentication=options).start()
    assert str(error.value) == message
