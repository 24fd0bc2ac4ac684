"""metadata.resourceVersion and uid in what is sent: of a new object, which has none yet, and of one that exists."""

from __future__ import annotations

from typing import Any

import pytest

from tests.http.conftest import GROUP, Things, thing

LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/a"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SET = "resourceVersion should not be set on objects to be created"
SYNTAX = 'strconv.ParseUint: parsing "x": invalid syntax'
HUGE = "9" * 5000
RANGE = f'strconv.ParseUint: parsing "{HUGE}": value out of range'

POSTED = [
    ("none", "", 201, ""),
    ("zero", "0", 201, ""),
    ("a number", "5", 500, SET),
    ("a text that is no number", "x", 201, ""),
    ("a number beyond uint64", HUGE, 201, ""),
]


def _body(collection: str, version: str) -> dict[str, Any]:
    if collection:
        return {"metadata": {"name": "a", "resourceVersion": version}}
    return thing("a", metadata={"resourceVersion": version})


@pytest.mark.parametrize(("version", "code", "message"), [row[1:] for row in POSTED], ids=[row[0] for row in POSTED])
@pytest.mark.parametrize("collection", ["", CONFIG_MAPS])
def test_a_new_object_may_not_have_a_resource_version_that_is_a_number(
    things: Things, collection: str, version: str, code: int, message: str
) -> None:
    things.ask("DELETE", f"{collection}/a")
    body = _body(collection, version)
    answer = things.ask("POST", collection, body)
    assert (answer.code, answer.message) == (code, message)
    if code == 201:
        assert 0 < int(answer.body["metadata"]["resourceVersion"]) < 10**9


@pytest.mark.parametrize("version", ["0", "5", "x", HUGE, ""])
@pytest.mark.parametrize("collection", ["", CONFIG_MAPS])
def test_a_dry_run_of_a_create_returns_the_resource_version_that_was_sent(
    things: Things, collection: str, version: str
) -> None:
    """It is not stored, so nothing looks at it."""
    things.ask("DELETE", f"{collection}/a")
    body = _body(collection, version)
    answer = things.ask("POST", f"{collection}?dryRun=All", body)
    assert (answer.code, answer.body["metadata"].get("resourceVersion", "")) == (201, version)
    names = list(answer.body["metadata"])
    if version and collection:
        assert names.index("resourceVersion") == names.index("uid") + 1, "in the order of declaration"
    if version and not collection:
        assert names == sorted(names)


CREATED_BY_AN_UPDATE = [("none", "", 201, ""), ("zero", "0", 201, ""), ("a number", "5", 201, ""), ("a text", "x", 500, SYNTAX), ("a huge one", HUGE, 500, RANGE)]  # fmt: skip


@pytest.mark.parametrize("query", ["?fieldManager=m", "?fieldManager=m&dryRun=All"])
@pytest.mark.parametrize(
    ("version", "code", "message"),
    [row[1:] for row in CREATED_BY_AN_UPDATE],
    ids=[row[0] for row in CREATED_BY_AN_UPDATE],
)
def test_an_apply_or_replace_that_creates_needs_a_number_or_none(
    things: Things, query: str, version: str, code: int, message: str
) -> None:
    """It is compared with nothing. A dry run returns it."""
    metadata: dict[str, Any] = {"resourceVersion": version} if version else {}
    things.ask("DELETE", LEASE)
    applied = things.ask("PATCH", f"/a{query}", thing("a", metadata=metadata, replicas=1), "apply-patch+yaml")
    put = things.ask("PUT", f"{LEASE}{query}", {"metadata": {"name": "a", **metadata}})
    for answer in (applied, put):
        assert (answer.code, answer.message) == (code, message)
        if code == 201 and "dryRun" in query:
            assert answer.body["metadata"].get("resourceVersion", "") == version
        elif code == 201:
            assert answer.body["metadata"]["resourceVersion"] not in ("", version)


def test_an_apply_that_creates_is_refused_for_its_resource_version_before_it_is_validated(things: Things) -> None:
    body = thing("a", metadata={"resourceVersion": "x"}, replicas=-1)
    assert things.ask("PATCH", "/a?fieldManager=m", body, "apply-patch+yaml").message == SYNTAX
    assert things.ask("PATCH", "/a?fieldManager=m", thing("a", replicas=-1), "apply-patch+yaml").code == 422


UPDATED = [("a text", "x", 500, SYNTAX), ("a huge one", HUGE, 500, RANGE)]


@pytest.mark.parametrize(("version", "code", "message"), [row[1:] for row in UPDATED], ids=[row[0] for row in UPDATED])
def test_an_update_with_a_resource_version_that_is_no_number(
    things: Things, version: str, code: int, message: str
) -> None:
    things.create("a")
    for method, content in (("PUT", "json"), ("PATCH", "merge-patch+json"), ("PATCH", "apply-patch+yaml")):
        body = {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": "a", "resourceVersion": version}}
        answer = things.ask(method, "/a?fieldManager=m", body, content)
        assert (answer.code, answer.message) == (code, message)
    answer = things.ask("GET", f"?resourceVersion={HUGE}")
    assert answer.code == 400


KEYS = [
    ("an object", "/a", "", f"/registry/apiextensions.kubernetes.io/{GROUP}/things/default/a"),
    ("in a dry run", "/a", "?dryRun=All", f"/{GROUP}/things/default/a"),
    ("its status in a dry run", "/a/status", "?dryRun=All", f"/{GROUP}/things/default/a"),
    ("its Scale in a dry run", "/a/scale", "?dryRun=All", f"/{GROUP}/things/default/a"),
    ("a built-in kind", f"{CONFIG_MAPS}/a", "", "/registry/configmaps/default/a"),
    ("a built-in kind in a dry run", f"{CONFIG_MAPS}/a", "?dryRun=All", "/configmaps/default/a"),
]


@pytest.mark.parametrize(("path", "query", "key"), [row[1:] for row in KEYS], ids=[row[0] for row in KEYS])
def test_the_error_for_another_uid_names_the_key_without_a_prefix_in_a_dry_run(
    things: Things, path: str, query: str, key: str
) -> None:
    things.create("a", replicas=1)
    things.ask("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
    stored = things.ask("GET", path).body
    answer = things.ask("PUT", path + query, stored | {"metadata": stored["metadata"] | {"uid": "wrong"}})
    assert answer.code == 409
    assert f": StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, " in answer.message
