"""`POST /_noxu/users`: credentials of another user, and who may make them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from noxu.commands.api_client import ApiClient, ServerReply, endpoint_from_kubeconfig
from noxu.testing.handle import MakeNoxu, Noxu
from noxu.values import Object
from tests.rows import rows

REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def sent(kubeconfig: Path, method: str, path: str, value: Object | None = None) -> ServerReply:
    client = ApiClient(endpoint_from_kubeconfig(kubeconfig))
    try:
        return client.send(method, path, value=value)
    finally:
        client.close()


def made(kubeconfig: Path, **wanted: Any) -> ServerReply:
    return sent(kubeconfig, "POST", "/_noxu/users", wanted)


@pytest.mark.parametrize("tls", [False, True], ids=["a token over HTTP", "a certificate over TLS"])
def test_a_user_has_a_kubeconfig(make_noxu: MakeNoxu, tmp_path: Path, tls: bool) -> None:
    noxu = make_noxu(tls=tls)
    reply = made(noxu.kubeconfig, name="jane", groups=["a", "b"])
    assert reply.status == 201
    assert reply.value is not None
    file = tmp_path / "jane"
    file.write_text(reply.value.pop("kubeconfig"))
    assert reply.value == {"name": "jane", "uid": "", "groups": ["a", "b"], "url": noxu.url}
    [user] = json.loads(file.read_text())["users"]
    assert set(user["user"]) == ({"client-certificate-data", "client-key-data"} if tls else {"token"})
    whoami = sent(file, "POST", REVIEWS, {}).value
    assert whoami is not None
    assert whoami["status"]["userInfo"]["username"] == "jane"
    assert whoami["status"]["userInfo"]["groups"] == ["a", "b", "system:authenticated"]


@rows(
    "tls, wanted, message",
    [
        (False, {}, "the body is invalid: name: it is required"),
        (False, {"name": ""}, "the body is invalid: name: a user has a name"),
        (False, {"name": "a", "group": ["b"]}, "did you mean groups?"),
        (False, {"name": "a", "groups": ["system:master"]}, "did you mean system:masters?"),
        (True, {"name": "a", "uid": "7"}, "the body is invalid: the certificates of users have no uid"),
        (True, {"name": "a" * 100}, "the body is invalid: "),
    ],
)
def test_what_no_user_can_be_is_refused(tls: bool, wanted: Object, message: str) -> None:
    with Noxu(tls=tls) as noxu:
        reply = made(noxu.kubeconfig, **wanted)
        assert reply.status == 422
        assert message in reply.message


def test_who_makes_credentials_may_impersonate_their_user(make_noxu: MakeNoxu) -> None:
    noxu = make_noxu(authorization_modes=["RBAC"], users={"root": ["system:masters"], "helper": []})
    rules = [
        {"nonResourceURLs": ["/_noxu/*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"]},
        {"apiGroups": [""], "resources": ["groups"], "resourceNames": ["developers"], "verbs": ["impersonate"]},
    ]
    group = "rbac.authorization.k8s.io"
    noxu.apply(
        {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": "helper"}, "rules": rules},
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "helper"},
            "subjects": [{"kind": "User", "name": "helper", "apiGroup": group}],
            "roleRef": {"kind": "ClusterRole", "name": "helper", "apiGroup": group},
        },
    )
    root, helper = (noxu.users[name].kubeconfig for name in ("root", "helper"))
    assert made(root, name="jane", groups=["system:masters"]).status == 201
    assert made(helper, name="jane", groups=["developers"]).status == 201
    refused = made(helper, name="jane", groups=["system:masters"])
    assert refused.status == 403
    assert 'User "helper" cannot impersonate' in refused.message
