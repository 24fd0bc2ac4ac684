"""DELETE: its options in the query and in the body, preconditions, and what is answered."""

from __future__ import annotations

from typing import Any

import pytest

from tests.http.conftest import GROUP, Things

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def a(things: Things) -> dict[str, Any]:
    """The metadata of a thing."""
    metadata: dict[str, Any] = things.create("a")["metadata"]
    return metadata


# -- preconditions in the query ---------------------------------------------------------------------------------------

UID = "the UID in the precondition ({}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"  # fmt: skip
REVISION = "the ResourceVersion in the precondition ({}) does not match the ResourceVersion in record ({resourceVersion}). The object might have been modified"  # fmt: skip
UNMET = [
    ("another uid", "uid=abc", UID.format("abc", uid="{uid}")),
    ("another resourceVersion", "resourceVersion=1", REVISION.format("1", resourceVersion="{resourceVersion}")),
    ("a resourceVersion that is no number", "resourceVersion=x", REVISION.format("x", resourceVersion="{resourceVersion}")),
    ("both: the uid is checked first", "resourceVersion=1&uid=abc", UID.format("abc", uid="{uid}")),
    ("the first of several", "uid=abc&uid=def", UID.format("abc", uid="{uid}")),
    ("in a dry run, too", "dryRun=All&uid=abc", UID.format("abc", uid="{uid}")),
]  # fmt: skip


@pytest.mark.parametrize(("query", "why"), [row[1:] for row in UNMET], ids=[row[0] for row in UNMET])
def test_an_object_that_does_not_meet_the_preconditions_in_the_query_is_not_deleted(
    things: Things, a: Any, query: str, why: str
) -> None:
    answer = things.ask("DELETE", f"/a?{query}")
    expected = f'Operation cannot be fulfilled on Thing.{GROUP} "a": {why.format(**a)}'
    assert (answer.code, answer.message) == (409, expected)
    assert things.names() == ["a"]


MET = [
    ("its uid", "uid={uid}"),
    ("its resourceVersion", "resourceVersion={resourceVersion}"),
    ("both", "resourceVersion={resourceVersion}&uid={uid}"),
    ("empty ones, which are no preconditions", "resourceVersion=&uid="),
]


@pytest.mark.parametrize("query", [row[1] for row in MET], ids=[row[0] for row in MET])
def test_an_object_that_meets_the_preconditions_in_the_query_is_deleted(things: Things, a: Any, query: str) -> None:
    assert things.ask("DELETE", f"/a?{query.format(**a)}").code == 200
    assert things.names() == []


def test_a_body_hides_the_preconditions_in_the_query(things: Things, a: Any) -> None:
    assert things.ask("DELETE", "/a?uid=abc", {}).code == 200


@pytest.mark.parametrize("query", ["uid=abc", "resourceVersion=1"])
@pytest.mark.parametrize(
    ("collection", "kind"),
    [(CONFIG_MAPS, "ConfigMap"), ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", None)],
    ids=["a built-in kind", "a definition"],
)
def test_preconditions_in_the_query_protect_every_kind(
    things: Things, collection: str, kind: str | None, query: str
) -> None:
    name = "a" if kind else f"things.{GROUP}"
    if kind:
        things.ask("POST", collection, {"metadata": {"name": name}})
    answer = things.ask("DELETE", f"{collection}/{name}?{query}")
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    kept = things.ask("GET", f"{collection}/{name}")
    assert (kept.code, "deletionTimestamp" in kept.body["metadata"]) == (200, False)


def test_preconditions_hold_for_every_object_of_a_collection(things: Things) -> None:
    metadata = [things.create(name)["metadata"] for name in "abc"]
    answer = things.ask("DELETE", f"?uid={metadata[1]['uid']}")
    expected = UID.format(metadata[1]["uid"], uid=metadata[0]["uid"])
    assert (answer.code, answer.message) == (
        409,
        f'Operation cannot be fulfilled on Thing.{GROUP} "a": {expected}',
    )
    assert things.names() == ["a", "b", "c"], "the first object ends it"
    assert things.ask("DELETE", f"?uid={metadata[0]['uid']}").code == 409
    assert things.names() == ["b", "c"], "those before the first error are deleted"
    assert things.ask("DELETE", f"?resourceVersion={metadata[2]['resourceVersion']}").code == 409, (
        "they are listed there"
    )
    assert things.ask("DELETE", "", {"preconditions": {"uid": "abc"}}).code == 409
    assert things.names() == ["b", "c"]


# -- parameters -------------------------------------------------------------------------------------------------------

NUMBERS = [
    ("an empty one", "", 400, 'strconv.ParseInt: parsing "": invalid syntax'),
    ("a sign only", "-", 400, 'strconv.ParseInt: parsing "-": invalid syntax'),
    ("no digits", "5s", 400, 'strconv.ParseInt: parsing "5s": invalid syntax'),
    ("beyond int64", "9223372036854775808", 400, 'strconv.ParseInt: parsing "9223372036854775808": value out of range'),
    ("thousands of digits", "9" * 5000, 400, f'strconv.ParseInt: parsing "{"9" * 5000}": value out of range'),
    ("zeros before it", "0" * 5000 + "7", 200, ""),
    ("a negative one", "-5", 200, ""),
]


@pytest.mark.parametrize("parameter", ["gracePeriodSeconds", "limit", "timeoutSeconds"])
@pytest.mark.parametrize(("number", "code", "message"), [row[1:] for row in NUMBERS], ids=[row[0] for row in NUMBERS])
def test_a_number_in_the_query(things: Things, a: Any, parameter: str, number: str, code: int, message: str) -> None:
    answer = things.ask("DELETE", f"?{parameter}={number}")
    assert (answer.code, answer.message) == (code, message)
    assert things.names() == (["a"] if code == 400 else [])


# -- the body ---------------------------------------------------------------------------------------------------------

NO_OPTIONS: list[tuple[str, str | bytes, str]] = [
    ("null", "null", "json"),
    ("null in YAML", "null", "yaml"),
    ("blanks in YAML", " \n", "yaml"),
    ("a comment in YAML", "# nothing", "yaml"),
    ("the byte order mark of UTF-16 in YAML", b"\xff\xfe", "yaml"),
    ("the byte order mark of UTF-8 in YAML", b"\xef\xbb\xbf", "yaml"),
    (
        "null for every option",
        '{"dryRun": null, "orphanDependents": null, "preconditions": null, "kind": null}',
        "json",
    ),
    ("another group's options", '{"apiVersion": "other.example.com/v7", "kind": "DeleteOptions"}', "json"),
]


@pytest.mark.parametrize("path", ["/a", "", CONFIG_MAPS, f"{CONFIG_MAPS}/a"])
@pytest.mark.parametrize(("body", "content"), [row[1:] for row in NO_OPTIONS], ids=[row[0] for row in NO_OPTIONS])
def test_a_body_without_options_deletes(things: Things, a: Any, path: str, body: str | bytes, content: str) -> None:
    things.ask("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
    assert things.ask("DELETE", path, body, content).code == 200
    assert things.ask("GET", path if path.endswith("/a") else f"{path}/a").code == 404


NO_KIND = "couldn't get version/kind; json parse error: "
GO_TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
REFUSED: list[tuple[str, str | bytes, str, str]] = [
    ("blanks", " ", "json", f"{NO_KIND}unexpected end of JSON input"),
    ("bytes that are no text", b"\xff\xfe", "json", f"{NO_KIND}invalid character 'ÿ' looking for beginning of value"),
    ("a list", "[]", "json", f"{NO_KIND}json: cannot unmarshal array into Go value of type {GO_TYPE_META}"),
    ("a number", "1", "json", f"{NO_KIND}json: cannot unmarshal number into Go value of type {GO_TYPE_META}"),
    ("malformed YAML", "a: b: c", "yaml", "yaml: mapping values are not allowed in this context"),
    ("a kind that is a number", '{"kind": 1}', "json", f"{NO_KIND}json: cannot unmarshal number into Go struct field .kind of type string"),
    ("a malformed apiVersion", '{"apiVersion": "a/b/c"}', "json", "unexpected GroupVersion string: a/b/c"),
    ("a Status", '{"kind": "Status", "apiVersion": "v1"}', "json", "converting (v1.Status) to (v1.DeleteOptions): unknown conversion"),
    ("a Status of any group", '{"kind": "Status", "apiVersion": "a/v7"}', "json", "converting (v1.Status) to (v1.DeleteOptions): unknown conversion"),
    ("other options", '{"kind": "CreateOptions"}', "yaml", "converting (v1.CreateOptions) to (v1.DeleteOptions): unknown conversion"),
    ("options of meta.k8s.io", '{"kind": "PatchOptions"}', "json", "converting (v1.PatchOptions) to (v1.DeleteOptions): unknown conversion"),
    ("options of another group", '{"kind": "PatchOptions", "apiVersion": "v1"}', "json", 'no kind "PatchOptions" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"'),
    ("an old list", '{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1beta1"}', "json", "converting (v1beta1.PartialObjectMetadataList) to (v1.DeleteOptions): unknown conversion"),
    ("an internal event", '{"kind": "WatchEvent", "apiVersion": "meta.k8s.io/__internal"}', "json", "converting (v1.InternalEvent) to (v1.DeleteOptions): unknown conversion"),
    ("an internal version", '{"kind": "Foo", "apiVersion": "meta.k8s.io/__internal"}', "json", 'no kind "Foo" is registered for the internal version of group "meta.k8s.io" in scheme "pkg/runtime/scheme.go:111"'),
    ("another kind", '{"kind": "Foo"}', "json", 'no kind "Foo" is registered for version "meta.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"'),
]  # fmt: skip


@pytest.mark.parametrize("path", ["/a", ""])
@pytest.mark.parametrize(("body", "content", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_body_that_is_no_options_is_refused(
    things: Things, a: Any, path: str, body: str | bytes, content: str, message: str
) -> None:
    answer = things.ask("DELETE", path, body, content)
    assert (answer.code, answer.message) == (400, message)
    assert things.names() == ["a"]


# -- GET --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "code"),
    [("export=true", 400), ("export=", 400), ("export=x", 400), ("export=false", 200), ("export=0&export=1", 200)],
)
@pytest.mark.parametrize("path", ["/a", "/a/status"])
def test_objects_are_no_longer_exported(things: Things, a: Any, path: str, query: str, code: int) -> None:
    answer = things.ask("GET", f"{path}?{query}")
    message = "the export parameter, deprecated since v1.14, is no longer supported" if code == 400 else ""
    assert (answer.code, answer.message) == (code, message)


# -- the status code --------------------------------------------------------------------------------------------------

CODES: list[tuple[str, list[str], str, Any, int]] = [
    ("cascading, kept by a finalizer", ["a.b/c"], "", {"orphanDependents": False}, 202),
    ("cascading by the query", ["a.b/c"], "?orphanDependents=false", None, 202),
    ("cascading, in a dry run", ["a.b/c"], "?orphanDependents=0&dryRun=All", None, 202),
    ("not cascading: it is kept by the garbage collector's finalizer", [], "", {"orphanDependents": True}, 200),
    ("cascading by policy", ["a.b/c"], "", {"propagationPolicy": "Background"}, 200),
    ("without a policy", ["a.b/c"], "", None, 200),
    ("cascading, deleted at once", [], "", {"orphanDependents": False}, 200),
]  # fmt: skip


@pytest.mark.parametrize(
    ("finalizers", "query", "body", "code"), [row[1:] for row in CODES], ids=[row[0] for row in CODES]
)
def test_only_a_cascading_deletion_by_orphan_dependents_is_accepted(
    things: Things, finalizers: list[str], query: str, body: Any, code: int
) -> None:
    things.create("a", metadata={"finalizers": finalizers})
    assert things.ask("DELETE", f"/a{query}", body).code == code
