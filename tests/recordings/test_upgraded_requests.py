"""Which recorded requests a new CRD answers in another way: a table of requests, and what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from noxu.generation.kinds import versions_of
from noxu.manifests.documents import Document
from noxu.recordings.upgraded_requests import ClientPreview, UpgradedDefinition, clients_of
from noxu.values import Object
from tests.definitions import version, widgets
from tests.rows import rows

INTEGER: Final = {"type": "integer"}
WIDGETS: Final = "widgets.example.com"
PATH: Final = "/apis/example.com/v1/namespaces/default/widgets"


def upgraded() -> dict[str, UpgradedDefinition]:
    """Widgets had a `colour`, and are at most 5 large now; `shape` has a default, and v1beta1 is gone."""
    old = {"size": INTEGER, "colour": {"type": "string"}, "shape": {"type": "string"}}
    new = {"size": {**INTEGER, "maximum": 5}, "shape": {"type": "string", "default": "round"}}
    before, after = _schema(old), _schema(new)
    beta = {**version(before), "name": "v1beta1", "storage": False}
    crds = (widgets(version(before), beta), widgets(version(after)))
    return {WIDGETS: UpgradedDefinition(*(versions_of(Document(crd, "crd.yaml")) for crd in crds))}


def _schema(properties: Object) -> Object:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


def widget(revision: int = 0, name: str = "a", **spec: Any) -> Object:
    metadata: Object = {"name": name, "namespace": "default", "uid": "u"}
    if revision:
        metadata["resourceVersion"] = str(revision)
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


def step(method: str, path: str = PATH, body: object = None, answer: object = None, code: int = 200) -> Object:
    client = {"user": "jane", "agent": "manager/v1.2 (linux/amd64)"}
    expect = {"code": code, **({} if answer is None else {"body": answer})}
    return {"step": 7, "client": client, "method": method, "path": path, "body": body, "expect": expect}


def written(revision: int, **spec: Any) -> Object:
    place = {"resource": WIDGETS, "namespace": "default", "name": "a"}
    return {"write": {"revision": revision, **place, "object": widget(**spec)}}


ONE: Final = f"{PATH}/a"
ROWS: Final = [
    ("a create that is accepted", [step("POST", body=widget(size=1, shape="x"))], {}, []),
    ("a create that is refused", [step("POST", body=widget(size=7, shape="x"))], {"refused": 1}, []),
    ("a create that was refused before", [step("POST", body=widget(size=7), code=422)], None, []),
    ("a field that is written and lost", [step("POST", body=widget(colour="red", shape="x"))], {"pruned": 1}, [("writes", "spec.colour")]),
    ("a field that is read and lost", [step("GET", ONE, answer=widget(3, colour="red", shape="x"))], {"pruned": 1}, [("reads", "spec.colour")]),
    ("a field that is left out", [step("POST", body=widget(size=1))], {"defaulted": 1}, []),
    ("a list of two that have lost a field", [step("GET", answer={"kind": "WidgetList", "items": [widget(3, shape="x", colour="red"), widget(4, shape="x", colour="red")]})], {"pruned": 1}, [("reads", "spec.colour")]),
    ("a table", [step("GET", answer={"kind": "Table", "rows": []})], {}, []),
    ("an update that leaves what is invalid alone", [written(3, size=7, shape="x"), step("PUT", ONE, widget(3, size=7, shape="y"), widget(4, size=7, shape="y"))], {}, []),
    ("an update that makes it invalid", [written(3, size=1, shape="x"), step("PUT", ONE, widget(3, size=7, shape="y"), widget(4, size=7, shape="y"))], {"refused": 1}, []),
    ("a patch that makes it invalid, whose write is recorded before", [written(3, size=1, shape="x"), written(4, size=7, shape="x"), step("PATCH", ONE, {"spec": {"size": 7}}, widget(4, size=7, shape="x"))], {"refused": 1}, []),
    ("an object from the start", [{"stored": widget(size=7, shape="x"), "revision": 3, "resource": WIDGETS, "namespace": "default", "name": "a"}, step("PATCH", ONE, {}, widget(4, size=7, shape="z"))], {}, []),
    ("a version that is gone", [step("GET", ONE.replace("v1", "v1beta1"), answer=widget(3, colour="red"))], {"not served": 1}, []),
    ("a watch of a version that is gone", [{"step": 7, "client": {"user": "jane", "agent": "manager/v1.2"}, "watch": f"{PATH.replace('v1', 'v1beta1')}?watch=true"}], {"not served": 1}, []),
    ("a deletion", [step("DELETE", ONE, answer=widget(3, size=7, colour="red"))], {}, []),
    ("another subresource", [step("PUT", f"{ONE}/scale", {"kind": "Scale"}, {"kind": "Scale"})], {}, []),
    ("objects of another kind", [step("POST", "/api/v1/namespaces/default/pods", widget(size=7))], None, []),
]  # fmt: skip


@rows("what, lines, counts, pruned", ROWS, ids=[row[0] for row in ROWS])
def test_what_becomes_of_a_request(what: str, lines: Sequence[Object], counts: Object | None, pruned: list) -> None:
    clients = clients_of(lines, upgraded(), 5)[WIDGETS]
    if counts is None:
        assert clients == {}
        return
    [client] = clients.values()
    assert (client.client, client.requests, dict(client.counts), list(client.pruned)) == (
        "manager (jane)",
        1,
        counts,
        pruned,
    )


def test_refused_requests_are_listed_up_to_a_limit() -> None:
    lines = [step("POST", body=widget(size=7, shape="x"))] * 3
    [client] = clients_of(lines, upgraded(), 2)[WIDGETS].values()
    assert (client.counts["refused"], len(client.listed), client.breaks) == (3, 2, True)
    assert client.listed[0]._asdict() == {
        "step": 7,
        "request": f"POST {PATH}",
        "error": "spec.size: Invalid value: 7: spec.size in body should be less than or equal to 5",
    }
    assert not ClientPreview("a", 1).breaks
