"""`/_noxu/at/MOMENT/…` over HTTP: what it reads, what it refuses, and who may. See test_past_law for what it shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from conformance.client import Client
from noxu.go.time import format_time
from noxu.testing.handle import MakeNoxu, Noxu
from noxu.values import Object
from tests import definitions
from tests.clocks import START, ManualClock
from tests.http.test_auditing import audited
from tests.timing import eventually

MAPS: Final = "/api/v1/namespaces/default/configmaps"
SECRETS: Final = "/api/v1/namespaces/default/secrets"
TABLE: Final = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


class Sent(NamedTuple):
    code: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)


def send(url: str, method: str, path: str, headers: dict[str, str] | None = None, body: Any = None) -> Sent:
    with Client(url) as client:
        sent = None if body is None else json.dumps(body).encode()
        code, received, text = client.exchange(method, path, sent, headers or {})
        return Sent(code, dict(received), text)


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture(scope="module")
def server() -> Iterator[Noxu]:
    with Noxu() as noxu:
        yield noxu


@pytest.fixture(scope="module")
def then(server: Noxu) -> int:
    """A revision at which there was one ConfigMap, which has changed since then. Another one was added."""
    revision = int(server.apply(config_map("a", k="1"))[0]["metadata"]["resourceVersion"])
    server.apply(config_map("a", k="2"), config_map("b", k="3"))
    return revision


def names(sent: Sent) -> list[str]:
    return [item["metadata"]["name"] for item in sent.value["items"] if item["metadata"]["name"] != "kube-root-ca.crt"]


def test_an_object_and_a_list_are_as_they_were(server: Noxu, then: int) -> None:
    at = f"/_noxu/at/{then}"
    shown = send(server.url, "GET", f"{at}{MAPS}/a")
    assert shown.value["data"] == {"k": "1"}
    assert shown.value["metadata"]["resourceVersion"] == str(then)
    listed = send(server.url, "GET", f"{at}{MAPS}")
    assert (names(listed), listed.value["metadata"]["resourceVersion"]) == (["a"], str(then))
    assert send(server.url, "GET", f"{at}{MAPS}/b").value["message"] == 'configmaps "b" not found'
    assert names(send(server.url, "GET", MAPS)) == ["a", "b"]


def test_the_revision_of_a_moment(server: Noxu, then: int) -> None:
    assert send(server.url, "GET", f"/_noxu/at/{then}").value.items() >= {"revision": then, "first": 1}.items()


PARAMETERS: Final = [
    ("the newest state", "", 200, ["a"]),
    ("any state", "?resourceVersion=0", 200, ["a"]),
    ("a revision before", "?resourceVersion={before}", 200, ["a"]),
    ("exactly a revision before", "?resourceVersion={before}&resourceVersionMatch=Exact", 200, []),
    ("the moment", "?resourceVersion={then}&resourceVersionMatch=Exact", 200, ["a"]),
    ("a revision after", "?resourceVersion={after}", 504, "Too large resource version: {after}, current: {then}"),
    ("exactly a revision after", "?resourceVersion={after}&resourceVersionMatch=Exact", 504,
     "Too large resource version: {after}, current: {then}"),
    ("no revision", "?resourceVersion=x", 400, "invalid resource version"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "code", "shown"), [row[1:] for row in PARAMETERS], ids=[row[0] for row in PARAMETERS]
)
def test_a_resource_version_means_what_it_meant_then(
    server: Noxu, then: int, query: str, code: int, shown: list[str] | str
) -> None:
    revisions = {"before": then - 1, "then": then, "after": then + 1}
    sent = send(server.url, "GET", f"/_noxu/at/{then}{MAPS}{query.format(**revisions)}")
    assert sent.code == code
    if isinstance(shown, list):
        assert names(sent) == shown
    else:
        assert shown.format(**revisions) in sent.value["message"]


def test_the_pages_of_a_list_are_of_one_moment(server: Noxu, then: int) -> None:
    newest = int(send(server.url, "GET", MAPS).value["metadata"]["resourceVersion"])
    first = send(server.url, "GET", f"/_noxu/at/{newest}{MAPS}?limit=1")
    server.apply(config_map("a0"))
    token = first.value["metadata"]["continue"]
    rest = send(server.url, "GET", f"/_noxu/at/{newest}{MAPS}?continue={token}")
    assert names(first) + names(rest) == ["a", "b"]
    assert "a0" in names(send(server.url, "GET", MAPS))


REFUSED: Final = [
    ("a write", "POST", f"/_noxu/at/{{then}}{MAPS}", 405, "the past does not change: /_noxu/at/ has no method POST"),
    ("a change", "PATCH", f"/_noxu/at/{{then}}{MAPS}/a", 405, "the past does not change"),
    ("a deletion of all", "DELETE", f"/_noxu/at/{{then}}{MAPS}", 405, "the past does not change"),
    ("a review", "POST", "/_noxu/at/{then}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 405, "only GET and HEAD"),
    ("a document that is posted", "POST", "/_noxu/at/{then}/apis", 405, "only GET and HEAD"),
    ("a watch", "GET", f"/_noxu/at/{{then}}{MAPS}?watch=1", 405, "nothing happens in the past: list"),
    ("an old path of watches", "GET", "/_noxu/at/{then}/api/v1/watch/configmaps", 405, "nothing happens in the past"),
    ("a log", "GET", "/_noxu/at/{then}/api/v1/namespaces/default/pods/a/log", 405, "nothing runs in the past"),
    ("a proxy", "GET", "/_noxu/at/{then}/api/v1/namespaces/default/services/a/proxy/x", 405, "nothing runs in the past"),
    ("a revision to come", "GET", "/_noxu/at/99999/api/v1/pods", 400, "revision 99999 does not exist yet: the newest is "),
    ("no revision", "GET", "/_noxu/at/0/api/v1/pods", 400, "there is no revision 0: the first one is 1"),
    ("a time to come", "GET", "/_noxu/at/2999-01-01T00:00:00Z/api/v1/pods", 400, "is in the future: it is "),
    ("no time", "GET", "/_noxu/at/2026-13-01T00:00:00Z/api/v1/pods", 400, "is no time of RFC 3339"),
    ("no duration", "GET", "/_noxu/at/-5x/api/v1/pods", 400, '\\"-5x\\" is no duration such as -5m'),
    ("an unknown snapshot", "GET", "/_noxu/at/monday/api/v1/pods", 404, 'there is no moment \\"monday\\": it is a revision (1042), '),
    ("what is long", "GET", f"/_noxu/at/{'a' * 300}/api/v1/pods", 400, "a moment has at most 256 characters"),
    ("health", "GET", "/_noxu/at/{then}/readyz", 404, "page not found"),
    ("metrics", "GET", "/_noxu/at/{then}/metrics", 404, "page not found"),
    ("what stands beside the API", "GET", "/_noxu/at/{then}/_noxu/", 404, "page not found"),
    ("a moment in a moment", "GET", f"/_noxu/at/{{then}}/_noxu/at/1{MAPS}", 404, "page not found"),
    ("a kind that is not served", "GET", "/_noxu/at/{then}/apis/example.com/v1/widgets", 404, "page not found"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "code", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_what_is_refused(server: Noxu, then: int, method: str, path: str, code: int, message: str) -> None:
    sent = send(server.url, method, path.format(then=then), {}, {} if method != "GET" else None)
    assert (sent.code, message in sent.body.decode()) == (code, True), sent.body
    if "the past" in message:
        assert sent.headers.get("Allow", "GET, HEAD") == "GET, HEAD"


def test_what_is_compacted_is_gone(make_noxu: MakeNoxu) -> None:
    noxu = make_noxu()
    noxu.apply(config_map("a"))
    revision = int(noxu.apply(config_map("a", k="1"))[0]["metadata"]["resourceVersion"])
    noxu._runner.submit(noxu._server.plane.store.compact(revision)).result()
    gone = send(noxu.url, "GET", f"/_noxu/at/{revision - 1}{MAPS}")
    assert (gone.code, gone.value["reason"]) == (410, "Expired")
    assert gone.value["message"] == (
        f"revision {revision - 1} is gone: the past begins at revision {revision}; `noxu serve --history` keeps more of the past"
    )
    assert send(noxu.url, "GET", f"/_noxu/at/{revision}{MAPS}/a").code == 200


def test_head_is_for_what_has_it(server: Noxu, then: int) -> None:
    assert send(server.url, "HEAD", f"/_noxu/at/{then}{MAPS}/a").code == 405, "as in the present"
    assert send(server.url, "HEAD", f"/_noxu/at/{then}/apis").code == 200


def test_openapi_stays_in_its_moment(server: Noxu, then: int) -> None:
    server.apply(definitions.widgets(group="later.example.com"))
    path = f"/_noxu/at/{then}/openapi/v3"
    index = send(server.url, "GET", path).value["paths"]
    assert "apis/later.example.com/v1" not in index
    assert "apis/later.example.com/v1" in send(server.url, "GET", "/openapi/v3").value["paths"]
    moved = send(server.url, "GET", f"{path}/api/v1?hash=old")
    assert moved.code == 301
    assert moved.headers["Location"] == f"/_noxu/at/{then}{index['api/v1']['serverRelativeURL']}"
    assert send(server.url, "GET", moved.headers["Location"]).code == 200


# -- who may -----------------------------------------------------------------------------------------------------------


def test_users_may_read_of_the_past_what_they_may_read_now(make_noxu: MakeNoxu) -> None:
    noxu = make_noxu(authorization_modes=["RBAC"], users={"root": ["system:masters"], "dev": []})
    noxu.apply(config_map("a"))
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    revision = noxu.apply(secret)[0]["metadata"]["resourceVersion"]
    about = {"name": "dev", "namespace": "default"}
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": about, "rules": rules}
    subjects = [{"kind": "User", "name": "dev", "apiGroup": "rbac.authorization.k8s.io"}]
    reference = {"kind": "Role", "name": "dev", "apiGroup": "rbac.authorization.k8s.io"}
    bound = {**role, "kind": "RoleBinding", "subjects": subjects, "roleRef": reference}
    del bound["rules"]
    noxu.apply(role, bound)

    def code(path: str, method: str = "GET", user: str = "dev") -> int:
        return send(noxu.url, method, path, noxu.users[user].headers).code

    at = f"/_noxu/at/{revision}"
    assert [code(at + MAPS), code(f"{at}{MAPS}/a"), code(at + "/apis"), code(at + "/version")] == [200] * 4
    assert [code(at + SECRETS), code(f"{at}{SECRETS}/s"), code(at + "/api/v1/secrets"), code(at)] == [403] * 4
    assert [code(f"{at}{MAPS}/a", "DELETE"), code(at + MAPS + "?watch=1")] == [403] * 2
    # however the path is written
    for path in (
        f"{at}//{SECRETS}",
        f"{at}%2Fapi/v1/secrets",
        f"/_noxu/at//{revision}{SECRETS}",
        f"{at}/../{revision}{SECRETS}",
    ):
        assert code(path) == 403
        assert b"Opaque" not in send(noxu.url, "GET", path, noxu.users["dev"].headers).body
    assert code(f"{at}{SECRETS}/s", user="root") == code(at, user="root") == 200
    noxu.delete("rolebindings", "dev", namespace="default")
    eventually(lambda: code(at + MAPS) == 403)


async def test_the_audit_log_has_the_real_path_and_the_object(tmp_path: Path) -> None:
    async with audited(tmp_path, "{level: Metadata, resources: [{resources: [configmaps]}]}") as server:
        path = f"/_noxu/at/2{MAPS}/a?pretty=true"
        await server.ask("GET", path)
        event = (await server.events())[-1]
        assert (event["requestURI"], event["verb"], event["objectRef"]["name"]) == (path, "get", "a")


def test_the_metrics_count_it_as_what_it_reads(server: Noxu, then: int) -> None:
    sent = send(server.url, "GET", f"/_noxu/at/{then}{MAPS}")
    assert sent.code == 200
    metrics = send(server.url, "GET", "/metrics").body.decode()
    [line] = [
        line for line in metrics.splitlines()
        if line.startswith("apiserver_request_total{") and 'resource="configmaps"' in line and 'verb="LIST"' in line and 'code="200"' in line
    ]  # fmt: skip
    assert float(line.rsplit(" ", 1)[1]) >= 1


def test_a_time_is_the_newest_revision_then_and_ages_are_of_then() -> None:
    clock = ManualClock()
    with Noxu(clock=clock) as noxu:
        noxu.apply(config_map("a", k="1"))
        clock.jump(3600)
        second = int(noxu.apply(config_map("a", k="2"))[0]["metadata"]["resourceVersion"])
        clock.jump(7200)
        noxu.apply(config_map("a", k="3"))

        def at(moment: str, headers: dict[str, str]) -> Any:
            return send(noxu.url, "GET", f"/_noxu/at/{moment}{MAPS}/a", headers).value

        assert [at(moment, {})["data"]["k"] for moment in ("-3h", "-2h", "-119m", "-0s")] == ["1", "2", "2", "3"]
        time = START + timedelta(hours=2)
        assert at(format_time(time), {})["data"]["k"] == "2"
        for moment, age in (("-119m", "61m"), (str(second), "60m"), ("-3h", "0s"), ("-0s", "3h")):
            assert at(moment, TABLE)["rows"][0]["cells"] == ["a", 1, age]
        assert send(noxu.url, "GET", f"/_noxu/at/{second}").value["time"] == "2026-01-02T04:04:05.678901Z"
        gone = send(noxu.url, "GET", f"/_noxu/at/-9h{MAPS}")
        assert (gone.code, gone.value["reason"]) == (410, "Expired")


def test_what_is_read_of_the_past_is_no_reason_for_a_write(make_noxu: MakeNoxu) -> None:
    noxu = make_noxu()
    revision = noxu.apply(config_map("a", k="1"))[0]["metadata"]["resourceVersion"]
    noxu.apply(config_map("a", k="2"))
    agent = {"User-Agent": "curious"}

    def shown(value: str) -> list[Object]:
        send(
            noxu.url,
            "PATCH",
            f"{MAPS}/a",
            {**agent, "Content-Type": "application/merge-patch+json"},
            {"data": {"x": value}},
        )
        log = send(noxu.url, "GET", "/_noxu/log?type=configmaps&name=a&namespace=default&why=true").value
        return log["items"][-1]["why"]

    send(noxu.url, "GET", f"/_noxu/at/{revision}{MAPS}/a", agent)
    send(noxu.url, "GET", f"/_noxu/at/{revision}{MAPS}", agent)
    assert shown("1") == []
    send(noxu.url, "GET", f"{MAPS}/a", agent)
    assert shown("2") != []
