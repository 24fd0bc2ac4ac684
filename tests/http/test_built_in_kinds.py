"""Built-in kinds over HTTP: what their field selectors select, their tables, and the warnings of deprecated ones."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from noxu.kinds import scheme
from noxu.kinds.kind import METADATA_LABELS, Kind
from tests.http.exchanges import ServedApp, serving_app
from tests.timing import hang_guard

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata{};v=v1;g=meta.k8s.io"
PODS = "/api/v1/namespaces/default/pods"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"


@pytest.fixture
async def served() -> AsyncIterator[ServedApp]:
    async with hang_guard(), serving_app() as found:
        yield found


def collection(kind: Kind) -> str:
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    return f"{root}/namespaces/default/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"


async def names(served: ServedApp, path: str, selector: str) -> list[str]:
    reply = await served.send("GET", f"{path}?fieldSelector={quote(selector)}")
    assert reply.code == 200, reply.text
    return [item["metadata"]["name"] for item in json.loads(reply.text)["items"]]


async def post(served: ServedApp, path: str, value: dict[str, Any]) -> dict[str, Any]:
    reply = await served.send("POST", path, value)
    assert reply.code == 201, reply.text
    created: dict[str, Any] = json.loads(reply.text)
    return created


def pod(name: str, **spec: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i"}]} | spec
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def set_status(served: ServedApp, path: str, **status: Any) -> None:
    patch = json.dumps({"status": status})
    headers = {"Content-Type": "application/merge-patch+json"}
    async with served.session.patch(f"{served.url}{path}/status", data=patch, headers=headers) as answer:
        assert answer.status == 200, await answer.text()


# -- field selectors --------------------------------------------------------------------------------------------------


LISTED = [kind for kind in scheme.served() if "list" in kind.verbs]


async def test_every_kind_knows_its_labels_and_no_others(served: ServedApp) -> None:
    for kind in LISTED:
        for label in (*METADATA_LABELS, *kind.selectable, "spec.nothing"):
            reply = await served.send("GET", f"{collection(kind)}?fieldSelector={label}=x")
            known = label in (*kind.metadata_labels, *kind.selectable)
            assert (kind.kind, label, reply.code) == (kind.kind, label, 200 if known else 400)


UNKNOWN = [
    ("/api/v1/nodes", "metadata.namespace", "field label not supported: metadata.namespace"),
    ("/api/v1/namespaces", "metadata.namespace", "field label not supported: metadata.namespace"),
    ("/api/v1/pods", "spec.x", "field label not supported: spec.x"),
    ("/apis/batch/v1/jobs", "status.failed", 'field label "status.failed" not supported for Job'),
    (
        "/apis/resource.k8s.io/v1/resourceslices",
        "metadata.namespace",
        "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: metadata.namespace",
    ),
    (
        "/apis/apps/v1/deployments",
        "spec.replicas",
        '"spec.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"',
    ),
    (
        "/api/v1/persistentvolumes",
        "spec.x",
        '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
    ),
]


@pytest.mark.parametrize(("path", "label", "message"), UNKNOWN, ids=[f"{row[0]} {row[1]}" for row in UNKNOWN])
async def test_the_error_for_a_label(served: ServedApp, path: str, label: str, message: str) -> None:
    for method, query in (("GET", ""), ("GET", "&watch=1"), ("DELETE", "")):
        if method == "DELETE" and path in (
            "/api/v1/namespaces",
            "/api/v1/pods",
            "/apis/batch/v1/jobs",
            "/apis/apps/v1/deployments",
        ):
            continue  # a collection in all namespaces, or of namespaces, cannot be deleted
        reply = await served.send(method, f"{path}?fieldSelector={label}=x{query}")
        assert (reply.code, json.loads(reply.text)["message"]) == (400, message)


SELECTED = [
    ("spec.nodeName=n1", ["a"]),
    ("spec.host=n1", ["a"]),
    ("spec.nodeName=", ["b", "c"]),
    ("spec.nodeName!=n1", ["b", "c"]),
    ("spec.restartPolicy=Never", ["b"]),
    ("spec.restartPolicy=Always,spec.nodeName=", ["c"]),
    ("spec.hostNetwork=true", ["b"]),
    ("spec.hostNetwork=false", ["a", "c"]),
    ("spec.schedulerName=default-scheduler", ["a", "b", "c"]),
    ("spec.serviceAccountName=robot", ["c"]),
    ("status.phase=Running", ["a"]),
    ("status.phase!=Running", ["b", "c"]),
    ("status.podIP=10.0.0.1", ["a"]),
    ("status.podIP=fd00::1", []),
    ("status.podIPs=10.0.0.1", []),
    ("status.podIPs=", ["a", "b", "c"]),
    ("status.nominatedNodeName=n2", ["a"]),
    ("metadata.name=b,metadata.namespace=default", ["b"]),
]


async def test_the_pods_that_are_selected(served: ServedApp) -> None:
    await post(served, "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
    await post(served, PODS, pod("a", nodeName="n1"))
    await post(served, PODS, pod("b", restartPolicy="Never", hostNetwork=True))
    await post(served, PODS, pod("c", serviceAccountName="robot"))
    addresses = [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]
    await set_status(served, f"{PODS}/a", phase="Running", podIP="10.0.0.1", podIPs=addresses, nominatedNodeName="n2")
    for selector, expected in SELECTED:
        assert (selector, await names(served, PODS, selector)) == (selector, expected)


async def test_a_watch_of_selected_objects_sees_them_come_and_go(served: ServedApp) -> None:
    path = "/api/v1/nodes"
    await post(served, path, {"metadata": {"name": "a"}})
    url = f"{served.url}{path}?watch=1&fieldSelector=spec.unschedulable%3Dtrue"
    async with served.session.get(url) as stream:
        for unschedulable in (True, False):
            patch, headers = json.dumps({"spec": {"unschedulable": unschedulable}}), "application/merge-patch+json"
            async with served.session.patch(
                f"{served.url}{path}/a", data=patch, headers={"Content-Type": headers}
            ) as done:
                assert done.status == 200
        seen = []
        while len(seen) < 2:
            event = json.loads(await stream.content.readline())
            if event["type"] != "BOOKMARK":
                seen.append((event["type"], event["object"]["metadata"]["name"]))
    assert seen == [("ADDED", "a"), ("DELETED", "a")]


async def test_the_objects_that_a_selector_matches_are_deleted(served: ServedApp) -> None:
    path = "/api/v1/namespaces/default/secrets"
    for name, kind in (("a", "x.io/a"), ("b", "x.io/b"), ("c", "x.io/a")):
        await post(served, path, {"metadata": {"name": name}, "type": kind})
    assert (await served.send("DELETE", f"{path}?fieldSelector=type%3Dx.io/a")).code == 200
    assert await names(served, path, "") == ["b"]


# -- tables -----------------------------------------------------------------------------------------------------------


async def table(served: ServedApp, path: str, accept: str = TABLE) -> dict[str, Any]:
    reply = await served.send("GET", path, Accept=accept)
    assert reply.code == 200, reply.text
    found: dict[str, Any] = json.loads(reply.text)
    return found


async def test_every_kind_is_listed_as_a_table_and_as_metadata(served: ServedApp) -> None:
    for kind in LISTED:
        found = await table(served, collection(kind))
        assert (found["kind"], found["columnDefinitions"][0]["name"] in ("Name", "Last Seen")) == ("Table", True)
        partial = await table(served, collection(kind), METADATA.format("List"))
        assert partial["kind"] == "PartialObjectMetadataList"


async def test_a_pod_as_a_table_and_as_metadata(served: ServedApp) -> None:
    await post(served, PODS, pod("a", nodeName="n1"))
    await set_status(served, f"{PODS}/a", phase="Failed", reason="Evicted")
    for path in (PODS, f"{PODS}/a"):
        [row] = (await table(served, path))["rows"]
        assert row["cells"][:4] + row["cells"][5:] == ["a", "0/1", "Evicted", "0", "<none>", "n1", "<none>", "<none>"]
        assert [condition["reason"] for condition in row["conditions"]] == ["Failed"]
        assert (row["object"]["kind"], row["object"]["metadata"]["name"]) == ("PartialObjectMetadata", "a")
    partial = await table(served, f"{PODS}/a", METADATA.format(""))
    assert set(partial) == {"kind", "apiVersion", "metadata"}
    yaml = await served.send("GET", PODS, Accept=TABLE.replace("json", "yaml"))
    assert "Evicted" in yaml.text


async def test_the_metadata_of_every_discovered_kind_can_be_followed(served: ServedApp) -> None:
    """As metadata informers do: a streamed list that ends with a bookmark."""
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    groups = json.loads((await served.send("GET", "/apis")).text)["groups"]
    roots = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
    followed = 0
    for root in roots:
        for resource in json.loads((await served.send("GET", root)).text)["resources"]:
            if not {"list", "watch"} <= set(resource["verbs"]):
                continue
            path, headers = f"{root}/{resource['name']}?{query}", {"Accept": METADATA.format("")}
            async with served.session.get(f"{served.url}{path}", headers=headers) as stream:
                async for line in stream.content:
                    event = json.loads(line)
                    assert event["object"]["kind"] == "PartialObjectMetadata", path
                    if event["type"] == "BOOKMARK":
                        break
            assert event["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
            followed += 1
    assert followed > 60


async def test_events_of_a_watch_as_tables(served: ServedApp) -> None:
    headers = {"Accept": TABLE}
    async with served.session.get(
        f"{served.url}{PODS}?watch=1&allowWatchBookmarks=1&resourceVersion=0", headers=headers
    ) as stream:
        first = json.loads(await stream.content.readline())  # the bookmark that ends the initial events
        await post(served, PODS, pod("a"))
        await set_status(served, f"{PODS}/a", phase="Running")
        seen: list[Any] = []
        while len(seen) < 2:
            event = json.loads(await stream.content.readline())
            if event["type"] != "BOOKMARK":  # half a second after the initial events there is another one
                seen.append(event)
    assert first["object"]["rows"][0]["cells"][:4] == ["", "0/0", "", "0"]
    assert [event["type"] for event in (first, *seen)] == ["BOOKMARK", "ADDED", "MODIFIED"]
    rows = [event["object"]["rows"][0]["cells"][:3] for event in seen]
    assert rows == [["a", "0/1", "Pending"], ["a", "0/1", "Running"]]
    assert [event["object"]["columnDefinitions"] is None for event in (first, *seen)] == [False, True, True]


async def test_the_default_class_is_marked_also_in_a_list_of_several_portions(served: ServedApp) -> None:
    for n in range(130):
        mark = {"storageclass.kubernetes.io/is-default-class": "true"} if n in (3, 129) else {}
        value = {"metadata": {"name": f"c{n:03}", "annotations": mark}, "provisioner": "p"}
        await post(served, CLASSES, value)
    found = await table(served, CLASSES)
    marked = [row["cells"][0] for row in found["rows"] if row["cells"][0].endswith(" (default)")]
    assert len(marked) == 1  # the newer one, or the first by name of two of the same second
    assert marked[0] in ("c003 (default)", "c129 (default)")
    assert (await table(served, f"{CLASSES}/c003"))["rows"][0]["cells"][0] == "c003"


async def test_the_scale_of_a_built_in_kind_as_a_table(served: ServedApp) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    path = "/apis/apps/v1/namespaces/default/deployments"
    await post(served, path, {"metadata": {"name": "d"}, "spec": spec})
    found = await table(served, f"{path}/d/scale")
    assert [column["type"] for column in found["columnDefinitions"]] == ["string", "integer", "integer", "string"]
    assert found["rows"][0]["cells"][:3] == ["d", 2, 0]


def test_a_server_that_is_not_asked_for_tables_does_not_load_their_cells() -> None:
    code = "import sys, noxu.process.server, noxu.http.application; print([name for name in sys.modules if 'tables' in name])"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert "noxu.tables.table" in done.stdout
    assert "printers" not in done.stdout
    assert "cells" not in done.stdout


# -- deprecated kinds -------------------------------------------------------------------------------------------------

ENDPOINTS = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
STATUSES = "v1 ComponentStatus is deprecated in v1.19+"
DEPRECATED = [
    ("GET", "/api/v1/endpoints", 200, ENDPOINTS),
    ("GET", "/api/v1/namespaces/default/endpoints/x", 404, ENDPOINTS),
    ("POST", "/api/v1/namespaces/default/endpoints", 201, ENDPOINTS),
    ("DELETE", "/api/v1/namespaces/default/endpoints", 200, ENDPOINTS),
    ("GET", "/api/v1/componentstatuses", 200, STATUSES),
    ("GET", "/api/v1/componentstatuses/x", 500, STATUSES),
]


@pytest.mark.parametrize(
    ("method", "path", "code", "text"), DEPRECATED, ids=[f"{row[0]} {row[1]}" for row in DEPRECATED]
)
async def test_every_request_for_a_deprecated_kind_has_a_warning(
    served: ServedApp, method: str, path: str, code: int, text: str
) -> None:
    reply = await served.send(method, path, {"metadata": {"name": "e"}} if method == "POST" else None)
    assert (reply.code, reply.headers.getall("Warning")) == (code, [f'299 - "{text}"'])


async def test_component_statuses_are_an_empty_list_that_cannot_be_written_or_watched(served: ServedApp) -> None:
    path = "/api/v1/componentstatuses"
    assert json.loads((await served.send("GET", path)).text)["items"] == []
    absent = await served.send("GET", f"{path}/scheduler")
    status = {"status": "Failure", "message": "Component not found: scheduler", "code": 500}
    assert json.loads(absent.text) == {"kind": "Status", "apiVersion": "v1", "metadata": {}, **status}
    assert (await served.send("POST", path, {"metadata": {"name": "x"}})).code == 405
    watch = await served.send("GET", f"{path}?watch=1")
    message = 'watch is not supported on resources of kind "componentstatuses"'
    assert (watch.code, json.loads(watch.text)["message"]) == (405, message)
    discovery = json.loads((await served.send("GET", "/api/v1")).text)["resources"]
    assert [entry["verbs"] for entry in discovery if entry["name"] == "componentstatuses"] == [["get", "list"]]
