"""The timeline in a real browser: what a client writes, what follows from it, and how it is found."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlsplit

import pytest

from noxu import Noxu
from noxu.commands.api_client import ApiClient
from noxu.console.stream import Live
from tests.console.browser.conftest import PHONE
from tests.console.definition import PATH, widget

pytestmark = pytest.mark.slow
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def operator(server: Noxu) -> Iterator[None]:
    """A controller that watches Widgets, and sets the status of each new one."""
    asking, writing = (HTTPConnection(urlsplit(server.url).netloc) for _ in range(2))
    agent = {"User-Agent": "operator/v1 (linux)", "Content-Type": "application/merge-patch+json"}
    asking.request("GET", f"{PATH}?watch=1", headers=agent)
    stream: HTTPResponse = asking.getresponse()

    def reconcile() -> None:
        for line in iter(stream.readline, b""):
            event = json.loads(line)
            if event["type"] == "ADDED":
                path = f"{PATH}/{event['object']['metadata']['name']}/status"
                writing.request("PATCH", path, json.dumps({"status": {"ready": "yes"}}), agent)
                writing.getresponse().read()

    thread = threading.Thread(target=reconcile, daemon=True)
    thread.start()
    yield
    asking.sock.close()
    writing.close()


def test_a_write_and_what_follows_from_it(open_page: Open, api: ApiClient, operator: None) -> None:
    page = open_page("#/timeline?kind=widgets.example.com&by=table")
    page.get_by_text("Nothing matches").wait_for()
    api.send("POST", PATH, value=widget("first", size=3))
    page.get_by_role("row", name="operator/v1 patch status widgets.example.com default/first").wait_for()
    page.get_by_role("row", name="noxu create widgets.example.com default/first").get_by_role("link").click()
    detail = page.get_by_role("complementary", name="The chosen mark")
    detail.get_by_role("heading", name="noxu: create widgets.example.com default/first").wait_for()
    assert "operator/v1" in detail.inner_text()
    detail.get_by_role("link", name="operator/v1: patch status widgets.example.com default/first").click()
    detail.get_by_role("heading", name="operator/v1: patch status").wait_for()
    detail.get_by_text("ready").wait_for()
    assert "noxu: create widgets.example.com default/first" in detail.inner_text()


def test_the_keyboard_moves_between_marks(open_page: Open, api: ApiClient, operator: None) -> None:
    page = open_page("#/timeline?object=keys")
    page.get_by_text("Live").wait_for()  # when a write before that was is not known
    api.send("POST", PATH, value=widget("keys", size=3))
    page.get_by_role("status").get_by_text("2 marks").wait_for()  # the create, and the status of the operator
    picture = page.get_by_role("application")
    picture.focus()
    page.keyboard.press("Home")
    page.get_by_role("heading", name="noxu: create").wait_for()
    page.keyboard.press("ArrowDown")
    page.get_by_role("heading", name="operator/v1: patch").wait_for()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "detail"
    page.get_by_role("button", name="Close").click()
    page.get_by_role("complementary").wait_for(state="detached")


def test_what_is_chosen_stays_in_the_picture(open_page: Open, api: ApiClient) -> None:
    """It becomes narrower when the details are shown beside it."""
    page = open_page("#/timeline?object=chosen&client=noxu")
    page.get_by_text("Live").wait_for()
    for number in range(30):
        api.send("POST", PATH, value=widget(f"chosen-{number}", size=3))
    page.get_by_role("status").get_by_text("30 marks").wait_for()
    page.get_by_role("application").focus()
    page.keyboard.press("Home")
    heading = page.get_by_role("heading", name="default/chosen-0")
    heading.wait_for()
    left = page.evaluate("import('/_noxu/console/drawing.js').then((drawing) => drawing.LEFT)")
    page.locator("canvas").click(position={"x": left, "y": 65})  # beside a mark it would end the choice
    page.keyboard.press("End")
    page.get_by_role("heading", name="default/chosen-29").wait_for()
    page.keyboard.press("Home")
    heading.wait_for()


def test_a_server_that_has_only_started_says_how_to_go_on(open_page: Open) -> None:
    began = {"key": "1", "revision": 1, "at": 0, "lane": "noxu bootstrap", "what": "write", "verb": "create", "subresource": "",
             "resource": "namespaces", "namespace": "", "name": "default", "event": "ADDED", "because": [], "to": []}  # fmt: skip
    page = open_page("#/kinds")
    page.route("**/_noxu/console/timeline*", lambda route: route.fulfill(json={"marks": [began], "began": 1.5}))
    page.get_by_role("link", name="Timeline").click()
    page.get_by_text("Nothing has happened yet").wait_for()
    page.get_by_text("kubectl --server http://127.0.0.1:").wait_for()
    page.get_by_label("Object").fill("nothing")
    page.get_by_text("Nothing matches").wait_for()


def test_a_phone_shows_the_picture_first_and_what_can_be_chosen_at_a_touch(open_page: Open) -> None:
    page = open_page("#/timeline?outcome=refused", viewport=PHONE)
    folded = page.get_by_role("button", name="Shown: by outcome", expanded=False)
    folded.wait_for()
    assert not page.get_by_label("Client").is_visible()
    folded.click()
    page.get_by_label("Outcome").select_option("writes")
    assert "outcome=writes" in page.url


def test_a_refusal_says_why(open_page: Open, api: ApiClient) -> None:
    page = open_page("#/timeline?outcome=refused&by=table", viewport=PHONE, color_scheme="dark")
    page.get_by_text("Live").wait_for()
    api.send("POST", PATH, value=widget("large", size=9, limit=1))
    page.get_by_role("row", name="422 Invalid").get_by_role("link").click()
    page.locator(".problem").get_by_text("size exceeds the limit").wait_for()
    refused = page.locator(".reasons.refused")
    refused.get_by_text("!has(self.limit) || self.size <= self.limit").wait_for()
    assert "self.size\n9" in refused.inner_text()


def test_a_refused_write_is_tried_again_with_what_it_has_sent(open_page: Open, api: ApiClient) -> None:
    page = open_page("#/timeline?object=again&by=table")
    page.get_by_text("Live").wait_for()
    api.send("POST", PATH, value=widget("again", size=9, limit=1))
    page.get_by_role("row", name="422 Invalid").get_by_role("link").click()
    page.get_by_role("link", name="Change it and try again").click()
    editor = page.get_by_role("textbox", name="The object, as YAML")
    editor.get_by_text("again").wait_for()
    assert "limit: 1" in editor.inner_text()
    page.locator(".verdict").get_by_text("Refused").wait_for()


@pytest.fixture(scope="module")
def webhooks(server: Noxu) -> None:
    @server.mutating("widgets.example.com", operations=["CREATE"])
    def tag(request: Any) -> None:
        if request["object"]["metadata"]["name"].startswith("called"):
            request["object"]["metadata"]["labels"] = {"tag": "x"}

    @server.validating("widgets.example.com", operations=["CREATE"])
    def small(request: Any) -> str | None:
        return "seven is no size" if request["object"]["spec"]["size"] == 7 else None


def test_webhooks_are_lanes_and_a_write_says_what_became_of_it(open_page: Open, api: ApiClient, webhooks: None) -> None:
    page = open_page("#/timeline?object=called&by=table")
    page.get_by_text("Live").wait_for()
    value = widget("called", limit=5)
    value["spec"]["limt"] = 1
    api.send("POST", PATH, value=value)
    page.get_by_role("row", name="webhook tag review widgets.example.com default/called changed it").wait_for()
    page.get_by_role("row", name="noxu create widgets.example.com default/called").get_by_role("link").click()
    detail = page.get_by_role("complementary", name="The chosen mark")
    detail.get_by_role("link", name="webhook tag: review widgets.example.com default/called, and changes it").wait_for()
    detail.get_by_text("Did you mean spec.limit?").wait_for()
    detail.get_by_text("filled in with its default: 1").wait_for()
    detail.get_by_text("from spec.versions[name=v1].schema.openAPIV3Schema.").wait_for()
    detail.get_by_text('the webhook tag adds it: {"tag":"x"}').wait_for()
    detail.get_by_text("Stage by stage").click()
    detail.get_by_text("default mutated").wait_for()
    detail.get_by_text("What was sent").click()
    detail.get_by_text("limt: 1").wait_for()
    page.get_by_role("tab", name="By order").click()
    page.locator(".lane").get_by_text("webhook tag", exact=True).wait_for()


def test_a_webhook_that_refuses_leads_to_what_it_refused(open_page: Open, api: ApiClient, webhooks: None) -> None:
    page = open_page("#/timeline?object=called&by=table&outcome=refused")
    page.get_by_text("Live").wait_for()
    api.send("POST", PATH, value=widget("called-seven", size=7))
    said = 'admission webhook "small" denied the request: seven is no size'
    page.get_by_role("row", name=f"webhook small review widgets.example.com default/called-seven {said}").get_by_role(
        "link"
    ).click()
    detail = page.get_by_role("complementary", name="The chosen mark")
    detail.get_by_role("link", name="noxu: create widgets.example.com default/called-seven, refused: 400").click()
    detail.get_by_role("heading", name="noxu: create").wait_for()
    detail.locator(".reasons.refused").get_by_text("seven is no size").wait_for()
    assert page.evaluate("location.hash").startswith("#/timeline?object=called&by=table&outcome=refused&mark=r")


def test_what_marks_lead_to_and_how_many_are_kept(open_page: Open) -> None:
    """The pure part of the page, as the browser runs it."""
    page = open_page("#/kinds")
    result = page.evaluate(
        """async () => {
          const { addMarks, chainOf, newMarks, receiveLate, selectMarks } = await import("/_noxu/console/marks.js");
          const marks = newMarks();
          const mark = (n, lane, because = [], to = []) => ({ key: `${n}`, revision: n, at: n, lane, what: "write", resource: "x", name: "a", because, to });
          addMarks(marks, [mark(1, "a", [], ["b"]), mark(2, "b", [1], ["c", "b"]), mark(3, "b", [2]), mark(4, "c", [2]), mark(2, "b")]);
          const chain = [...chainOf(marks, marks.byKey.get("2"))].sort();
          receiveLate(marks, [[1, "late", 9]]);
          const late = marks.byKey.get("1").to;
          const ofC = selectMarks(marks.list, { client: "c" }).map((each) => each.key);
          const both = newMarks();
          addMarks(both, [{ ...mark(1, "a"), key: "r1", id: "x", what: "unchanged", code: 200 }, { ...mark(2, "a"), id: "y" }]);
          addMarks(both, [{ ...mark(1, "a"), id: "x" }, { ...mark(2, "a"), key: "r2", id: "y", what: "unchanged", code: 201 }]);
          const merged = both.list.map((each) => [each.key, each.what, each.code]);
          for (let n = 0; n < 50; n++) addMarks(marks, Array.from({ length: 1000 }, (_, i) => mark(10 + n * 1000 + i, "a")).map((each) => ({ ...each, id: `id-${each.key}` })));
          return { chain, late, ofC, merged, kept: marks.list.length <= 12000 && marks.byKey.size === marks.list.length && marks.byId.size <= marks.list.length, passed: marks.passed };
        }"""
    )
    assert result.pop("merged") == [["1", "write", 200], ["2", "write", 201]]
    assert result == {"chain": ["1", "2", "4"], "late": ["b", "late"], "ofC": ["2", "4"], "kept": True, "passed": 50004}


def test_ten_thousand_marks_are_drawn_with_few_elements(open_page: Open) -> None:
    """A canvas has them, whatever is zoomed; the table has the newest. What is forgotten is said."""
    many = [
        {"key": f"{n}", "revision": n, "at": 1767225600 + n, "lane": f"client-{n % 40}", "what": "write", "verb": "update",
         "subresource": "", "resource": "widgets.example.com", "namespace": "default", "name": f"w{n}", "event": "MODIFIED",
         "because": [n - 1], "to": [f"client-{(n + 1) % 40}"]}
        for n in range(1, 10_001)
    ]  # fmt: skip
    page = open_page("#/kinds")
    page.route(
        "**/_noxu/console/timeline*", lambda route: route.fulfill(json={"marks": many, "note": "", "began": 1.5})
    )
    page.get_by_role("link", name="Timeline").click()
    page.get_by_text("10,000 marks", exact=True).wait_for()
    elements = "document.querySelectorAll('main *').length"
    assert page.evaluate(elements) < 200
    page.get_by_role("button", name="Zoom in").click()
    assert page.evaluate(elements) < 200
    page.get_by_text("The page keeps the newest 10,000 marks").wait_for()
    page.get_by_role("tab", name="Table").click()
    page.get_by_text("The newest 200 of 10,000").wait_for()
    assert page.evaluate(elements) < 200 * 9 + 200


def test_another_process_at_the_address_has_its_own_marks(open_page: Open, api: ApiClient, server: Noxu) -> None:
    """Its revisions and requests are numbered anew."""
    control = server._runner.server.control
    assert api.send("GET", "/_noxu/console/timeline").value["began"] == control.part(Live).began
    page = open_page("#/kinds")
    lanes = page.evaluate(
        """async () => {
          const { addAnswer, newMarks } = await import("/_noxu/console/marks.js");
          const marks = newMarks();
          const mark = (n, lane) => ({ key: `${n}`, revision: n, at: n, lane, what: "write", resource: "x", name: "a", because: [], to: [] });
          const lanes = () => marks.list.map((each) => `${each.key} ${each.lane}`);
          addAnswer(marks, { began: 1.5, marks: [mark(5, "first")] });
          addAnswer(marks, { began: 1.5, marks: [mark(5, "first"), mark(6, "first")] });
          const first = lanes();
          addAnswer(marks, { began: 9.5, marks: [mark(5, "second")] });
          return [first, lanes()];
        }"""
    )
    assert lanes == [["5 first", "6 first"], ["5 second"]]


def test_what_the_timeline_does_not_know_is_said(open_page: Open) -> None:
    page = open_page("#/kinds")
    page.route(
        "**/_noxu/console/timeline*", lambda route: route.fulfill(json={"marks": [], "note": "who wrote is not known"})
    )
    page.get_by_role("link", name="Timeline").click()
    page.get_by_text("who wrote is not known").wait_for()
    assert page.get_by_text("are known from").count() == 0


def test_from_when_on_refusals_are_known_is_said(open_page: Open) -> None:
    page = open_page("#/kinds")
    page.route(
        "**/_noxu/console/timeline*",
        lambda route: route.fulfill(json={"marks": [], "note": "", "requestsMissBefore": 1767225605.75}),
    )
    page.get_by_role("link", name="Timeline").click()
    page.get_by_text("such as refusals, are known from 20").wait_for()
    said = page.get_by_text("are known from").text_content()
    time = page.evaluate("new Date(1767225605750).toTimeString().slice(0, 8)")
    assert said.split(" on;")[0].endswith(f"-01 {time}") or said.split(" on;")[0].endswith(f"-31 {time}")
