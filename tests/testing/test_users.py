"""Users of a server for a test: their kubeconfigs, and what they are to the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from noxu.commands.api_client import ApiClient, endpoint_from_kubeconfig
from noxu.config import Authentication
from noxu.testing.handle import Noxu
from noxu.testing.users import TestUser
from tests.hostile.raw_http import JSON, Target
from tests.security.handshakes import client_context

REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def whoami(user: TestUser) -> Any:
    client = ApiClient(endpoint_from_kubeconfig(user.kubeconfig))
    reply = client.send("POST", REVIEWS, value={})
    client.close()
    assert reply.value is not None
    return reply.value["status"]["userInfo"]


def test_a_user_over_http(tmp_path: Path) -> None:
    with Noxu(tmp_path) as noxu:
        jane = noxu.user("jane", groups=["a", "b"], uid="7")
        eve = noxu.user("eve")
        assert jane.kubeconfig != eve.kubeconfig
        assert whoami(jane) == {"username": "jane", "uid": "7", "groups": ["a", "b", "system:authenticated"]}
        assert whoami(eve) == {"username": "eve", "groups": ["system:authenticated"]}
        reply = Target(jane.url).send("POST", REVIEWS, b"{}", {"Content-Type": JSON, **jane.headers})
        assert json.loads(reply.body)["status"]["userInfo"]["username"] == "jane"
        assert jane.kubeconfig.stat().st_mode & 0o777 == 0o600
        assert jane.headers["Authorization"].removeprefix("Bearer ") not in repr(jane)
    assert list(tmp_path.iterdir()) == []


def test_a_user_over_tls(tmp_path: Path) -> None:
    with Noxu(tmp_path, tls=True) as noxu:
        jane = noxu.user("jane", groups=["a"])
        assert whoami(jane)["groups"] == ["a", "system:authenticated"]
        assert jane.headers == {}
        assert jane.certificate_authority is not None
        assert jane.certificate is not None
        assert jane.key is not None
        context = client_context(jane.certificate_authority.read_bytes())
        context.load_cert_chain(jane.certificate, jane.key)
        assert Target(jane.url, context).send("GET", "/version").status == 200
        with pytest.raises(ValueError, match="uid"):
            noxu.user("jane", uid="7")


def test_a_user_has_only_the_rights_of_its_roles(tmp_path: Path) -> None:
    with Noxu(tmp_path, authorization_modes=["RBAC"]) as noxu:
        codes = {}
        for user in (noxu.user("jane"), noxu.user("admin", groups=["system:masters"])):
            client = ApiClient(endpoint_from_kubeconfig(user.kubeconfig))
            codes[user.name] = client.send("GET", "/api/v1/secrets").status
            client.close()
        assert codes == {"jane": 403, "admin": 200}


def test_the_kubeconfig_of_the_server_is_that_of_an_administrator(tmp_path: Path) -> None:
    with Noxu(tmp_path, authorization_modes=["RBAC"]) as noxu:
        assert list(json.loads(noxu.kubeconfig.read_text())["users"][0]["user"]) == ["token"]
        assert noxu._server.access() == noxu._server.access()
        client = ApiClient(endpoint_from_kubeconfig(noxu.kubeconfig))
        assert client.send("GET", "/api/v1/secrets").status == 200
        client.close()
    with Noxu(tmp_path, authentication=Authentication(anonymous_auth=False)) as noxu:
        assert list(json.loads(noxu.kubeconfig.read_text())["users"][0]["user"]) == ["token"]
    with Noxu(tmp_path) as noxu:
        assert json.loads(noxu.kubeconfig.read_text())["users"][0]["user"] == {}


@pytest.mark.noxu(tls=True, users=["jane"], profile="envtest")
def test_requests_of_a_user_with_a_certificate_are_selected_by_its_name(noxu: Noxu) -> None:
    assert noxu.requests(user="jane", by_handle=None) == []
    with pytest.raises(ValueError, match=r'no user "jnae" is known; did you mean jane\?'):
        noxu.requests(user="jnae")
