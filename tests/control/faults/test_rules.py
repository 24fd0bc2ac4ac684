"""Rules: what they are parsed to, and what is said about those that are wrong."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.control.faults import rules
from noxu.control.faults.rules import VERBS, from_arguments, parse
from noxu.values import Json
from tests.rows import rows

FULL = {
    "name": "slow-status",
    "match": {
        "verbs": ["update", "patch"],
        "resource": "widgets.example.com",
        "subresource": "status",
        "namespace": "shop",
        "name": "a",
        "user": "system:serviceaccount:*",
        "userAgent": "operator/*",
    },
    "every": 5,
    "times": 2,
    "probability": 0.5,
    "from": "10s",
    "until": "2030-01-01T00:00:00Z",
    "delay": "5ms..20ms",
}


def test_a_rule_with_every_field() -> None:
    [rule] = parse([FULL])
    assert (rule.name, rule.source) == ("slow-status", FULL)
    assert rule.match[:5] == (frozenset({"update", "patch"}), "widgets.example.com", "status", "shop", "a")
    assert rule.match.user is not None
    assert rule.match.user.fullmatch("system:serviceaccount:shop:operator")
    assert rule.match.agent is not None
    assert not rule.match.agent.fullmatch("kubectl/v1.37")
    assert rule.limits == (0, 5, 2, 0.5, 10.0, datetime(2030, 1, 1, tzinfo=UTC))
    assert rule.effect == ("delay", {"min": 0.005, "max": 0.02})


def test_the_shortest_rule_hits_everything() -> None:
    [rule] = parse([{"error": 503}])
    assert (rule.name, rule.match.verbs, rule.match.resource) == ("error", frozenset(VERBS), None)


def test_rules_without_a_name_get_one() -> None:
    assert [rule.name for rule in parse([{"hang": True}, {"hang": True}, {"error": 500}], ["hang"])] == [
        "hang-2",
        "hang-3",
        "error",
    ]


@rows(
    ("verbs", "meant"),
    [
        ("write", VERBS[3:]),
        (["read"], VERBS[:3]),
        (["*"], VERBS),
        (["read", "delete"], (*VERBS[:3], "delete")),
        ("watch", ("watch",)),
    ],
)
def test_verbs(verbs: Json, meant: tuple[str, ...]) -> None:
    [rule] = parse([{"match": {"verbs": verbs}, "error": 500}])
    assert rule.match.verbs == frozenset(meant)


@rows(
    ("effect", "parameters"),
    [
        ({"error": "Conflict"}, {"code": 409, "reason": "Conflict", "retry_after": 0}),
        ({"error": 409}, {"code": 409, "reason": "Conflict"}),
        ({"error": 410}, {"code": 410, "reason": "Expired"}),
        ({"error": 429}, {"code": 429, "reason": "TooManyRequests", "retry_after": 1}),
        ({"error": 500}, {"code": 500, "reason": "InternalError"}),
        ({"error": 502}, {"code": 502, "reason": "", "message": "a fault was injected"}),
        ({"error": {"code": 503, "message": "down", "retryAfter": 7}}, {"code": 503, "reason": "ServiceUnavailable", "message": "down", "retry_after": 7}),
        ({"error": {"code": 418, "reason": "Teapot"}}, {"code": 418, "reason": "Teapot"}),
        ({"delay": "20ms"}, {"min": 0.02, "max": 0.02}),
        ({"delay": "5ms..1s"}, {"min": 0.005, "max": 1.0}),
        ({"delay": 2}, {"min": 2.0, "max": 2.0}),
        ({"hang": True}, {}),
        ({"reset": "after"}, {"what": "after"}),
        ({"store": "unknown"}, {"what": "unknown"}),
        ({"stale": "5s"}, {"by": "5s", "seconds": 5.0, "all": False}),
        ({"stale": {"revisions": 3, "all": True}}, {"revisions": 3, "all": True}),
        ({"watch": "expire"}, {"what": "expire"}),
        ({"watch": "drop", "breaks-contract": True}, {"what": "drop"}),
        ({"watch": {"late": "1s..2s"}}, {"what": "late", "min": 1.0, "max": 2.0}),
        ({"view": "freeze", "match": {"resource": "widgets"}}, {"what": "freeze"}),
        ({"restart": "2s"}, {"seconds": 2.0}),
        ({"pod": "crash-loop", "match": {"namespace": "shop"}}, {"simulate": "crash-loop", "pods": ""}),
        ({"pod": {"simulate": "oom", "pods": "web-*"}, "probability": 0.5}, {"simulate": "oom", "pods": "web-*"}),
        ({"webhook": {"deny": "no"}}, {"what": "deny", "message": "no"}),
        ({"webhook": {"delay": "1s"}}, {"what": "delay", "min": 1.0, "max": 1.0}),
        ({"lease": "lost"}, {"code": 409, "reason": "Conflict"}),
        ({"mutate": {"patch": {"spec": None}}, "trigger": {"created": "w"}}, {"resource": "", "patch": {"spec": None}}),
    ],
)  # fmt: skip
def test_effects(effect: Mapping[str, Json], parameters: Mapping[str, Any]) -> None:
    [rule] = parse([effect])
    assert rule.effect.kind == next(iter(effect))
    assert rule.effect.parameters.items() >= parameters.items()


def test_an_effect_on_writes_leaves_reads_alone() -> None:
    [rule] = parse([{"store": "unavailable"}])
    assert rule.match.verbs == frozenset(VERBS[3:])


@rows(
    ("rule", "message"),
    [
        ("conflict", "rules[0]: a rule is an object"),
        ({}, "rules[0]: a rule has one effect, and it has none: error, delay, hang, reset, store, stale, watch, webhook, lease, restart, mutate, process, pod, view"),
        ({"pod": "crash-lop"}, 'rules[0].pod: "crash-lop" is not known: there are image-pull-error'),
        ({"pod": {"simulate": "oom", "name": "a"}}, 'rules[0].pod: there is no "name", only simulate, pods, selector'),
        ({"pod": {"simulate": "oom", "selector": "a=b=c"}}, "rules[0].pod: "),
        ({"pod": {"pods": "a"}}, "rules[0].pod: it is what pods do, such as crash-loop"),
        ({"pod": "oom", "nth": 2}, "rules[0].nth: the rule holds for its pods as long as it is on"),
        ({"pod": "oom", "match": {"user": "a"}}, "rules[0].match.user: a pod is not asked for"),
        ({"pod": "oom", "match": {"resource": "widgets"}}, "rules[0].match.resource: it is about pods"),
        ({"error": 500, "delay": "1s"}, "rules[0]: a rule has one effect, and error and delay are several"),
        ({"eror": 500}, "rules[0].eror: there is no such field; did you mean error?"),
        ({"error": 500, "name": "a b"}, "rules[0].name: a name has at most 100 letters, digits, - . _ between them"),
        ({"error": 500, "name": "taken"}, 'rules[0].name: there is a rule "taken" already'),
        ({"error": 200}, "rules[0].error: the code 200 is not one of an error: 400 to 599"),
        ({"error": "Conflicts"}, "rules[0].error: 'Conflicts' is no reason of a Status; did you mean Conflict?"),
        ({"error": True}, "rules[0].error: it is a reason such as Conflict, a code, or {code, reason, message, retryAfter}"),
        ({"error": {"kode": 500}}, 'rules[0].error: there is no "kode", only code, reason, message, retryAfter; did you mean code?'),
        ({"error": {"code": 500, "retryAfter": -1}}, "rules[0].error: retryAfter is a number of seconds"),
        ({"delay": "20ms..5ms"}, "rules[0].delay: 20ms..5ms is not a delay, such as 20ms or 5ms..20ms, of at most an hour"),
        ({"delay": "2h"}, "rules[0].delay: 2h is not a delay"),
        ({"delay": "fast"}, "rules[0].delay: "),
        ({"hang": False}, "rules[0].hang: it is true"),
        ({"reset": "befor"}, "rules[0].reset: 'befor' is none of before, after; did you mean before?"),
        ({"store": "unknown", "match": {"verbs": ["get", "list"]}}, "rules[0].match.verbs: store is for create, update, patch, delete, deletecollection, so it never hits get, list"),
        ({"error": 500, "match": []}, "rules[0].match: it is an object, such as {verbs: [update], resource: widgets}"),
        ({"error": 500, "match": {"verb": ["get"]}}, "rules[0].match.verb: there is no such field; did you mean verbs?"),
        ({"error": 500, "match": {"verbs": []}}, "rules[0].match.verbs: it is a list of verbs"),
        ({"error": 500, "match": {"verbs": ["updat"]}}, "rules[0].match.verbs: 'updat' is none of get, list, watch, create, update, patch, delete, deletecollection, read, write, *; did you mean update?"),
        ({"error": 500, "match": {"name": 7}}, "rules[0].match.name: it is a text"),
        ({"watch": "drop"}, "rules[0].watch: no API server loses an event of a watch that goes on: write `breaks-contract: true` if that is meant"),
        ({"watch": "lose"}, "rules[0].watch: 'lose' is none of drop, duplicate, close, expire, silent"),
        ({"watch": {"late": "x"}}, "rules[0].watch: "),
        ({"view": "freeze"}, "rules[0].match: a view is of one resource: match: {resource: widgets}"),
        ({"view": "freeze", "match": {"resource": "w", "subresource": "status"}}, "rules[0].match.subresource: a view is of objects, whose parts are seen together"),
        ({"view": "hold", "match": {"resource": "w"}, "times": 2}, "rules[0].times: a view lasts as long as the rule is on: from and until say how long"),
        ({"stale": {}}, "rules[0].stale: it is a duration such as 5s, or {revisions: 3}"),
        ({"stale": {"by": "5s", "revisions": 3}}, "rules[0].stale: it is stale by a duration or by a number of revisions: one of them"),
        ({"error": 500, "breaks-contract": "yes"}, "rules[0].breaks-contract: it is true or false"),
        ({"mutate": {"patch": {}}}, "rules[0]: it needs a trigger, which says when it happens"),
        ({"mutate": {}, "trigger": {"created": "w"}}, "rules[0].mutate: it has a merge patch: {patch: {spec: {replicas: 2}}}"),
        ({"mutate": {"patch": {}, "resource": "w"}, "trigger": {"created": "w"}}, "rules[0].mutate: resource and name belong together"),
        ({"mutate": {"patch": {}}, "trigger": {"created": "w"}, "times": 2}, "rules[0].times: no request is hit: the trigger says when it happens"),
        ({"error": 500, "trigger": {"created": "w", "nth": 0}}, "rules[0].trigger.nth: it is an integer from 1 on"),
        ({"error": 500, "trigger": {}}, "rules[0].trigger: it has one of created, updated, deleted, with a resource"),
        ({"webhook": "slow"}, "rules[0].webhook: it is fail, deny, {deny: why} or {delay: 2s}"),
        ({"webhook": "fail", "match": {"verbs": ["get"]}}, "rules[0].match.verbs: webhook is for create, update, patch, delete, so it never hits get"),
        ({"restart": "0s"}, "rules[0].restart: it is a duration such as 2s, of at most an hour"),
        ({"error": 500, "nth": 0}, "rules[0].nth: it is an integer from 1 on"),
        ({"error": 500, "nth": 2, "times": 3}, "rules[0].nth: it is one request, so times says nothing: leave one of them out"),
        ({"error": 500, "probability": 0}, "rules[0].probability: it is a number above 0 and up to 1"),
        ({"error": 500, "from": "1m", "until": "10s"}, "rules[0].until: it is not after `from`, so the rule can never hit"),
        ({"error": 500, "from": "soon"}, "rules[0].from: it is a duration such as 10s, or a time such as 2030-01-01T00:00:00Z"),
    ],
)  # fmt: skip
def test_what_is_wrong(rule: Json, message: str) -> None:
    with pytest.raises(ApiError) as error:
        parse([rule], ["taken"])
    assert (error.value.code, error.value.reason) == (422, "Invalid")
    assert message in error.value.message
    assert all(cause["field"].startswith("rules[0]") for cause in error.value.causes)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(ApiError) as error:
        parse([{"error": 1, "nth": 0}, {"hang": True}, {"delay": ""}])
    assert [cause["field"] for cause in error.value.causes] == ["rules[0].nth", "rules[0].error", "rules[2].delay"]


def test_there_is_a_limit() -> None:
    with pytest.raises(ApiError, match="there are 1001, and at most 1000 are allowed"):
        parse([{"hang": True}] * (rules.MAX_RULES + 1))


def test_arguments_of_python() -> None:
    given = {
        "resource": "widgets",
        "verbs": ["update"],
        "user_agent": "x*",
        "error": "Conflict",
        "times": 3,
        "name": None,
    }
    assert from_arguments(given) == {
        "match": {"resource": "widgets", "verbs": ["update"], "userAgent": "x*"},
        "error": "Conflict",
        "times": 3,
    }
