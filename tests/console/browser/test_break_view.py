"""Faults, snapshots and the clock from the page; and what clients do badly. In a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import yaml

from noxu import Noxu
from noxu.commands.api_client import ApiClient
from noxu.exploration import plans
from tests.console.definition import PATH, widget

pytestmark = pytest.mark.slow
Open = Callable[..., Any]


@pytest.fixture(autouse=True)
def _no_faults(api: ApiClient) -> Iterator[None]:
    yield
    api.send("DELETE", "/_noxu/faults")


def rules(api: ApiClient) -> list[Any]:
    return list((api.send("GET", "/_noxu/faults").value or {})["rules"])


def test_a_fault_is_added_turned_off_and_on(open_page: Open, api: ApiClient) -> None:
    page = open_page("#/break", token=True)
    page.get_by_label("Kind").fill("widgets")
    page.get_by_label("Client").fill("stranger/*")
    page.get_by_role("button", name="Add").click()
    switch = page.get_by_role("switch")
    switch.wait_for()
    [rule] = rules(api)
    assert (rule["error"], rule["times"], rule["match"]["userAgent"]) == ("Conflict", 1, "stranger/*")
    plan = page.get_by_role("link", name="Save as plan.yaml").get_attribute("href")
    [fault] = plans.parse(yaml.safe_load(unquote(plan.partition(",")[2]))).faults  # as `noxu explore --plan` reads it
    assert fault == {
        "name": "error",
        "match": {"resource": "widgets", "userAgent": "stranger/*", "verbs": ["write"]},
        "error": "Conflict",
        "times": 1,
    }
    switch.click()
    page.get_by_role("switch", checked=False).wait_for()
    assert rules(api) == []
    page.get_by_role("switch").click()
    page.get_by_role("switch", checked=True).wait_for()
    page.get_by_role("button", name="All off").click()
    page.get_by_role("switch", checked=False).wait_for()
    assert rules(api) == []


def test_a_mark_is_where_the_next_write_is_refused(open_page: Open, api: ApiClient) -> None:
    page = open_page("#/timeline?by=table&kind=widgets.example.com", token=True)
    page.get_by_text("Live").wait_for()
    api.send("POST", PATH, value=widget("broken", size=3))
    page.get_by_role("row", name="create widgets.example.com default/broken").get_by_role("link").click()
    page.get_by_text("Break it here").click()
    page.get_by_role("button", name="Refuse the next one: Conflict").click()
    page.get_by_text("On: Refuse the next one: Conflict").wait_for()
    api.send("DELETE", f"{PATH}/broken")
    assert api.send("POST", PATH, value=widget("broken", size=4)).status == 409
    page.get_by_role("row", name="409 Conflict").wait_for()
    api.send("DELETE", "/_noxu/faults")


def test_a_snapshot_is_restored_and_the_clock_moves(open_page: Open, api: ApiClient) -> None:
    page = open_page("#/break", token=True)
    page.get_by_role("button", name="Take a snapshot").click()
    page.get_by_role("button", name="Restore").wait_for()
    api.send("POST", PATH, value=widget("later"))
    page.get_by_role("button", name="Restore").click()
    page.get_by_text("1 deleted, 0 created again").wait_for()
    assert api.send("GET", f"{PATH}/later").status == 404
    page.get_by_role("button", name="Freeze").click()
    page.get_by_text("stands still").wait_for()
    before = (api.send("GET", "/_noxu/clock").value or {})["now"]
    page.get_by_role("button", name="+1 h").click()
    page.wait_for_function("before => !document.body.innerText.includes(before)", arg=before)
    assert (api.send("GET", "/_noxu/clock").value or {})["now"] > before
    page.get_by_role("button", name="Let it go on").click()
    page.get_by_text("goes on from there").wait_for()


def test_without_the_token_the_page_asks_for_it(open_page: Open) -> None:
    page = open_page("#/break")
    page.get_by_role("button", name="Read only").wait_for()
    page.get_by_text("Live").wait_for()  # it has answered, and nothing here follows the stream
    page.get_by_role("button", name="Take a snapshot").click()
    page.get_by_role("dialog", name="Change something").wait_for()


def test_a_client_has_manners_and_a_least_role(open_page: Open, server: Noxu) -> None:
    page = open_page("#/manners")
    page.get_by_role("heading", name="Manners").wait_for()
    asking = HTTPConnection(urlsplit(server.url).netloc)
    asking.request("GET", f"{PATH}?limit=500", headers={"User-Agent": "operator/v1"})
    asking.getresponse().read()
    asking.close()
    page.reload()
    page.get_by_role("link", name="operator/v1").click()
    page.get_by_text("kind: Role").wait_for()
    assert "widgets" in page.locator("pre").last.inner_text()


def test_rules_become_a_test(open_page: Open, server: Noxu, api: ApiClient) -> None:
    """The pure part of the page, as the browser runs it."""
    page = open_page("#/kinds")
    text, every = page.evaluate(
        """async () => {
          const { asPytest, faultsOfArrow, faultsOfWrite } = await import("/_noxu/console/faults.js");
          const mark = { resource: "widgets.example.com", namespace: "default", name: "a", verb: "update", lane: "x/v1", subresource: "status" };
          const shown = { ...mark, verb: "apply" };
          return [
            asPytest([faultsOfArrow(mark, "operator/v1 jane")[0][1], { match: {}, view: "freeze", hit: 1, matched: 2 }]),
            asPytest([...faultsOfArrow(mark, "operator/v1 jane"), ...faultsOfWrite(mark), ...faultsOfWrite(shown)].map(([, rule]) => rule)),
          ];
        }"""
    )
    assert text.splitlines()[:3] == [
        "def test_it_survives(noxu):",
        '    with noxu.fault(resource="widgets.example.com", namespace="default", name="a", user_agent="operator/v1*", user="jane", '
        'watch="drop", breaks_contract=True, times=1):',
        '        with noxu.fault(view="freeze"):',
    ]
    read: dict[str, Any] = {}
    exec(every.replace('"./operator"', '"sleep", "60"'), read)
    with ThreadPoolExecutor(1) as thread:  # a test of its own, beside the loop of Playwright
        thread.submit(read["test_it_survives"], server).result(30)
    assert rules(api) == []
