"""Requests with credentials: whose they are, and which are refused."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from conformance.client import Client
from noxu.config import Authentication, Config
from noxu.manifests import loading
from noxu.process.server import Server
from noxu.security.credentials import Rejected
from noxu.testing.handle import Noxu
from tests.http.exchanges import serving_app

CORE: Final = "/api/v1/namespaces/default"
AUTHENTICATION: Final = "/apis/authentication.k8s.io/v1"
ANONYMOUS: Final = {"username": "system:anonymous", "groups": ["system:unauthenticated"]}
MASTER: Final = "admin-token"
DEVELOPER: Final = "developer-token"
TOKENS: Final = f"""\
{MASTER},admin,0,system:masters
{DEVELOPER},dev,1,"g1,g2"
"""


class Reply:
    def __init__(self, code: int, headers: list[tuple[str, str]], text: bytes) -> None:
        self.code, self.headers, self.text = code, headers, text

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def message(self) -> str:
        return str(self.body["message"])

    def header(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]


class Asker:
    """Sends requests, with a bearer token and other headers."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def ask(self, method: str, path: str, body: Any = None, token: str = "", **headers: str) -> Reply:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent |= {"Authorization": f"Bearer {token}"} if token else {}
        sent |= {} if body is None else {"Content-Type": "application/json"}
        return Reply(*self._client.exchange(method, path, None if body is None else json.dumps(body).encode(), sent))

    def whoami(self, token: str = "", **headers: str) -> Any:
        reply = self.ask("POST", f"{AUTHENTICATION}/selfsubjectreviews", {}, token, **headers)
        return reply.body["status"]["userInfo"] if reply.code == 201 else (reply.code, reply.message)

    def review(self, token: str, *audiences: str) -> Any:
        spec = {"token": token, "audiences": list(audiences)}
        return self.ask("POST", f"{AUTHENTICATION}/tokenreviews", {"spec": spec}).body["status"]

    def request_token(self, account: str, spec: Any, metadata: Any = None) -> Reply:
        body = {"metadata": metadata or {}, "spec": spec}
        return self.ask("POST", f"{CORE}/serviceaccounts/{account}/token", body)

    def token(self, account: str, **spec: Any) -> str:
        reply = self.request_token(account, spec)
        assert reply.code == 201, reply.text
        return str(reply.body["status"]["token"])

    def create(self, plural: str, name: str, **more: Any) -> Any:
        path = f"/api/v1/{plural}" if plural == "nodes" else f"{CORE}/{plural}"
        reply = self.ask("POST", path, {"metadata": {"name": name}} | more)
        assert reply.code == 201, reply.text
        return reply.body


@pytest.fixture(scope="module")
def noxu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    directory = tmp_path_factory.mktemp("authentication")
    (directory / "tokens").write_text(TOKENS)
    options = Authentication(token_auth_file=directory / "tokens", service_account_max_token_expiration=7200.0)
    with Noxu(directory, authentication=options) as running:
        yield running


@pytest.fixture(scope="module")
def api(noxu: Noxu) -> Iterator[Asker]:
    with Client(noxu.url) as client:
        yield Asker(client)


@pytest.fixture
def account(api: Asker) -> str:
    """The name of a new service account."""
    return str(api.create("serviceaccounts", f"sa-{uuid.uuid4().hex[:8]}")["metadata"]["name"])


def test_without_credentials_a_request_is_anonymous(api: Asker) -> None:
    assert api.whoami() == ANONYMOUS


def test_a_static_token(api: Asker) -> None:
    assert api.whoami(DEVELOPER) == {"username": "dev", "uid": "1", "groups": ["g1", "g2", "system:authenticated"]}


@pytest.mark.parametrize("path", ["/healthz", "/api/v1/namespaces", "/apis/none.example.com/v1/x", "/x", "/version"])
def test_a_bad_token_is_refused_on_every_path(api: Asker, path: str) -> None:
    reply = api.ask("GET", path, token="nope")
    assert (reply.code, reply.body) == (
        401,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "Unauthorized",
            "reason": "Unauthorized",
            "code": 401,
        },
    )
    assert list(reply.body) == ["kind", "apiVersion", "metadata", "status", "message", "reason", "code"]
    assert reply.header("WWW-Authenticate") == []
    assert reply.header("Cache-Control") == ["no-cache, private"]
    assert reply.header("Content-Type") == ["application/json"]
    assert reply.header("Audit-Id")


def test_the_refusal_has_the_format_that_the_client_accepts(api: Asker) -> None:
    reply = api.ask("GET", "/api/v1/pods", token="nope", Accept="application/yaml")
    assert (reply.header("Content-Type"), reply.text.splitlines()[1]) == (["application/yaml"], b"code: 401")


IGNORED: list[tuple[str, str, str]] = [
    ("Basic", "Basic dTpw", "the provided Authorization header has no bearer token, and is ignored"),
    ("an extra space", f"Bearer  {DEVELOPER}",
     "the provided Authorization header contains extra space before the bearer token, and is ignored"),
]  # fmt: skip


@pytest.mark.parametrize(("header", "warning"), [row[1:] for row in IGNORED], ids=[row[0] for row in IGNORED])
def test_what_is_no_bearer_token_is_ignored_with_a_warning(api: Asker, header: str, warning: str) -> None:
    reply = api.ask("POST", f"{AUTHENTICATION}/selfsubjectreviews", {}, Authorization=header)
    assert reply.body["status"]["userInfo"] == ANONYMOUS
    assert reply.header("Warning") == [f'299 - "{warning}"']


def test_a_token_as_the_subprotocol_of_a_websocket(api: Asker) -> None:
    """It is not one of those from which the server selects."""
    name = "base64url.bearer.authorization.k8s.io."
    opening = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec_WebSocket_Key": base64.b64encode(bytes(16)).decode(),
        "Sec_WebSocket_Version": "13",
        "Host": "127.0.0.1",
        "Origin": "http://127.0.0.1",
    }
    encoded = base64.urlsafe_b64encode(DEVELOPER.encode()).rstrip(b"=").decode()
    for given, code in ((encoded, 101), (encoded[:-2], 401)):
        reply = api.ask(
            "GET",
            "/api/v1/pods?watch=1&timeoutSeconds=1",
            None,
            "",
            **opening,
            Sec_WebSocket_Protocol=f"{name}{given}, v4",
        )
        assert reply.code == code
        assert reply.header("Sec-WebSocket-Protocol") == (["v4"] if code == 101 else [])


# -- tokens of service accounts -----------------------------------------------------------------------------------------


def test_a_token_that_was_requested_is_a_credential(api: Asker, account: str) -> None:
    found = api.whoami(api.token(account))
    assert found["username"] == f"system:serviceaccount:default:{account}"
    assert found["groups"] == ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]
    assert list(found["extra"]) == ["authentication.kubernetes.io/credential-id"]


def test_the_answer_to_a_request_for_a_token(api: Asker, account: str) -> None:
    stored = api.ask("GET", f"{CORE}/serviceaccounts/{account}").body["metadata"]
    body = api.request_token(account, {}).body
    assert {name: body["metadata"][name] for name in ("name", "namespace", "uid")} == {
        name: stored[name] for name in ("name", "namespace", "uid")
    }
    assert (body["spec"]["expirationSeconds"], body["spec"]["audiences"]) == (
        3600,
        ["https://kubernetes.default.svc.cluster.local"],
    )


def test_the_token_of_a_deleted_account(api: Asker, account: str) -> None:
    token = api.token(account)
    api.ask("DELETE", f"{CORE}/serviceaccounts/{account}")
    assert api.whoami(token) == (401, "Unauthorized")
    error = f'[invalid bearer token, serviceaccounts "{account}" not found]'
    assert api.review(token) == {"user": {}, "error": error}


def test_a_token_ends_with_the_pod_to_which_it_is_bound(api: Asker, account: str) -> None:
    pod = api.create("pods", account, spec={"serviceAccountName": account, "containers": [{"name": "c", "image": "i"}]})
    token = api.token(account, boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": account})
    extra = api.whoami(token)["extra"]
    assert extra["authentication.kubernetes.io/pod-uid"] == [pod["metadata"]["uid"]]
    api.ask("DELETE", f"{CORE}/pods/{account}", {"gracePeriodSeconds": 0})
    assert api.whoami(token) == (401, "Unauthorized")


def test_a_token_for_other_audiences_is_no_credential(api: Asker, account: str) -> None:
    token = api.token(account, audiences=["x"])
    assert api.whoami(token) == (401, "Unauthorized")
    status = api.review(token, "x")
    assert (status["authenticated"], status["audiences"]) == (True, ["x"])


def test_the_token_of_a_volume_lives_for_a_year(api: Asker, account: str) -> None:
    api.create("pods", account, spec={"serviceAccountName": account, "containers": [{"name": "c", "image": "i"}]})
    bound = {"kind": "Pod", "apiVersion": "v1", "name": account}
    token = api.token(account, boundObjectRef=bound, expirationSeconds=3607)
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert claims["exp"] - claims["iat"] == 365 * 24 * 3600
    assert claims["kubernetes.io"]["warnafter"] - claims["iat"] == 3607


def test_a_token_for_longer_than_the_server_allows(api: Asker, account: str) -> None:
    reply = api.request_token(account, {"expirationSeconds": 9000})
    assert reply.body["spec"]["expirationSeconds"] == 7200
    assert reply.header("Warning") == ['299 - "requested expiration of 9000 seconds shortened to 7200 seconds"']


POD: Final = {"kind": "Pod", "apiVersion": "v1", "name": "other"}
OTHER_UID: Final = (
    "the UID in the bound object reference (x) does not match the UID in record. The object might have been "
)
REQUESTS: list[tuple[str, Any, Any, int, str]] = [
    ("another name", {"name": "x"}, {}, 422,
     'TokenRequest.authentication.k8s.io "SA" is invalid: metadata.name: Invalid value: "x": must match the service account '
     "name if specified"),
    ("another namespace", {"namespace": "x"}, {}, 422,
     'TokenRequest.authentication.k8s.io "SA" is invalid: metadata.namespace: Invalid value: "x": must match the service '
     "account namespace if specified"),
    ("another uid", {"uid": "x"}, {}, 409,
     'Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "SA": the UID in the token request (x) does not '
     "match the UID of the service account (UID)"),
    ("too short a time", {}, {"expirationSeconds": 599}, 422,
     'TokenRequest.authentication.k8s.io "SA" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a '
     "duration less than 10 minutes"),
    ("a pod that does not exist", {}, {"boundObjectRef": POD | {"name": "none"}}, 404, 'pods "none" not found'),
    ("a pod of another account", {}, {"boundObjectRef": POD}, 400,
     'cannot bind token for serviceaccount "SA" to pod running with different serviceaccount name.'),
    ("another Secret of the name", {}, {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": "x"}}, 409,
     f'Operation cannot be fulfilled on Secret "s": {OTHER_UID}deleted and then recreated'),
    ("a node that does not exist", {}, {"boundObjectRef": {"kind": "Node", "apiVersion": "v1", "name": "none"}}, 404,
     'nodes "none" not found'),
    ("an object of another kind", {}, {"boundObjectRef": {"kind": "X", "apiVersion": "v1", "name": "x"}}, 400,
     "cannot bind token to object of type /v1, Kind=X"),
    ("a pod of another group", {}, {"boundObjectRef": {"kind": "Pod", "apiVersion": "a/v1", "name": "x"}}, 400,
     "cannot bind token to object of type a/v1, Kind=Pod"),
]  # fmt: skip


@pytest.fixture(scope="module")
def bound_objects(api: Asker) -> None:
    api.create("secrets", "s")
    api.create("pods", "other", spec={"containers": [{"name": "c", "image": "i"}]})


@pytest.mark.usefixtures("bound_objects")
@pytest.mark.parametrize(
    ("metadata", "spec", "code", "message"), [row[1:] for row in REQUESTS], ids=[row[0] for row in REQUESTS]
)
def test_a_request_for_a_token_that_is_refused(
    api: Asker, account: str, metadata: Any, spec: Any, code: int, message: str
) -> None:
    uid = api.ask("GET", f"{CORE}/serviceaccounts/{account}").body["metadata"]["uid"]
    reply = api.request_token(account, spec, metadata)
    assert (reply.code, reply.message) == (code, message.replace("SA", account).replace("UID)", f"{uid})"))


def test_names_in_the_body_come_before_the_account(api: Asker) -> None:
    assert api.request_token("none", {}, {"name": "x"}).code == 422
    assert api.request_token("none", {"expirationSeconds": 1}).code == 404


@pytest.mark.usefixtures("bound_objects")
@pytest.mark.parametrize(("kind", "plural"), [("Secret", "secrets"), ("Node", "nodes")])
def test_a_token_bound_to(api: Asker, account: str, kind: str, plural: str) -> None:
    uid = api.create(plural, account)["metadata"]["uid"]
    token = api.token(account, boundObjectRef={"kind": kind, "apiVersion": "v1", "name": account, "uid": uid})
    assert api.whoami(token)["username"] == f"system:serviceaccount:default:{account}"
    api.ask("DELETE", f"/api/v1/nodes/{account}" if plural == "nodes" else f"{CORE}/{plural}/{account}")
    assert api.whoami(token) == (401, "Unauthorized")


# -- a server without anonymous users -----------------------------------------------------------------------------------


def test_without_anonymous_users_every_request_needs_credentials(tmp_path: Any) -> None:
    (tmp_path / "tokens").write_text(TOKENS)
    options = Authentication(token_auth_file=tmp_path / "tokens", anonymous_auth=False)
    with Noxu(tmp_path, authentication=options) as running, Client(running.url) as client:
        api = Asker(client)
        assert [api.ask("GET", path).code for path in ("/healthz", "/version", "/api/v1/pods", "/x")] == [401] * 4
        assert api.ask("GET", "/healthz", token=MASTER).code == 200
        assert api.whoami("", Authorization="Basic dTpw") == (401, "Unauthorized")


# -- impersonation ------------------------------------------------------------------------------------------------------


def test_a_request_as_another_user(api: Asker) -> None:
    found = api.whoami(
        MASTER, Impersonate_User="bob", Impersonate_Group="g", Impersonate_Uid="7", Impersonate_Extra_K="v"
    )
    assert found == {"username": "bob", "uid": "7", "groups": ["g", "system:authenticated"], "extra": {"k": ["v"]}}


def test_a_request_as_a_service_account(api: Asker) -> None:
    groups = ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]
    user = "system:serviceaccount:ns:sa"
    assert api.whoami(MASTER, Impersonate_User=user) == {"username": user, "groups": groups}


def test_groups_without_a_user_are_refused(api: Asker) -> None:
    code, message = api.whoami(MASTER, Impersonate_Group="g")
    assert (code, message) == (
        400,
        'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)} without '
        "impersonating a user name",
    )


def test_bad_credentials_come_before_impersonation(api: Asker) -> None:
    assert api.whoami("nope", Impersonate_Group="g") == (401, "Unauthorized")


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """A server that asks RBAC."""
    directory = tmp_path_factory.mktemp("rbac")
    (directory / "tokens").write_text(TOKENS)
    options = Authentication(token_auth_file=directory / "tokens")
    with (
        Noxu(directory, authentication=options, authorization_modes=("RBAC",)) as running,
        Client(running.url) as client,
    ):
        yield Asker(client)


def test_without_credentials_a_request_is_forbidden_not_unauthorized(strict: Asker) -> None:
    reply = strict.ask("GET", "/api/v1/namespaces")
    assert (reply.code, reply.message) == (
        403,
        'namespaces is forbidden: User "system:anonymous" cannot list resource "namespaces" in API group "" at the cluster '
        "scope",
    )


def test_who_may_not_impersonate_is_refused(strict: Asker) -> None:
    reply = strict.ask("GET", f"{CORE}/pods", token=DEVELOPER, Impersonate_User="bob")
    assert (reply.code, reply.message) == (
        403,
        'pods is forbidden: User "dev" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace '
        '"default"',
    )


def test_who_may_impersonate_has_the_rights_of_the_other_user(strict: Asker) -> None:
    reply = strict.ask("GET", f"{CORE}/pods", token=MASTER, Impersonate_User="bob")
    assert (reply.code, reply.message.split(" in API")[0]) == (
        403,
        'pods is forbidden: User "bob" cannot list resource "pods"',
    )
    groups = {"Impersonate_User": "bob", "Impersonate_Group": "system:masters"}
    assert strict.ask("GET", f"{CORE}/pods", token=MASTER, **groups).code == 200


async def test_the_audit_log_has_the_id_of_the_token_and_not_the_token() -> None:
    async with serving_app() as served:
        path = f"{CORE}/serviceaccounts/a"
        await served.send("POST", f"{CORE}/serviceaccounts", {"metadata": {"name": "a"}})
        reply = await served.send("POST", f"{path}/token", {"spec": {}})
    token = json.loads(reply.text)["status"]["token"]
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    annotations = served.exchanges[-1].outcome.audit_annotations
    assert annotations == {"authentication.kubernetes.io/issued-credential-id": f"JTI={claims['jti']}"}


async def test_tokens_and_their_keys_outlive_the_server(tmp_path: Path) -> None:
    config = Config(port=0, data=tmp_path)
    async with Server(config) as server:
        assert not (tmp_path / "pki" / "sa.key").exists(), "It is made when it is needed."
        account = await loading.apply(
            server.plane, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}}
        )
        token = server.plane.tokens.issue(account, server.plane.tokens.audiences, 3600)
    async with Server(config) as server:
        identity = await server.plane.authenticator.identify(token)
        assert identity.user.name == "system:serviceaccount:default:a"
    (tmp_path / "pki" / "sa.key").unlink()
    async with Server(config) as server:
        with pytest.raises(Rejected, match="invalid signature, no keys found"):
            await server.plane.authenticator.identify(token)
