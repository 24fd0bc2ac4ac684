"""Arguments of a query and of a body: their types, defaults, and what is said about those that are wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.control.arguments import (
    BOOLEAN,
    DURATION,
    INTEGER,
    NUMBER,
    OBJECT,
    OBJECTS,
    TEXT,
    TEXTS,
    Argument,
    Arguments,
    from_body,
    from_query,
    one_of,
)
from tests.rows import rows

PATH = "/_noxu/tenants"
DECLARED: Arguments = {
    "name": Argument(TEXT, "a name", ""),
    "count": Argument(INTEGER, "how many", 1),
    "share": Argument(NUMBER, "of all"),
    "hold": Argument(BOOLEAN, "as long as the connection", default=False),
    "ttl": Argument(DURATION, "how long"),
    "files": Argument(TEXTS, "their names", ()),
    "from": Argument(one_of("empty", "template"), "what it begins with", "empty"),
    "object": Argument(OBJECT, "an object"),
    "objects": Argument(OBJECTS, "objects"),
}
DEFAULTS = {name: argument.default for name, argument in DECLARED.items()}


@rows(
    "query, values",
    [
        ({}, {}),
        ({"name": ["a"]}, {"name": "a"}),
        ({"count": ["-3"]}, {"count": -3}),
        ({"share": ["0.5"]}, {"share": 0.5}),
        ({"hold": [""]}, {"hold": True}),
        ({"hold": ["FALSE"]}, {"hold": False}),
        ({"ttl": ["1m30s"]}, {"ttl": 90.0}),
        ({"ttl": ["2.5"]}, {"ttl": 2.5}),
        ({"files": ["a,b", "c"]}, {"files": ["a", "b", "c"]}),
        ({"from": ["template"]}, {"from": "template"}),
    ],
)
def test_a_query_becomes_values(query: Any, values: Any) -> None:
    assert from_query(query, DECLARED, PATH) == DEFAULTS | values


@rows(
    "query, message",
    [
        (
            {"hld": ["true"]},
            'there is no parameter "hld" of /_noxu/tenants, which takes name, count, share, hold, ttl, files, from, '
            "object, objects; did you mean hold?",
        ),
        ({"count": ["x"]}, 'count: expected an integer, not "x"'),
        ({"count": [str(2**70)]}, f'count: expected an integer, not "{2**70}"'),
        ({"share": ["nan"]}, "share: expected a number, not NaN"),
        ({"hold": ["maybe"]}, 'hold: expected true or false, not "maybe"'),
        ({"hold": ["1", "0"]}, "hold: it is given more than once"),
        ({"ttl": ["soon"]}, 'ttl: expected a duration such as "1m30s", or seconds, not "soon"'),
        ({"from": ["templat"]}, "from: 'templat' is none of empty, template; did you mean template?"),
        ({"object": ["{}"]}, "object: it is an object, and may only be in a body"),
        (
            {"count": ["x"], "ttl": ["y" * 200]},
            f'ttl: expected a duration such as "1m30s", or seconds, not "{"y" * 99}…',
        ),
    ],
)
def test_a_wrong_query_is_refused(query: Any, message: str) -> None:
    with pytest.raises(ApiError) as refusal:
        from_query(query, DECLARED, PATH)
    assert (refusal.value.code, refusal.value.reason) == (400, "BadRequest")
    assert message in refusal.value.message


@rows(
    "body, values",
    [
        ("", {}),
        ({}, {}),
        ({"name": "a", "count": 2, "share": 1, "hold": True}, {"name": "a", "count": 2, "share": 1.0, "hold": True}),
        ({"ttl": "10s"}, {"ttl": 10.0}),
        ({"ttl": 0.5}, {"ttl": 0.5}),
        ({"ttl": None, "name": None}, {}),
        ({"files": ["a"], "object": {"a": 1}, "objects": [{}]}, {"files": ["a"], "object": {"a": 1}, "objects": [{}]}),
    ],
)
def test_a_body_becomes_values(body: Any, values: Any) -> None:
    sent = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    assert from_body(sent, DECLARED, PATH) == DEFAULTS | values


@rows(
    "body, code, message",
    [
        ("{", 400, "the body is no JSON object: unexpected end of JSON input"),
        ("[1]", 400, "the body is no JSON object, but [1]"),
        ('{"name": "a", "name": "b"}', 400, 'the body is invalid: duplicate field "name"'),
        ('{"nam": "a"}', 422, "did you mean name?"),
        ('{"name": 1}', 422, "the body is invalid: name: expected a text, not 1"),
        ('{"count": true}', 422, "count: expected an integer, not true"),
        ('{"hold": "yes"}', 422, 'hold: expected true or false, not "yes"'),
        ('{"ttl": []}', 422, "ttl: expected a number, not []"),
        ('{"files": "a"}', 422, 'files: expected a list of texts, not "a"'),
        ('{"objects": [1]}', 422, "objects: expected a list of objects, not [1]"),
        ('{"from": 3}', 422, "from: 3 is none of empty, template"),
    ],
)
def test_a_wrong_body_is_refused(body: str, code: int, message: str) -> None:
    with pytest.raises(ApiError) as refusal:
        from_body(body.encode(), DECLARED, PATH)
    assert refusal.value.code == code
    assert message in refusal.value.message


def test_every_wrong_field_is_a_cause() -> None:
    with pytest.raises(ApiError) as refusal:
        from_body(b'{"nam": "a", "count": "x"}', DECLARED, PATH)
    assert [cause["field"] for cause in refusal.value.causes] == ["nam", "count"]


def test_a_message_names_the_first_wrong_arguments_only() -> None:
    """Clients choose how many there are, and how long."""
    names = ["n" * 1_000_000, *(f"a{n}" for n in range(9999))]
    with pytest.raises(ApiError) as refusal:
        from_query({name: ["1"] for name in names}, DECLARED, PATH)
    assert f'there is no parameter "{"n" * 100}…" of' in refusal.value.message
    assert refusal.value.message.endswith("; and 9990 more")
    assert len(refusal.value.message) < 5000
    with pytest.raises(ApiError) as refusal:
        from_body(json.dumps(dict.fromkeys(names, 1)).encode(), DECLARED, PATH)
    assert [len(cause["field"]) for cause in refusal.value.causes] == [101, *[2] * 9]
    assert len(json.dumps(refusal.value.status)) < 10_000
    twice = ",".join(f'"a{n}":1,"a{n}":1' for n in range(50))
    with pytest.raises(ApiError, match=r'duplicate field "a9"; and 40 more$'):
        from_body(f"{{{twice}}}".encode(), DECLARED, PATH)


def test_a_required_argument() -> None:
    declared = {"name": Argument(TEXT, "a name", required=True)}
    with pytest.raises(ApiError, match="name: it is required"):
        from_body(b"", declared, PATH)
    with pytest.raises(ApiError, match="name: it is required"):
        from_body(b'{"name": null}', declared, PATH)


def test_a_call_without_arguments_takes_none() -> None:
    with pytest.raises(ApiError, match='no parameter "a" of /_noxu/tenants, which takes none'):
        from_query({"a": ["1"]}, {}, PATH)
    with pytest.raises(ApiError, match="/_noxu/tenants takes no body with this method"):
        from_body(b"{}", {}, PATH)
