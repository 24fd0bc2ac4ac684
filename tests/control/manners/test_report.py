"""The report: counts, what is tolerated, reports of several servers, text and HTML."""

from __future__ import annotations

import html.parser
import json
from typing import Final

import pytest

from noxu.control.manners.habits import HABITS, tolerated
from noxu.control.manners.observed import Observed
from noxu.control.manners.page import as_page
from noxu.control.manners.report import MAX_EVIDENCE, MAX_SEEN, impolite, merged, report
from noxu.control.manners.text import as_text
from tests.control.manners.recordings import BEGAN, WIDGETS, asked, request, wrote

NO_OPS: Final = Observed(asked(*(f"{n} update a" for n in range(0, 60, 10))))
NOTHING: Final = Observed([])


def test_what_is_counted() -> None:
    requests = [
        *asked("0 get a", "1 get b 404", "2 update a", "3 list"),
        request("4 patch a", subresource="status"),
        request("5 get a", agent="kubectl/v1"),
        request("6 get a", by_handle=True),
        request("7 get x", resource="", path="/_noxu/report"),
    ]
    value = report(Observed(requests, knows_writes=False), BEGAN)
    assert value["since"] == "2027-01-15T08:00:00.000000Z"
    assert [(client["userAgent"], client["requests"], client["errors"]) for client in value["clients"]] == [
        ("operator/v1 (linux)", 5, 1),
        ("kubectl/v1", 1, 0),
    ]
    assert [
        (item["requests"], item["errors"], item["verb"], item["resource"]) for item in value["clients"][0]["asked"]
    ] == [
        (2, 1, "get", WIDGETS),
        (1, 0, "list", WIDGETS),
        (1, 0, "patch", f"{WIDGETS}/status"),
        (1, 0, "update", WIDGETS),
    ]


def test_a_client_is_a_user_agent_and_a_user() -> None:
    value = report(Observed([*asked("0 get a"), *asked("0 get a", user="jane")]))
    assert [client["user"] for client in value["clients"]] == ["jane", "system:anonymous"]


def test_clients_with_bad_habits_come_first() -> None:
    value = report(Observed([*NO_OPS.requests, *asked(*(f"{n * n} get a" for n in range(50)), agent="busy/v1")]))
    assert [client["userAgent"] for client in value["clients"]] == ["operator/v1 (linux)", "busy/v1"]


def test_a_report_is_json_and_bounded() -> None:
    value = report(Observed(asked(*(f"{n / 10} update a" for n in range(200)))))
    assert json.loads(json.dumps(value)) == value
    habits = {habit["habit"]: habit for habit in value["clients"][0]["habits"]}
    assert (habits["no_op_writes"]["count"], len(habits["no_op_writes"]["seen"])) == (200, MAX_SEEN)
    assert len(habits["hot_loops"]["seen"][0]["requests"]) == MAX_EVIDENCE
    assert habits["hot_loops"]["seen"][0]["number"] == 101


@pytest.mark.parametrize(
    ("changes", "habits"), [(0, ["retries_without_backoff"]), (1, ["retries_without_backoff"]), (2, [])]
)
def test_an_attempt_after_a_change_by_others_is_no_retry(changes: int, habits: list[str]) -> None:
    """Five attempts in 40 ms, of which some follow from what somebody else has written meanwhile."""
    requests = [*asked("-1 list"), *(request(f"{n / 100} create a 500", revision=min(n, changes)) for n in range(6))]
    writes = wrote(*(f"{n} patch b: spec.size" for n in range(changes)), agent="rival/v2")
    [client] = report(Observed(requests, writes))["clients"]
    assert [habit["habit"] for habit in client["habits"]] == habits


# -- what is tolerated -------------------------------------------------------------------------------------------------


def test_some_no_ops_are_tolerated() -> None:
    value = report(NO_OPS)
    [sentence] = impolite(value, {})
    assert sentence.startswith(
        "operator/v1: 6 × write that changes nothing (5 tolerated): widgets.example.com default/a was so already. Compare"
    )
    assert (
        "2027-01-15T08:00:00.000000Z  200  PUT /apis/example.com/v1/namespaces/default/widgets/a  (0 update a)"
        in sentence
    )
    assert impolite(value, {"no_op_writes": 6}) == []
    assert impolite(value, {"no_op_writes": None}) == []
    assert len(impolite(value, {"no_op_writes": 0})) == 1
    assert impolite(report(NOTHING), {}) == []


@pytest.mark.parametrize(
    ("thresholds", "message"),
    [
        ({"no_ops": 1}, "no_ops is no habit: there are hot_loops, fights"),
        ({"fights": -1}, "fights: -1 is no number of occurrences"),
        ({"fights": True}, "fights: True is no number of occurrences"),
        ({"fights": "2"}, "fights: '2' is no number of occurrences"),
    ],
)
def test_thresholds_that_are_refused(thresholds: dict[str, int | None], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tolerated(thresholds)


def test_every_habit_says_in_a_sentence_what_to_change() -> None:
    for name, habit in HABITS.items():
        assert habit.advice.endswith("."), name
        assert habit.advice[0].isupper(), name


# -- several servers ---------------------------------------------------------------------------------------------------


def test_reports_of_several_servers_are_added() -> None:
    one, other = report(NO_OPS, BEGAN), report(Observed(asked("0 update a", "1 get a 404")), BEGAN + 5, ["a note"])
    value = merged([one, other, one])
    [client] = value["clients"]
    assert (value["since"], value["requests"], value["notes"]) == (one["since"], 14, ["a note"])
    assert (client["requests"], client["errors"]) == (14, 1)
    assert client["asked"][0] == {"verb": "update", "resource": WIDGETS, "requests": 13, "errors": 0}
    [habit] = client["habits"]
    assert (habit["count"], len(habit["seen"])) == (13, 13)
    assert one == report(NO_OPS, BEGAN)  # nothing is changed in place
    assert merged([one]) == one
    assert merged([])["clients"] == []


# -- for people --------------------------------------------------------------------------------------------------------


HOSTILE: Final = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></table><svg onload=alert(1)>",
    "&lt;b&gt; &amp;",
    "\x1b]0;title\x07\x1b[2J\x00\u202e",
    "<!--",
    "javascript:alert(1)",
)


class Elements(html.parser.HTMLParser):
    """The elements of a page, and the attributes that they have."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


def hostile(text: str) -> Observed:
    return Observed(
        asked(
            *(f"{n} update a" for n in range(9)),
            agent=text,
            user=text,
            resource=text,
            namespace=text,
            subresource=text,
            path=f"/{text}",
            id=text,
            unknown=(text,),
            deprecation=text,
        )
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_a_page_has_no_markup_of_others(text: str) -> None:
    page = as_page(report(hostile(text), 0.0, [text]))
    elements = Elements()
    elements.feed(page)
    elements.close()
    assert elements.open == []
    assert elements.names <= {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "table", "tr", "th", "td", "ul", "li", "span",
    }  # fmt: skip
    assert elements.attributes <= {"lang", "charset", "http-equiv", "content", "name", "class"}
    assert "default-src 'none'" in page
    assert all(char.isprintable() or char == "\n" for char in page)
    if text.isprintable():
        assert any(text in shown for shown in elements.texts)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_has_no_characters_that_a_terminal_obeys(text: str) -> None:
    assert all(char.isprintable() or char == "\n" for char in as_text(report(hostile(text), 0.0, [text])))


def test_an_empty_report() -> None:
    assert as_text(report(NOTHING)) == "0 requests of 0 clients, no bad manners"
    assert "no bad manners" in as_page(report(NOTHING))
