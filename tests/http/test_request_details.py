"""What is kept of writes while a viewer looks: their bodies, what became of them, and the webhooks that were called."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from noxu import Denied, Noxu
from noxu.console.details import NOT_KEPT
from noxu.http import request_details
from noxu.http.request_details import KEPT, TRACES, Allowance, Bucket, DetailRecorder
from noxu.values import Object
from tests.console.definition import PATH, WIDGETS, widget
from tests.rows import rows

SECRETS: Final = "/api/v1/namespaces/default/secrets"


@pytest.fixture(scope="module")
def server() -> Iterator[Noxu]:
    with Noxu(manifests=[WIDGETS], profile="envtest") as noxu:

        @noxu.mutating("widgets.example.com")
        def tag(request: Any) -> None:
            request["object"]["metadata"]["labels"] = {"tag": "x"}

        @noxu.validating("widgets.example.com")
        def small(request: Any) -> None:
            if request["object"]["spec"].get("size") == 7:
                raise Denied("seven is no size")

        yield noxu


@pytest.fixture
def recorder(server: Noxu) -> Iterator[DetailRecorder]:
    interventions: Any = server._runner.server.interventions
    interventions.keep_details(wanted=True)
    yield interventions.details()
    interventions.keep_details(wanted=False)
    interventions.details().clear()


def send(server: Noxu, method: str, path: str, value: Any = None) -> tuple[str, Any]:
    """(The Audit-Id, the answer.)"""
    connection = HTTPConnection(urlsplit(server.url).netloc)
    body = value if isinstance(value, bytes | None) else json.dumps(value)
    connection.request(method, path, body, {"Content-Type": "application/json", "User-Agent": "operator/v1"})
    answer = connection.getresponse()
    read = json.loads(answer.read())
    connection.close()
    return answer.headers["Audit-Id"], read


def details(server: Noxu, request_id: str) -> Object:
    found: Object = send(server, "GET", f"/_noxu/console/request?id={request_id}")[1]
    return found


def reasons_in(found: Object) -> list[tuple[str, str]]:
    return [(each["what"], each["path"]) for each in found["reasons"] if each["what"] != "set"]


def test_a_write_has_its_bodies_its_reasons_and_its_calls(server: Noxu, recorder: DetailRecorder) -> None:
    value = widget("a", limit=5)
    value["spec"]["limt"] = 1
    found = details(server, send(server, "POST", PATH, value)[0])
    assert (found["code"], found["traced"], found["sent"]["body"]) == (201, True, value)
    assert found["answered"]["body"]["metadata"]["labels"] == {"tag": "x"}
    assert reasons_in(found) == [("pruned", "spec.limt"), ("defaulted", "spec.size"), ("changed", "metadata.labels")]
    assert found["reasons"][0]["hint"] == "did you mean spec.limit?"
    assert [(call["webhook"], call["changes"], call["message"]) for call in found["calls"]] == [
        ("tag", 1, ""),
        ("small", 0, ""),
    ]
    assert "webhook tag" in [step["stage"] for step in found["steps"]]


def test_the_editor_has_the_same_reasons_before_anything_is_written(server: Noxu) -> None:
    value = widget("editor", limit=5)
    value["spec"]["limt"] = 1
    [_, answer] = send(server, "POST", "/_noxu/explain", {"object": value})
    assert reasons_in(answer["object"]) == [
        ("pruned", "spec.limt"),
        ("defaulted", "spec.size"),
        ("changed", "metadata.labels"),
    ]
    assert [each["by"] for each in answer["object"]["reasons"] if each["what"] == "changed"] == ["tag"]


@pytest.mark.parametrize("left", [1.0, 0.0], ids=["traced", "without a trace"])
def test_a_refusal_says_why(
    server: Noxu, recorder: DetailRecorder, monkeypatch: pytest.MonkeyPatch, left: float
) -> None:
    monkeypatch.setattr(recorder, "traces", Bucket(Allowance(left, 0.0)))
    found = details(server, send(server, "POST", PATH, widget("b", size=9, limit=1))[0])
    [refused] = [each for each in found["reasons"] if each["what"] == "refused"]
    assert (found["traced"], refused["values"]["self.size"]) == (bool(left), "9")
    found = details(server, send(server, "POST", PATH, widget("b", size=7))[0])
    assert found["calls"][-1]["message"] == 'admission webhook "small" denied the request: seven is no size'
    assert ("refused", "") in reasons_in(found)


def test_a_secret_is_masked_and_what_is_no_json_is_shown_unless_it_may_be_one(
    server: Noxu, recorder: DetailRecorder
) -> None:
    secret = {"metadata": {"name": "s"}, "stringData": {"password": "hunter2"}}
    found = [
        details(server, send(server, "POST", SECRETS, secret)[0]),
        details(server, send(server, "POST", SECRETS, b"hunter2{")[0]),
    ]
    assert "hunter2" not in json.dumps(found)
    assert "aHVudGVyMg==" not in json.dumps(found)
    assert found[0]["sent"]["body"]["stringData"] == {"password": "masked"}
    assert found[1]["sent"] == {"omitted": True}
    assert details(server, send(server, "POST", PATH, b"not {")[0])["sent"] == {"body": "not {"}


def test_what_is_kept_is_limited(server: Noxu, recorder: DetailRecorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_details, "MAX_KEPT", 2)
    ids = [send(server, "DELETE", f"{PATH}/none-{n}")[0] for n in range(3)]
    assert [recorder.of(each) is not None for each in ids] == [False, True, True]
    monkeypatch.setattr(request_details, "MAX_BODY", 10)
    assert details(server, send(server, "POST", PATH, widget("c"))[0])["sent"] == {"omitted": True}
    interventions: Any = server._runner.server.interventions
    interventions.keep_details(wanted=False)
    refused = details(server, send(server, "DELETE", f"{PATH}/none")[0])
    assert refused["note"] == NOT_KEPT


def test_traces_are_a_few_in_a_second() -> None:
    traces = Bucket(TRACES)
    assert sum(traces.takes(1000.0) for _ in range(200)) == TRACES.burst
    assert sum(traces.takes(1002.0) for _ in range(200)) == 2 * TRACES.rate


@rows("rate, kept, traced", [(5, 100, 100), (50, 1000, 300), (100, 2000, 300), (1000, 4000, 111), (4000, 4000, 102)])
def test_of_writes_that_follow_each_other_fast_fewer_are_kept_and_traced(rate: int, kept: int, traced: int) -> None:
    """In twenty seconds."""
    keeping, tracing = Bucket(KEPT), Bucket(TRACES)
    times = [1000.0 + n / rate for n in range(20 * rate)]
    found = [(keeping.takes(at), keeping.is_half_full and tracing.takes(at)) for at in times]
    was_kept, was_traced = (sum(column) for column in zip(*found, strict=True))
    assert (was_kept, was_traced) == (pytest.approx(kept, rel=0.01), pytest.approx(traced, rel=0.02))


def test_of_many_writes_those_are_kept_that_have_something_to_explain(
    server: Noxu, recorder: DetailRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "traces", Bucket(Allowance(0, 0)))
    monkeypatch.setattr(recorder, "kept", Bucket(KEPT._replace(burst=1, rate=0)))
    secret = {"metadata": {"generateName": "usual-"}}
    ids = [send(server, "POST", SECRETS, secret)[0] for _ in range(2)]
    ids += [send(server, "POST", SECRETS, {"metadata": {}})[0], send(server, "POST", PATH, widget("reviewed"))[0]]
    assert [recorder.of(each) is not None for each in ids] == [True, False, True, True]
    assert [len(recorder.calls.get(each, ())) for each in ids] == [0, 0, 0, 2]
