"""The audit log under attack: no secret in any log, and no body that stops the event loop."""

from __future__ import annotations

import base64
import dataclasses
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from noxu.config import Audit, LogConfig
from noxu.registry.access import User
from noxu.security.credentials import Token
from noxu.testing.handle import Noxu
from tests.hostile.loop_monitor import LoopMonitor, longest_block
from tests.hostile.raw_http import JSON, Target
from tests.hostile.test_attacks import BLOCKED, TRIES

CORE = "/api/v1/namespaces/default"
SECRETS = f"{CORE}/secrets"
CANARY = "canary-4711-in-a-secret"
TOKEN = "canary-4712-of-a-user"
ENCODED = base64.b64encode(CANARY.encode()).decode()
MERGE, STRATEGIC, PATCH, APPLY = (
    f"application/{name}"
    for name in ("merge-patch+json", "strategic-merge-patch+json", "json-patch+json", "apply-patch+yaml")
)
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
  resources:
  - {group: "", resources: ["secrets/*", serviceaccounts/token]}
  - {group: authentication.k8s.io, resources: [tokenreviews]}
- level: RequestResponse
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "audit.log"


@pytest.fixture(scope="module")
def noxu(log: Path) -> Iterator[Noxu]:
    policy = log.with_name("policy.yaml")
    policy.write_text(POLICY)
    server = Noxu(log.parent)
    server._config = dataclasses.replace(
        server._config, audit=Audit(policy, str(log)), log=LogConfig("json", logging.DEBUG, requests=True)
    )
    with server:
        yield server


def secret(name: str, **fields: object) -> dict[str, object]:
    about: dict[str, object] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
    return about | {"stringData": {"password": CANARY}} | fields


PATCHED = {"stringData": {"password": CANARY}}
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": TOKEN}}
REQUESTS: dict[str, tuple[str, str, object, str]] = {
    "create": ("POST", SECRETS, secret("a"), JSON),
    "create in YAML": ("POST", SECRETS, f"{{apiVersion: v1, kind: Secret, metadata: {{name: b}}, stringData: {{p: {CANARY}}}}}", "application/yaml"),
    "create what exists": ("POST", SECRETS, secret("a"), JSON),
    "create what is invalid": ("POST", SECRETS, secret("A!", data={"a b": ENCODED}), JSON),
    "create with a wrong type": ("POST", SECRETS, secret("c", data=[ENCODED]), JSON),
    "create with unknown fields": ("POST", f"{SECRETS}?fieldValidation=Strict", secret("c", extra=CANARY), JSON),
    "replace": ("PUT", f"{SECRETS}/a", secret("a"), JSON),
    "replace with a conflict": ("PUT", f"{SECRETS}/a", secret("a", metadata={"name": "a", "resourceVersion": "1"}), JSON),
    "merge": ("PATCH", f"{SECRETS}/a", PATCHED, MERGE),
    "merge strategically": ("PATCH", f"{SECRETS}/a", PATCHED, STRATEGIC),
    "patch": ("PATCH", f"{SECRETS}/a", [{"op": "add", "path": "/stringData", "value": {"p": CANARY}}], PATCH),
    "patch that fails": ("PATCH", f"{SECRETS}/a", [{"op": "test", "path": "/data/password", "value": ENCODED + "x"}], PATCH),
    "apply": ("PATCH", f"{SECRETS}/a?fieldManager=x&force=true", secret("a"), APPLY),
    "apply with a conflict": ("PATCH", f"{SECRETS}/a?fieldManager=y", {"apiVersion": "v1", "kind": "Secret", "data": {"password": "eA=="}}, APPLY),
    "read": ("GET", f"{SECRETS}/a", None, ""),
    "list": ("GET", SECRETS, None, ""),
    "watch": ("GET", f"{SECRETS}?watch=1&timeoutSeconds=1", None, ""),
    "review a token": ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", REVIEW, JSON),
    "delete": ("DELETE", f"{SECRETS}/b", None, ""),
    "delete all": ("DELETE", SECRETS, None, ""),
}  # fmt: skip


def everything_written(noxu: Noxu, log: Path) -> str:
    """The text of the audit log when everything until now is written."""
    found = next(filter_ for filter_ in noxu._server.app.filters if type(filter_).__name__ == "RecordAudit")
    noxu._call(found._log.writer.flushed())  # type: ignore[attr-defined]
    return log.read_text()


def test_no_secret_is_in_any_log_whatever_is_written(
    noxu: Noxu, target: Target, log: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    users = noxu._server.plane.static_tokens._users
    users[Token(TOKEN).digest] = User("canary", groups=("system:masters",))
    for name, (method, path, value, content) in REQUESTS.items():
        body = None if value is None else (value if isinstance(value, str) else json.dumps(value)).encode()
        for headers in ({"Authorization": f"Bearer {TOKEN}"}, {"Authorization": f"Bearer bad-{TOKEN}"}):
            answer = target.send(method, path, body, headers | ({"Content-Type": content} if content else {}))
            assert (answer.status == 401) == ("bad" in headers["Authorization"]), (name, answer.message)
    issued = target.send("POST", f"{CORE}/serviceaccounts/default/token", json.dumps({"spec": {}}).encode())
    token = json.loads(issued.body)["status"]["token"]
    target.send("GET", SECRETS, headers={"Authorization": f"Bearer {token}"})
    audited = everything_written(noxu, log)
    assert audited.count("\n") >= 3 * len(REQUESTS)
    written = capfd.readouterr()
    texts = {
        "audit log": audited,
        "log": "\n".join(logging.Formatter().format(record) for record in caplog.records),
        "stdout": written.out,
        "stderr": written.err,
    }
    for where, text in texts.items():
        for canary in (CANARY, ENCODED, TOKEN, token, token.rpartition(".")[2]):
            assert canary not in text, (where, canary)


BIG = {
    "an object that fits": ("POST", f"{CORE}/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "x" * 900_000}}),
    "an object that is too large": ("POST", f"{CORE}/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {str(n): "x" * 1000 for n in range(2_900)}}),
    "a body that is no object": ("POST", f"{CORE}/configmaps", ["x" * 1000] * 3_000),
    "a large answer": ("GET", f"{CORE}/configmaps", None),
}  # fmt: skip


@pytest.mark.parametrize("name", BIG)
def test_a_large_body_in_the_log_does_not_block_the_loop(
    noxu: Noxu, target: Target, log: Path, loop_monitor: LoopMonitor, name: str
) -> None:
    method, path, value = BIG[name]
    body = None if value is None else json.dumps(value, indent=1).encode()
    longest, blocked = longest_block(), 1e9
    for _ in range(TRIES):
        loop_monitor.reset()
        target.send(method, path, body)
        everything_written(noxu, log)
        blocked = min(blocked, loop_monitor.longest)
        if blocked < BLOCKED:
            break
    assert blocked < longest
