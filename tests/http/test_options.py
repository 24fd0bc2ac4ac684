"""Query parameters as options: how each is converted, what is refused, and in whose words."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.api import errors
from noxu.api.errors import ApiError
from noxu.http import exchange, request
from noxu.http.exchange import ListOptions
from noxu.http.request import parse_query
from noxu.registry.custom import versions_of
from noxu.registry.deletion import DeleteBody, delete_options
from noxu.registry.draft import NO_DELETE_OPTIONS, DeleteOptions, Options, Preconditions
from noxu.registry.reader import Window
from noxu.registry.resource import Resource
from tests.http.conftest import DEFINITION
from tests.rows import rows

THING: Resource = versions_of(DEFINITION | {"status": {"acceptedNames": DEFINITION["spec"]["names"]}}, 0).storage


def refusal(function: Any, *arguments: Any, **more: Any) -> tuple[int, str]:
    with pytest.raises(ApiError) as caught:
        function(*arguments, **more)
    return caught.value.code, caught.value.message


# -- single parameters ------------------------------------------------------------------------------------------------

BOOLEANS: list[tuple[str, bool | None]] = [
    ("", None), ("b", True), ("b=", True), ("b=1", True), ("b=true", True), ("b=no", True), ("b=0", False),
    ("b=false", False), ("b=False", False), ("b=0&b=1", False),
]  # fmt: skip


@rows(("query", "expected"), BOOLEANS)
def test_a_boolean(query: str, expected: bool | None) -> None:
    assert request.boolean(parse_query(query), "b") is expected


INTEGERS: list[tuple[str, int | str | None]] = [
    ("", None),
    ("n=", 'strconv.ParseInt: parsing "": invalid syntax'),
    ("n=5", 5),
    ("n=-5", -5),
    ("n=%2B5", 5),
    ("n=007", 7),
    ("n=9223372036854775807", 2**63 - 1),
    ("n=9223372036854775808", 'strconv.ParseInt: parsing "9223372036854775808": value out of range'),
    ("n=-9223372036854775809", 'strconv.ParseInt: parsing "-9223372036854775809": value out of range'),
    (f"n={'9' * 5000}", f'strconv.ParseInt: parsing "{"9" * 5000}": value out of range'),
    (f"n=-{'9' * 5000}", f'strconv.ParseInt: parsing "-{"9" * 5000}": value out of range'),
    (f"n={'0' * 30}7", 7),
    ("n=1.5", 'strconv.ParseInt: parsing "1.5": invalid syntax'),
    ("n=1_000", 'strconv.ParseInt: parsing "1_000": invalid syntax'),
    ("n=%20 1", 'strconv.ParseInt: parsing "  1": invalid syntax'),
    ("n=-", 'strconv.ParseInt: parsing "-": invalid syntax'),
    ("n=%D9%A1", 'strconv.ParseInt: parsing "١": invalid syntax'),
]


@rows(("query", "expected"), INTEGERS)
def test_an_integer(query: str, expected: int | str | None) -> None:
    if isinstance(expected, str):
        assert refusal(request.integer, parse_query(query), "n") == (400, expected)
    else:
        assert request.integer(parse_query(query), "n") == expected


REVISIONS: list[tuple[str, int | str]] = [
    ("", 0),
    ("0", 0),
    ("12", 12),
    ("18446744073709551615", 2**64 - 1),
    ("18446744073709551616", "value out of range"),
    ("9" * 5000, "value out of range"),
    ("0" * 30 + "12", 12),
    ("-1", "invalid syntax"),
    ("+1", "invalid syntax"),
    ("x", "invalid syntax"),
]


@rows(("text", "expected"), REVISIONS)
def test_a_resource_version(text: str, expected: int | str) -> None:
    if isinstance(expected, str):
        message = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": {expected}'
        assert refusal(exchange.parse_revision, text, errors.bad_request) == (400, message)
    else:
        assert exchange.parse_revision(text, errors.bad_request) == expected


# -- writes -----------------------------------------------------------------------------------------------------------

PREFIX = {kind: f'{kind}.meta.k8s.io "" is invalid: ' for kind in ("CreateOptions", "UpdateOptions", "PatchOptions")}
DRY_RUN = 'dryRun: Unsupported value: ["x"]: supported values: "All"'
WRITES: list[tuple[str, str, str, Options | str]] = [
    ("none", "CreateOptions", "", Options(field_manager="agent")),
    ("one of no interest", "CreateOptions", "pretty=1", Options(field_manager="agent")),
    ("dry run", "CreateOptions", "dryRun=All", Options(True, "agent")),
    ("dry run twice", "CreateOptions", "dryRun=All&dryRun=All", Options(True, "agent")),
    ("another dry run", "UpdateOptions", "dryRun=x", DRY_RUN),
    ("an empty dry run", "UpdateOptions", "dryRun=", 'dryRun: Unsupported value: [""]: supported values: "All"'),
    ("a manager", "UpdateOptions", "fieldManager=me", Options(field_manager="me")),
    ("an empty manager", "UpdateOptions", "fieldManager=", Options(field_manager="agent")),
    ("a manager that is too long", "UpdateOptions", f"fieldManager={'a' * 129}",
     "fieldManager: Too long: may not be more than 128 bytes"),
    ("a manager that is far too long, and cannot be printed", "UpdateOptions", f"fieldManager={'%01' * 10_000}",
     "fieldManager: Too long: may not be more than 128 bytes"),
    ("a manager with a line end", "UpdateOptions", "fieldManager=a%0A",
     'fieldManager: Invalid value: "a\\n": invalid character U+000A (at position 1)'),
    ("validation", "CreateOptions", "fieldValidation=Ignore", Options(field_manager="agent", field_validation="Ignore")),
    ("an empty validation", "CreateOptions", "fieldValidation=", Options(field_manager="agent")),
    ("another validation", "CreateOptions", "fieldValidation=strict",
     'fieldValidation: Unsupported value: "strict": supported values: "", "Ignore", "Strict", "Warn"'),
    ("force in a create, which has none", "CreateOptions", "force=1", Options(field_manager="agent")),
    ("force in a patch", "PatchOptions", "force=0", "force: Forbidden: may not be specified for non-apply patch"),
]  # fmt: skip


@rows(("kind", "query", "expected"), [row[1:] for row in WRITES], ids=[row[0] for row in WRITES])
def test_options_of_a_write(kind: str, query: str, expected: Options | str) -> None:
    given = (parse_query(query) if query else {}, kind, "agent/1.0")
    if isinstance(expected, str):
        assert refusal(exchange.parse_write_options, *given) == (422, PREFIX[kind] + expected)
    else:
        assert exchange.parse_write_options(*given) == expected


APPLIES: list[tuple[str, str, Options | str]] = [
    ("a manager", "fieldManager=me", Options(field_manager="me")),
    ("force", "fieldManager=me&force=true", Options(field_manager="me", force=True)),
    ("force that is false", "fieldManager=me&force=false", Options(field_manager="me")),
    ("no manager", "", "fieldManager: Required value: is required for apply patch"),
    ("faults are all reported", "dryRun=x",
     f"[fieldManager: Required value: is required for apply patch, {DRY_RUN}]"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "expected"), [row[1:] for row in APPLIES], ids=[row[0] for row in APPLIES])
def test_options_of_an_apply(query: str, expected: Options | str) -> None:
    given = (parse_query(query) if query else {}, "PatchOptions", "agent/1.0")
    if isinstance(expected, str):
        assert refusal(exchange.parse_write_options, *given, apply=True) == (422, PREFIX["PatchOptions"] + expected)
    else:
        assert exchange.parse_write_options(*given, apply=True) == expected


AGENTS: list[tuple[str, str, str]] = [
    ("a program and its version", "kubectl/v1.37 (linux)", "kubectl"),
    ("only a program", "curl", "curl"),
    ("none", "", "unknown"),
    ("only a version", "/v1", "unknown"),
    ("one that is too long", "a" * 300 + "/1", "a" * 128),
    ("one with control characters", "a\x01b\n/1", "ab"),
    ("only control characters", "\x01/1", "unknown"),
    ("letters of two bytes", "é" * 100, "é" * 64),
]


@pytest.mark.parametrize(("agent", "expected"), [row[1:] for row in AGENTS], ids=[row[0] for row in AGENTS])
def test_the_field_manager_of_a_user_agent(agent: str, expected: str) -> None:
    assert exchange.manager_from_user_agent(agent) == expected
    assert exchange.parse_write_options({}, "CreateOptions", agent).field_manager == expected


# -- deletes ----------------------------------------------------------------------------------------------------------

DELETES: list[tuple[str, DeleteBody, DeleteOptions | str]] = [
    ("none", DeleteBody([]), DeleteOptions()),
    ("dry run", DeleteBody(["All"]), DeleteOptions(dry_run=True)),
    ("another dry run", DeleteBody(["x"]), DRY_RUN),
    ("a policy", DeleteBody([], "Orphan"), DeleteOptions(propagation="Orphan")),
    ("another policy", DeleteBody([], "x"),
     'propagationPolicy: Unsupported value: "x": supported values: "Foreground", "Background", "Orphan", "nil"'),
    ("orphans", DeleteBody([], orphan=True), DeleteOptions(propagation="Orphan")),
    ("no orphans", DeleteBody([], orphan=False), DeleteOptions(propagation="Background")),
    ("orphans and a policy", DeleteBody([], "Orphan", True),
     'propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set'),
    ("preconditions", DeleteBody([], uid="u", resource_version="1"),
     DeleteOptions(preconditions=Preconditions("u", "1"))),
    ("a grace period", DeleteBody([], grace=-3), DeleteOptions(grace=-3)),
    ("what cannot be read", DeleteBody([], corrupt_too=True), DeleteOptions(corrupt_too=True)),
]  # fmt: skip


@rows(("given", "expected"), [row[1:] for row in DELETES], ids=[row[0] for row in DELETES])
def test_options_of_a_delete(given: DeleteBody, expected: DeleteOptions | str) -> None:
    if isinstance(expected, str):
        assert refusal(delete_options, given) == (422, f'DeleteOptions.meta.k8s.io "" is invalid: {expected}')
    else:
        assert delete_options(given) == expected


def test_options_of_a_delete_without_parameters() -> None:
    given = exchange.delete_body_from_query({})
    assert (delete_options(given), exchange.delete_body_as_sent(given)) == (NO_DELETE_OPTIONS, {})


# -- lists and watches ------------------------------------------------------------------------------------------------

LIST = 'ListOptions.meta.k8s.io "" is invalid: '
EXACT = "resourceVersionMatch=Exact&resourceVersion"
MATCH = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden"
ONLY_MATCH = "resourceVersionMatch: Unsupported value"
LISTS: list[tuple[str, bool, str, tuple[int, str]]] = [
    # name, whether it is a watch, query, code and message
    ("a limit that is no number", False, "limit=x", (400, 'strconv.ParseInt: parsing "x": invalid syntax')),
    ("a timeout that is no number", True, "timeoutSeconds=5s", (400, 'strconv.ParseInt: parsing "5s": invalid syntax')),
    ("a label selector that does not parse", False, "labelSelector=a%3D%3D%3D",
     (400, "unable to parse requirement: found '=', expected: identifier")),
    ("a label selector that is too long", False, f"labelSelector={'a' * 131073}",
     (400, "labelSelector: too long: may not be more than 131072 characters")),
    ("a field selector that does not parse", False, "fieldSelector=x", (400, "invalid selector: 'x'; can't understand 'x'")),
    ("a field that is not selectable", False, "fieldSelector=spec.x%3D1", (400, "field label not supported: spec.x")),
    ("a match without a version", False, "resourceVersionMatch=Exact",
     (422, f"{LIST}{MATCH} unless resourceVersion is provided")),
    ("a match with a token", False, f"{EXACT}=5&continue=x", (422, f"{LIST}{MATCH} when continue is provided")),
    ("another match", False, "resourceVersionMatch=x&resourceVersion=5",
     (422, f'{LIST}{ONLY_MATCH}: "x": supported values: "Exact", "NotOlderThan", ""')),
    ("exactly any", False, f"{EXACT}=0",
     (422, f'{LIST}resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"')),
    ("initial events of a list", False, "sendInitialEvents=1",
     (422, f"{LIST}sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list")),
    ("initial events without a match", True, "sendInitialEvents=1",
     (422, f"{LIST}resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")),
    ("a match without initial events", True, "resourceVersionMatch=NotOlderThan",
     (422, f"{LIST}{MATCH} for watch unless sendInitialEvents is provided")),
    ("initial events with a token", True, "sendInitialEvents=1&resourceVersionMatch=NotOlderThan&continue=x",
     (422, f"{LIST}{MATCH} when continue is provided")),
]  # fmt: skip


@rows(("watch", "query", "expected"), [row[1:] for row in LISTS], ids=[row[0] for row in LISTS])
def test_a_list_or_watch_that_is_refused(watch: bool, query: str, expected: tuple[int, str]) -> None:
    assert refusal(exchange.parse_list_options, THING, "default", "", parse_query(query), watch=watch) == expected


def of_list(query: str, *, watch: bool = False, name: str = "") -> ListOptions:
    return exchange.parse_list_options(THING, "default", name, parse_query(query), watch=watch)


GOOD: list[tuple[str, bool, str, dict[str, Any]]] = [
    ("none", False, "", {}),
    ("a limit", False, "limit=5", {"limit": 5}),
    ("a negative limit is none", False, "limit=-5", {"limit": 0}),
    ("a version", False, "resourceVersion=5", {"resource_version": "5"}),
    ("a match", False, f"{EXACT}=5", {"resource_version": "5", "match": "Exact"}),
    ("a watch from the start has initial events", True, "", {"initial_events": True, "match": "NotOlderThan"}),
    ("so has one from any version", True, "resourceVersion=0",
     {"resource_version": "0", "initial_events": True, "match": "NotOlderThan"}),
    ("one from a version has none", True, "resourceVersion=5", {"resource_version": "5"}),
    ("bookmarks", True, "resourceVersion=5&allowWatchBookmarks=1", {"resource_version": "5", "bookmarks": True}),
    ("a timeout", True, "resourceVersion=5&timeoutSeconds=7", {"resource_version": "5", "timeout": 7}),
]  # fmt: skip


@rows(("watch", "query", "expected"), [row[1:] for row in GOOD], ids=[row[0] for row in GOOD])
def test_options_of_a_list_or_watch(watch: bool, query: str, expected: dict[str, Any]) -> None:
    found = of_list(query, watch=watch)
    assert found == ListOptions(found.selection)._replace(**expected)
    assert (found.selection.resource, found.selection.namespace) == (THING, "default")


def test_a_watch_of_one_object_selects_its_name() -> None:
    fields = of_list("", watch=True, name="a").selection.fields
    assert fields is not None
    assert fields.exact("metadata.name") == "a"
    same = of_list("fieldSelector=metadata.name%3Da", watch=True, name="a").selection.fields
    assert same is not None
    assert same.exact("metadata.name") == "a"
    text = "fieldSelector metadata.name doesn't match requested name"
    query = parse_query("fieldSelector=metadata.name%3Db")
    assert refusal(exchange.parse_list_options, THING, "default", "a", query, watch=True) == (400, text)


WINDOWS: list[tuple[str, str, Window | str]] = [
    ("the newest state", "", Window(0, False, 0)),
    ("any state", "resourceVersion=0", Window(None, limit=0)),
    ("any state, in pages", "resourceVersion=0&limit=5", Window(None, limit=5)),
    ("not older than a version", "resourceVersion=7", Window(7, False, 0)),
    ("a page of a version is exact", "resourceVersion=7&limit=5", Window(7, True, 5)),
    ("a page of a single object is not", "resourceVersion=7&limit=5&fieldSelector=metadata.name%3Da", Window(7, False, 5, waits=False)),
    ("a page not older than a version", "resourceVersion=7&limit=5&resourceVersionMatch=NotOlderThan",
     Window(7, False, 5)),
    ("exactly a version", f"{EXACT}=7", Window(7, True, 0)),
    ("a version that is none", "resourceVersion=x",
     'invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax'),
]  # fmt: skip


PAGED: list[tuple[str, str, Window]] = [
    ("the newest state", "", Window(0, False, 0)),
    ("exactly a version", "resourceVersion=7", Window(7, True, 0)),
    ("not older than a version", "resourceVersion=7&resourceVersionMatch=NotOlderThan", Window(7, False, 0)),
    ("of a single object, the newest", "resourceVersion=7&fieldSelector=metadata.name%3Da", Window(7, False, 0, waits=False)),
]  # fmt: skip


@pytest.mark.parametrize(("query", "expected"), [row[1:] for row in PAGED], ids=[row[0] for row in PAGED])
def test_the_state_whose_objects_are_deleted(query: str, expected: Window) -> None:
    assert exchange.window(of_list(query), paged=True) == expected


@rows(("query", "expected"), [row[1:] for row in WINDOWS], ids=[row[0] for row in WINDOWS])
def test_the_state_that_a_list_shows(query: str, expected: Window | str) -> None:
    if isinstance(expected, str):
        assert refusal(exchange.window, of_list(query)) == (400, expected)
    else:
        assert exchange.window(of_list(query)) == expected
