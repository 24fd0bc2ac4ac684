"""Which requests rules hit: conditions, counting, chance."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from noxu.control.faults.armed import MAX_FIRED, Armed, Asked, chance
from noxu.control.faults.rules import parse
from noxu.values import Json, Object
from tests.clocks import START
from tests.rows import rows

WIDGET = Asked("update", "widgets.example.com", "", "shop", "a", "jane", "operator/1", "id-1")


def armed(*values: Json, seed: int = 0) -> Armed:
    rules = Armed(seed)
    rules.add(parse(values), START)
    return rules


def names(rules: Armed, asked: Asked = WIDGET, after: float = 0.0) -> list[str]:
    return [hit.rule.name for hit in rules.hits(asked, START + timedelta(seconds=after))]


@rows(
    ("match", "other"),
    [
        ({"verbs": ["update"]}, {"verb": "patch"}),
        ({"resource": "widgets.example.com"}, {"resource": "gadgets.example.com"}),
        ({"subresource": ""}, {"subresource": "status"}),
        ({"namespace": "shop"}, {"namespace": "attic"}),
        ({"name": "a"}, {"name": "b"}),
        ({"user": "jane"}, {"user": "janet"}),
        ({"user": "j*e"}, {"user": "john"}),
        ({"userAgent": "operator/*"}, {"agent": "kubectl/1"}),
    ],
)
def test_a_request_has_to_have_everything(match: Object, other: dict[str, str]) -> None:
    rules = armed({"match": match, "error": 500})
    assert names(rules) == ["error"]
    assert names(rules, WIDGET._replace(**other)) == []  # type: ignore[arg-type]


def test_a_rule_without_a_subresource_is_about_all() -> None:
    rules = armed({"match": {"resource": "widgets.example.com"}, "error": 500})
    assert names(rules, WIDGET._replace(subresource="status")) == ["error"]


@rows(
    ("limits", "hit"),
    [
        ({}, [1, 2, 3, 4, 5, 6]),
        ({"nth": 3}, [3]),
        ({"every": 2}, [2, 4, 6]),
        ({"times": 2}, [1, 2]),
        ({"every": 2, "times": 2}, [2, 4]),
        ({"from": 3}, [4, 5, 6]),
        ({"until": 2}, [1, 2]),
        ({"from": 2, "until": 4, "times": 1}, [3]),
        ({"from": "2026-01-02T03:04:08Z"}, [4, 5, 6]),
    ],
)
def test_which_of_six_requests_are_hit(limits: Object, hit: Sequence[int]) -> None:
    """They come one a second, the first when the rule is added."""
    rules = armed({"error": 500, **limits})
    assert [n for n in range(1, 7) if names(rules, after=n - 1)] == list(hit)


def test_requests_of_others_are_not_counted() -> None:
    rules = armed({"match": {"name": "a"}, "nth": 2, "error": 500})
    assert [bool(names(rules, WIDGET._replace(name=name))) for name in "abbaa"] == [False, False, False, True, False]


def test_chance_depends_on_the_seed_the_rule_and_the_number_only() -> None:
    rule = {"probability": 0.3, "error": 500, "name": "r"}

    def pattern(rules: Armed, between: int) -> list[bool]:
        hits = []
        for _ in range(200):
            hits.append(bool(names(rules)))
            for _ in range(between):
                names(rules, WIDGET._replace(verb="get"))
        return hits

    only_updates = {**rule, "match": {"verbs": ["update"]}}
    one = pattern(armed(only_updates, seed=7), 0)
    assert pattern(armed({"delay": "1s", "name": "other", "probability": 0.5}, only_updates, seed=7), 3) != []
    assert pattern(armed(only_updates, seed=7), 3) == one
    assert pattern(armed(only_updates, seed=8), 0) != one
    assert 30 < sum(one) < 90


def test_chance_is_even() -> None:
    drawn = [chance(seed, "rule", number) for seed in range(10) for number in range(1000)]
    tenths = [sum(n / 10 <= value < (n + 1) / 10 for value in drawn) for n in range(10)]
    assert all(850 < tenth < 1150 for tenth in tenths)


def test_several_rules_hit_in_the_order_in_which_they_were_added() -> None:
    rules = armed({"delay": "1s", "match": {"name": "a"}}, {"error": 500}, {"hang": True, "match": {"name": "b"}})
    assert names(rules) == ["delay", "error"]
    assert names(rules, WIDGET._replace(name="b")) == ["error", "hang"]


def test_what_was_hit_is_listed() -> None:
    rules = armed({"error": "Conflict", "nth": 2})
    names(rules)
    names(rules, after=1)
    assert [hit.described() for hit in rules.fired] == [
        {
            "rule": "error",
            "number": 2,
            "time": "2026-01-02T03:04:06Z",
            "error": "Conflict",
            "request": {
                "verb": "update",
                "resource": "widgets.example.com",
                "namespace": "shop",
                "name": "a",
                "user": "jane",
                "agent": "operator/1",
                "id": "id-1",
            },
        }
    ]
    assert rules.described() == [{"name": "error", "error": "Conflict", "nth": 2, "matched": 2, "hit": 1}]


def test_what_was_hit_is_bounded() -> None:
    rules = armed({"error": 500})
    for _ in range(MAX_FIRED + 5):
        names(rules)
    assert (len(rules.fired), rules.number_fired, rules.fired[0].number) == (MAX_FIRED, MAX_FIRED + 5, 6)


def test_removed_and_replaced_rules_hit_nothing() -> None:
    rules = armed({"error": 500}, {"delay": "1s"})
    rules.remove("error")
    assert names(rules) == ["delay"]
    rules.replace(parse([{"reset": "before"}]), 3, START)
    assert (names(rules), rules.seed) == (["reset"], 3)
    rules.replace((), 0, START)
    assert not rules


def test_many_kinds_of_requests_are_forgotten() -> None:
    rules = armed({"error": 500})
    for n in range(3000):
        assert names(rules, WIDGET._replace(resource=f"r{n}")) == ["error"]
