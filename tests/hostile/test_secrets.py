"""The content of Secrets and of credentials is in no log (S22)."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from noxu.registry.access import User
from noxu.registry.persistence import Persistence
from noxu.security.credentials import Token
from noxu.testing.handle import Noxu
from noxu_storage.types import StoreError
from tests.hostile.raw_http import JSON, Target

CANARY = "canary-4711"
SECRETS = "/api/v1/namespaces/default/secrets"
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"password": CANARY}}


@pytest.fixture(scope="module")
def noxu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    with Noxu(tmp_path_factory.mktemp("secrets")) as running:
        yield running


HEADERS = ("X-Remote-User", "X-Remote-Group", "X-Remote-Extra-Scopes")

REQUESTS = {
    "a create": ("POST", SECRETS, SECRET),
    "a create that is refused": ("POST", SECRETS, SECRET | {"type": 5}),
    "an invalid one": ("POST", SECRETS, SECRET | {"metadata": {"name": "A!"}}),
    "a broken body": ("POST", SECRETS, None),
    "a read": ("GET", f"{SECRETS}/a", None),
    "a bearer token that is good": ("GET", SECRETS, None),
    "a bearer token that is bad": ("GET", SECRETS, None),
}


@pytest.mark.parametrize(
    "bug", [None, RuntimeError("planned"), StoreError("planned")], ids=["works", "a bug", "storage fails"]
)
@pytest.mark.parametrize("name", REQUESTS)
def test_no_log_has_the_content_of_a_secret(
    noxu: Noxu,
    target: Target,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    bug: Exception | None,
) -> None:
    caplog.set_level(logging.DEBUG)
    if bug is not None:

        async def fail(*_: object, **__: object) -> None:
            raise bug

        monkeypatch.setattr(Persistence, "create", fail)
    method, path, value = REQUESTS[name]
    body = json.dumps(value).encode() if value else f'{{"stringData": {{"a": "{CANARY}"'.encode()
    users = noxu._server.plane.static_tokens._users
    users.clear()
    if name != "a bearer token that is bad":
        users[Token(CANARY).digest] = User("canary")
    headers = {"Content-Type": JSON, "Authorization": f"Bearer {CANARY}"} | dict.fromkeys(HEADERS, CANARY)
    answer = target.send(method, path, None if method == "GET" else body, headers)
    assert (answer.status == 401) == (name == "a bearer token that is bad")
    if bug is not None and name == "a create":
        assert answer.status == 500
        assert caplog.records
    formatted = [logging.Formatter().format(record) for record in caplog.records]
    assert not [text for text in formatted if CANARY in text]
