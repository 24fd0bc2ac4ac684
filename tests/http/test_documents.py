"""Documents: health, version, and the list of paths. (Discovery and OpenAPI have tests of their own.)"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.http.answer import Answer
from noxu.http.documents import Documents
from noxu.http.request import parse_query
from noxu.observability.health import Checks
from noxu.registry.builtin import built_in_versions, definitions_resource
from noxu.registry.custom import versions_of
from noxu.registry.served_resources import ServedResources
from tests.http.conftest import DEFINITION, GROUP
from tests.rows import rows
from tests.timing import longest_block

STATUS = {"acceptedNames": DEFINITION["spec"]["names"]}
CATALOG = ServedResources(
    [definitions_resource(), *built_in_versions()], {"things": versions_of(DEFINITION | {"status": STATUS}, 0)}
)


def check(reason: str) -> Callable[[], Awaitable[str]]:
    async def found() -> str:
        return reason

    return found


def documents(establishing: str = "", storage: str = "") -> Documents:
    """`establishing`, `storage`: what is wrong with these parts."""
    live = {"ping": check(""), "storage": check(storage)}
    ready = {"watch-cache": check(""), "definitions/establishing": check(establishing)}
    return Documents(lambda: CATALOG, "127.0.0.1:1", lambda: "1.0", Checks(live, ready))


async def ask(path: str, query: str = "", served: Documents | None = None, **headers: str) -> Answer:
    return await (served or documents()).answer(path, parse_query(query), headers)


BROKEN = documents(establishing="cannot establish: disk full")
HEALTH: list[tuple[str, Documents, str, str, int, str]] = [
    ("ready", documents(), "/readyz", "", 200, "ok"),
    ("a slash at the end", documents(), "/readyz/", "", 200, "ok"),
    ("ready, at length", documents(), "/readyz", "verbose", 200,
     "[+]ping ok\n[+]storage ok\n[+]watch-cache ok\n[+]definitions/establishing ok\nreadyz check passed\n"),
    ("a controller that fails", BROKEN, "/readyz", "", 500,
     "[+]ping ok\n[+]storage ok\n[+]watch-cache ok\n[-]definitions/establishing failed: reason withheld\n"
     "readyz check failed\n"),
    ("the server is alive all the same", BROKEN, "/livez", "", 200, "ok"),
    ("and healthy", BROKEN, "/healthz", "verbose", 200, "[+]ping ok\n[+]storage ok\nhealthz check passed\n"),
    ("without the controller it is ready", BROKEN, "/readyz", "exclude=definitions/establishing", 200, "ok"),
    ("without it, at length", BROKEN, "/readyz", "exclude=definitions/establishing&verbose", 200,
     "[+]ping ok\n[+]storage ok\n[+]watch-cache ok\n[+]definitions/establishing excluded: ok\nreadyz check passed\n"),
    ("without another it is not", BROKEN, "/readyz", "exclude=ping", 500,
     "[+]ping excluded: ok\n[+]storage ok\n[+]watch-cache ok\n"
     "[-]definitions/establishing failed: reason withheld\nreadyz check failed\n"),
    ("the controller's own check says why", BROKEN, "/readyz/definitions/establishing", "", 500,
     "internal server error: cannot establish: disk full\n"),
    ("a check that passes", BROKEN, "/readyz/ping", "", 200, "ok"),
    ("a store that fails", documents(storage="disk full"), "/livez", "", 500,
     "[+]ping ok\n[-]storage failed: reason withheld\nlivez check failed\n"),
]  # fmt: skip


@rows(("served", "path", "query", "code", "text"), [row[1:] for row in HEALTH], ids=[row[0] for row in HEALTH])
async def test_health(served: Documents, path: str, query: str, code: int, text: str) -> None:
    answer = await ask(path, query, served)
    assert (answer.status, answer.body) == (code, text.encode())
    assert answer.content_type == "text/plain; charset=utf-8"
    assert ("X-Content-Type-Options", "nosniff") in answer.headers


@pytest.mark.parametrize("path", ["/readyz/nothing", "/livez/watch-cache", "/healthz/ping/x"])
async def test_a_check_that_does_not_exist_is_not_found(path: str) -> None:
    assert (await ask(path)).status == 404


async def test_the_version() -> None:
    answer = await ask("/version")
    assert isinstance(answer.body, bytes)
    assert json.loads(answer.body)["gitVersion"].endswith("+noxu.1.0")
    with pytest.raises(ApiError) as caught:
        await ask("/version", Accept="application/yaml")
    assert caught.value.code == 406


LISTS: list[tuple[str, str, int]] = [("the root", "/", 200), ("what does not exist", "/nothing", 404)]


@pytest.mark.parametrize(("path", "code"), [row[1:] for row in LISTS], ids=[row[0] for row in LISTS])
async def test_all_paths_are_listed_at(path: str, code: int) -> None:
    answer = await ask(path)
    assert isinstance(answer.body, bytes)
    paths: list[str] = json.loads(answer.body)["paths"]
    assert answer.status == code
    assert paths == sorted(paths)
    assert {"/api/v1", f"/apis/{GROUP}/v2", "/readyz/watch-cache", "/livez/ping", "/openapi/v3"} < set(paths)
    assert "/livez/watch-cache" not in paths


DISCOVERY: list[tuple[str, str, str]] = [
    ("versions of the core group", "/api", "APIVersions"),
    ("groups", "/apis", "APIGroupList"),
    ("a group", f"/apis/{GROUP}", "APIGroup"),
    ("resources", f"/apis/{GROUP}/v1", "APIResourceList"),
]


@pytest.mark.parametrize(("path", "kind"), [row[1:] for row in DISCOVERY], ids=[row[0] for row in DISCOVERY])
async def test_discovery(path: str, kind: str) -> None:
    answer = await ask(path)
    assert isinstance(answer.body, bytes)
    assert json.loads(answer.body)["kind"] == kind


@pytest.mark.parametrize("path", ["/apis/nothing.example.com", f"/apis/{GROUP}/v3", f"/apis/{GROUP}/v1/x/y", "/api/v2"])
async def test_a_discovery_document_that_does_not_exist(path: str) -> None:
    with pytest.raises(ApiError) as caught:
        await ask(path)
    assert caught.value.code == 404


AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


async def test_aggregated_discovery_is_kept_until_the_catalog_changes() -> None:
    current: list[ServedResources] = [CATALOG]
    served = Documents(lambda: current[0], "127.0.0.1:1", lambda: "1.0", Checks({}, {}))

    async def get(**headers: str) -> tuple[int, Any]:
        answer = await ask("/apis", "", served, Accept=AGGREGATED, **headers)
        return answer.status, dict(answer.headers)["ETag"]

    code, tag = await get()
    assert code == 200
    assert await get(**{"If-None-Match": tag}) == (304, tag)
    current[0] = CATALOG.with_definition("things", None)
    code, new = await get(**{"If-None-Match": tag})
    assert (code, new == tag) == (200, False)


@pytest.mark.slow
@pytest.mark.parametrize("accept", [AGGREGATED, "application/json"])
async def test_discovery_of_thousands_of_versions_does_not_block_the_loop(accept: str) -> None:
    """And is not made again for each request."""
    many = [{**DEFINITION["spec"]["versions"][0], "name": f"v{n}", "storage": n == 1} for n in range(1, 151)]
    defined = {
        f"{n}": versions_of(
            {"spec": {**DEFINITION["spec"], "group": f"g{n}.com", "versions": many}, "status": STATUS}, 0
        )
        for n in range(20)
    }
    served_resources = ServedResources([definitions_resource(), *built_in_versions()], defined)
    served = Documents(lambda: served_resources, "127.0.0.1:1", lambda: "1.0", Checks({}, {}))
    answers = []
    for _ in range(2):
        answer, blocked = await longest_block(lambda: ask("/apis", served=served, Accept=accept))
        assert blocked < 0.05
        answers.append(answer)
    assert answers[0].body == answers[1].body
    assert (answers[0].body is answers[1].body) == (accept == AGGREGATED)
