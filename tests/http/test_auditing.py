"""The audit log of a server that is asked over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from noxu.config import Audit, Authentication, Config, StartError
from noxu.process.server import Server
from tests.timing import eventually_async, loop_turns

CORE: Final = "/api/v1/namespaces/default"
MAPS: Final = f"{CORE}/configmaps"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class Audited:
    """A server with an audit log, and the events in it."""

    def __init__(self, server: Server, session: aiohttp.ClientSession, log: Path) -> None:
        self.server = server
        self._session = session
        self._log = log

    async def ask(
        self, method: str, path: str, body: Any = None, content: str = "application/json", **headers: str
    ) -> aiohttp.ClientResponse:
        data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        sent = {name.replace("_", "-"): value for name, value in headers.items()} | {"Content-Type": content}
        async with self._session.request(method, self.server.url + path, data=data, headers=sent) as answer:
            await answer.read()
            return answer

    async def text(self) -> str:
        """The log when everything is written that has happened until now."""
        filter_ = next(found for found in self.server.app.filters if type(found).__name__ == "RecordAudit")
        await loop_turns()  # the server ends the request after its client has the answer
        await filter_._log.writer.flushed()  # type: ignore[attr-defined]
        return self._log.read_text()

    async def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (await self.text()).splitlines()]

    async def stages(self) -> list[str]:
        return [event["stage"] for event in await self.events()]


@contextlib.asynccontextmanager
async def audited(directory: Path, *rules: str, **more: Any) -> AsyncIterator[Audited]:
    """A server with a policy of these rules; without rules there is no policy file. `more` is of the server's Config."""
    policy = None
    if rules:
        policy = directory / "policy.yaml"
        lines = ["apiVersion: audit.k8s.io/v1", "kind: Policy", "rules:", *(f"- {rule}" for rule in rules)]
        policy.write_text("\n".join(lines))
    log = directory / "audit.log"
    config = Config(port=0, audit=Audit(policy_file=policy, log_path=str(log)), **more)
    async with Server(config) as server, aiohttp.ClientSession() as session:
        yield Audited(server, session, log)


async def test_only_what_the_policy_names_is_recorded(tmp_path: Path) -> None:
    async with audited(tmp_path, "{level: Metadata, resources: [{resources: [configmaps]}]}") as server:
        await server.ask("GET", MAPS)
        await server.ask("GET", f"{CORE}/secrets")
        await server.ask("GET", "/version")
        assert [event["requestURI"] for event in await server.events()] == [MAPS, MAPS]


async def test_the_first_rule_that_matches_decides(tmp_path: Path) -> None:
    rules = ["{level: None, users: ['system:anonymous'], verbs: [get]}", "{level: Metadata}"]
    async with audited(tmp_path, *rules) as server:
        await server.ask("GET", f"{MAPS}/kube-root-ca.crt")
        await server.ask("GET", MAPS)
        assert {event["verb"] for event in await server.events()} == {"list"}


async def test_without_request_received_a_read_has_one_line_and_a_watch_two(tmp_path: Path) -> None:
    async with audited(tmp_path, "{level: Metadata, omitStages: [RequestReceived]}") as server:
        await server.ask("GET", MAPS)
        assert await server.stages() == ["ResponseComplete"]
        await server.ask("GET", f"{MAPS}?watch=1&timeoutSeconds=1")
        assert await server.stages() == ["ResponseComplete", "ResponseStarted", "ResponseComplete"]


async def test_a_watch_is_recorded_when_it_starts(tmp_path: Path) -> None:
    async with audited(tmp_path, "{level: Metadata}") as server:
        url = f"{server.server.url}{MAPS}?watch=1"
        async with aiohttp.ClientSession() as session, session.get(url):
            assert await server.stages() == ["RequestReceived", "ResponseStarted"]


async def test_a_watch_that_is_refused_has_all_stages(tmp_path: Path) -> None:
    async with audited(tmp_path, "{level: Metadata}") as server:
        await server.ask("GET", f"{MAPS}?watch=1&resourceVersion=x")
        events = await server.events()
        assert [event["stage"] for event in events] == ["RequestReceived", "ResponseStarted", "ResponseComplete"]
        assert [event.get("responseStatus", {}).get("code") for event in events] == [None, 500, 500]


async def test_at_level_request_the_patch_is_recorded_and_no_answer(tmp_path: Path) -> None:
    async with audited(tmp_path, "{level: Request, omitStages: [RequestReceived]}") as server:
        await server.ask("POST", MAPS, config_map("a"))
        await server.ask("PATCH", f"{MAPS}/a", b'{"data":\n {"x": "y"}}', MERGE_PATCH)
        await server.ask("PATCH", f"{MAPS}/a", [{"op": "remove", "path": "/data/x"}], JSON_PATCH)
        await server.ask("DELETE", f"{MAPS}/a", {"propagationPolicy": "Background"})
        created, merged, patched, deleted = await server.events()
        assert created["requestObject"] == config_map("a")
        assert merged["requestObject"] == {"data": {"x": "y"}}
        assert patched["requestObject"] == [{"op": "remove", "path": "/data/x"}]
        assert deleted["requestObject"] == {"propagationPolicy": "Background"}
        assert [event for event in (created, merged, patched, deleted) if "responseObject" in event] == []


async def test_bodies_in_yaml_are_recorded_as_json(tmp_path: Path) -> None:
    async with audited(tmp_path, "{level: RequestResponse, omitStages: [RequestReceived]}") as server:
        body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
        await server.ask("POST", MAPS, body, "application/yaml", Accept="application/yaml")
        [event] = await server.events()
        assert event["requestObject"]["metadata"] == {"name": "a"}
        assert event["responseObject"]["kind"] == "ConfigMap"


async def test_a_body_that_is_not_json_is_not_recorded(tmp_path: Path) -> None:
    async with audited(tmp_path, "{level: Request, omitStages: [RequestReceived]}") as server:
        await server.ask("POST", MAPS, b'{"a":')
        [event] = await server.events()
        assert (event["responseStatus"]["code"], "requestObject" in event) == (400, False)


async def test_at_level_request_response_answers_are_recorded_lists_and_errors_too(tmp_path: Path) -> None:
    async with audited(tmp_path, "{level: RequestResponse, omitStages: [RequestReceived]}") as server:
        await server.ask("GET", MAPS)
        await server.ask("GET", f"{MAPS}/absent")
        await server.ask("GET", MAPS, Accept="application/json;as=Table;g=meta.k8s.io;v=v1")
        await server.ask("GET", MAPS, Accept="application/vnd.kubernetes.protobuf")
        await server.ask("GET", "/version")
        await server.ask("GET", "/openapi/v2")
        listed, absent, table, binary, *documents = await server.events()
        assert listed["responseObject"]["kind"] == "ConfigMapList"
        assert absent["responseObject"] == {"kind": "Status", "apiVersion": "v1", **absent["responseStatus"]}
        assert table["responseObject"]["kind"] == "Table"
        assert binary["responseStatus"]["code"] == 200
        assert [event for event in documents if "responseObject" in event] == []


async def test_a_long_list_is_recorded_whole(tmp_path: Path) -> None:
    async with audited(tmp_path, "{level: RequestResponse, verbs: [list]}") as server:
        for n in range(150):
            await server.ask("POST", MAPS, config_map(f"map-{n}"))
        await server.ask("GET", MAPS)
        event = (await server.events())[-1]
        assert len(event["responseObject"]["items"]) > 150


async def test_managed_fields_are_omitted_where_the_policy_says_so(tmp_path: Path) -> None:
    async with audited(tmp_path, "{level: RequestResponse, omitManagedFields: true}") as server:
        await server.ask("POST", MAPS, config_map("a"))
        await server.ask("GET", MAPS)
        assert "managedFields" not in await server.text()


async def test_secrets_at_level_metadata_have_no_bodies(tmp_path: Path) -> None:
    rules = ["{level: Metadata, resources: [{resources: [secrets]}]}", "{level: RequestResponse}"]
    async with audited(tmp_path, *rules) as server:
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"k": "canary"}}
        await server.ask("POST", f"{CORE}/secrets", secret)
        await server.ask("PATCH", f"{CORE}/secrets/a", {"stringData": {"k": "canary"}}, MERGE_PATCH)
        await server.ask("GET", f"{CORE}/secrets/a")
        await server.ask("GET", f"{CORE}/secrets/a", Authorization="Bearer canary")
        text = await server.text()
        assert text.count("\n") == 7
        assert "canary" not in text
        assert "Y2FuYXJ5" not in text  # canary in base64


async def test_what_the_body_says_about_the_object_completes_its_reference(tmp_path: Path) -> None:
    async with audited(tmp_path) as server:
        await server.ask("POST", MAPS, config_map("a"))
        await server.ask("POST", MAPS, {**config_map("a"), "metadata": {"generateName": "b-"}})
        await server.ask("PUT", f"{MAPS}/a", {**config_map("a"), "metadata": {"name": "a", "resourceVersion": "1"}})
        first, generated, replaced = [event["objectRef"] for event in await server.events()]
        about = {"resource": "configmaps", "namespace": "default", "apiVersion": "v1"}
        assert (first, generated) == (about | {"name": "a"}, about)
        assert replaced == about | {"name": "a", "resourceVersion": "1"}


async def test_the_clients_id_is_in_the_line_and_in_the_answer(tmp_path: Path) -> None:
    async with audited(tmp_path) as server:
        own = "x" * 500
        answer = await server.ask("GET", MAPS, Audit_ID=own)
        assert answer.headers.getall("Audit-Id") == [own]
        made = (await server.ask("GET", MAPS)).headers["Audit-Id"]
        assert [event["auditID"] for event in await server.events()] == [own, made]


async def test_a_failed_authentication_has_one_event_without_a_user(tmp_path: Path) -> None:
    async with audited(tmp_path, "{level: RequestResponse}") as server:
        await server.ask("GET", MAPS, Authorization="Bearer canary")
        [event] = await server.events()
        assert (event["stage"], event["user"]) == ("ResponseStarted", {})
        assert event["responseStatus"] == {
            "metadata": {},
            "status": "Failure",
            "message": "Unauthorized",
            "reason": "Unauthorized",
            "code": 401,
        }
        assert "annotations" not in event


async def test_a_refusal_is_recorded_with_the_decision(tmp_path: Path) -> None:
    async with audited(tmp_path, "{level: Metadata}", authorization_modes=("RBAC",)) as server:
        await server.ask("GET", MAPS)
        received, complete = await server.events()
        assert "annotations" not in received
        assert complete["responseStatus"]["code"] == 403
        assert complete["responseStatus"]["reason"] == "Forbidden"
        assert complete["annotations"] == {"authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": ""}


async def test_impersonation_has_both_users(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('canary,ann,1,"system:masters"\n')
    users = Authentication(token_auth_file=tokens)
    async with audited(tmp_path, "{level: RequestResponse}", authentication=users) as server:
        sent = {"Authorization": "Bearer canary", "Impersonate-User": "bob", "Impersonate-Group": "dev"}
        await server.ask("GET", f"{MAPS}?watch=1&timeoutSeconds=1", **sent)
        received, started, complete = await server.events()
        ann = {"username": "ann", "uid": "1", "groups": ["system:masters", "system:authenticated"]}
        assert [event["user"] for event in (received, started, complete)] == [ann] * 3
        assert "impersonatedUser" not in received
        bob = {"username": "bob", "groups": ["dev", "system:authenticated"]}
        assert [event["impersonatedUser"] for event in (started, complete)] == [bob] * 2
        assert "canary" not in await server.text()


async def test_requests_that_fail_before_authentication_have_one_event_without_a_user(tmp_path: Path) -> None:
    async with audited(tmp_path, "{level: Metadata}") as server:
        await server.ask("GET", f"{MAPS}?timeout=x")
        [event] = await server.events()
        assert (event["stage"], event["user"], event["responseStatus"]["code"]) == ("ResponseStarted", {}, 400)


async def test_without_a_policy_file_the_metadata_of_everything_is_recorded(tmp_path: Path) -> None:
    async with audited(tmp_path) as server:
        await server.ask("POST", MAPS, config_map("a"))
        await server.ask("GET", "/healthz")
        events = await server.events()
        assert [(event["level"], event["stage"]) for event in events] == [("Metadata", "ResponseComplete")] * 2
        assert events[0]["annotations"] == {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}


async def test_annotations_of_admission_are_recorded(tmp_path: Path) -> None:
    async with audited(tmp_path) as server:
        labels = {"pod-security.kubernetes.io/enforce": "privileged"}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": labels}}
        await server.ask("POST", "/api/v1/namespaces", namespace)
        container = {"name": "c", "image": "i"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
        answer = await server.ask("POST", "/api/v1/namespaces/n/pods", pod)
        assert answer.status == 201
        found = (await server.events())[-1]["annotations"]
        assert found["pod-security.kubernetes.io/enforce-policy"] == "privileged:latest"


async def test_everything_is_written_when_the_server_has_stopped(tmp_path: Path) -> None:
    async with audited(tmp_path) as server:
        for _ in range(50):
            await server.ask("GET", "/healthz")
    assert (tmp_path / "audit.log").read_text().count("\n") == 50


@pytest.mark.parametrize(("mode", "code"), [("batch", 200), ("blocking", 200), ("blocking-strict", 500)])
async def test_a_full_disk_fails_requests_in_the_strict_mode_only(
    mode: str, code: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]")
    config = Config(port=0, audit=Audit(policy, log_path="/dev/full", mode=mode))
    async with Server(config) as server, aiohttp.ClientSession() as session:
        for _ in range(3):
            async with session.get(f"{server.url}/healthz") as answer:
                assert answer.status == code
                assert code == 200 or "failed to store audit event" in await answer.text()
            await asyncio.sleep(0.05)
        log = server.app.audit_log
        assert log is not None
        await eventually_async(lambda: log.writer.failed)
        found = {family.name: family.numbers for family in log.families()}
        assert found["apiserver_audit_error_total"]
        assert found["apiserver_audit_requests_rejected_total"] == ([((), 3)] if code == 500 else [])
    assert [text for text in caplog.messages if "audit log" in text] == [
        "the audit log cannot be written: No space left on device; lines are lost"
    ]


async def test_a_policy_without_a_path_is_checked_and_records_nothing(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]")
    async with Server(Config(port=0, audit=Audit(policy_file=policy))) as server:
        assert "Audit" not in [type(found).__name__ for found in server.app.filters]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, 'failed to read file path "{file}": open {file}: no such file or directory'),
        ("kind: Policy\napiVersion: audit.k8s.io/v1", "loaded illegal policy with 0 rules: from file {file}"),
    ],
)
async def test_a_policy_that_cannot_be_used_prevents_the_start(tmp_path: Path, text: str | None, reason: str) -> None:
    policy = tmp_path / "policy.yaml"
    if text is not None:
        policy.write_text(text)
    with pytest.raises(StartError) as refused:
        async with Server(Config(port=0, audit=Audit(policy_file=policy, log_path=str(tmp_path / "log")))):
            pass
    assert str(refused.value) == f"--audit-policy-file: loading audit policy file: {reason.format(file=policy)}"


async def test_a_file_that_cannot_be_written_prevents_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"cannot write the audit log .*: Is a directory"):
        async with Server(Config(port=0, audit=Audit(log_path=str(tmp_path)))):
            pass
