"""The cases in `upstream` have the verdicts of a server: each is run without one, and as requests to one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import aiohttp

from noxu.cases import planes, running
from noxu.cases.case_files import Case, found, read
from noxu.cases.judging import without_chance
from noxu.cases.planes import JSON_PATCH, MERGE_PATCH, USER, given_plane
from noxu.config import Config
from noxu.manifests import loading, restoring
from noxu.manifests.documents import in_order
from noxu.process.server import Server
from noxu.values import Json

UPSTREAM: Final = Path(__file__).with_name("upstream")
FILES: Final = [read(path) for path in found([UPSTREAM])]
CASES: Final = [case for file in FILES for case in file.cases]
QUERY: Final = {"dryRun": "All", "fieldManager": USER}


def test_all_of_them_pass() -> None:
    outcomes = [outcome for file in running.run(FILES) for outcome in file.outcomes]
    assert [(outcome.case.name, outcome.differences) for outcome in outcomes if outcome.verdict != "passed"] == []
    assert len(outcomes) >= 60


class Answer:
    """What a server says to the write of a case."""

    def __init__(self, status: int, value: Json, warnings: list[str]) -> None:
        self.status, self.value, self.warnings = status, value, warnings


async def ask(session: aiohttp.ClientSession, server: Server, case: Case) -> Answer:
    """Write what a case writes, as a dry run, beside its old object."""
    subject = case.object or case.old
    assert subject is not None
    resource = loading.resource_of(server.plane, subject)
    assert resource is not None
    collection = f"{server.url}/apis/{subject['apiVersion']}/namespaces/default/{resource.plural}"
    url = f"{collection}/{subject['metadata']['name']}"
    old = None if case.old is None else await restoring.store(server.plane, case.old)
    user = case.written.get("user") or {"name": USER}
    headers = [("Impersonate-User", user["name"])]
    headers += [("Impersonate-Group", group) for group in (*user.get("groups", ()), "system:authenticated")]
    query = {**QUERY, "fieldValidation": case.written.get("fieldValidation", "Warn")}
    method, body, media_type = "POST", subject, "application/json"
    if old is None:
        url = collection
    elif "delete" in case.written:
        method, body, query = "DELETE", {}, {"dryRun": "All"}
    elif case.apply is not None:
        method, body, media_type = "PATCH", case.apply, "application/apply-patch+yaml"
        query["force"] = "true"
    elif "patch" in case.written:
        method, body = "PATCH", case.written["patch"]
        media_type = JSON_PATCH if isinstance(body, list) else MERGE_PATCH
    else:
        method = "PUT"
        body = {**subject, "metadata": {"resourceVersion": str(old.revision), **subject["metadata"]}}
    sent = aiohttp.payload.BytesPayload(json.dumps(body).encode(), content_type=media_type) if body else None
    async with session.request(method, url, params=query, headers=headers, data=sent) as answer:
        warnings = [text.split(" ", 2)[2][1:-1].replace('\\"', '"') for text in answer.headers.getall("Warning", [])]
        said = Answer(answer.status, await answer.json(), warnings)
    if old is not None:
        await server.plane.persistence.remove(old)
    return said


async def test_each_has_the_verdict_of_a_server() -> None:
    given = FILES[0].given
    differing: list[Any] = []
    async with (
        given_plane(given) as (plane, problems),
        Server(Config(port=0)) as server,
        aiohttp.ClientSession() as session,
    ):
        assert problems == []
        for name in ("crds", "policies"):
            for document in in_order(given[name]):
                await loading.apply(server.plane, document.value)
        for case in CASES:
            without = await planes.run(plane, case, traced=False)
            with_one = await ask(session, server, case)
            assert (without.error is None) == (with_one.status < 300), (case.name, with_one.value)
            if without.error is not None:
                mine, theirs = without.error.status, with_one.value
            elif "delete" in case.written:
                mine, theirs = {}, {}
            else:
                assert without.stored is not None
                mine, theirs = without_chance(without.stored), without_chance(with_one.value)
            if (mine, list(without.warnings)) != (theirs, with_one.warnings):
                differing.append((case.name, mine, theirs, without.warnings, with_one.warnings))
    assert differing == []
