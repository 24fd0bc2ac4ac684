"""The first view in a real browser: kinds, their objects, and what changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest

from noxu.commands.api_client import ApiClient
from tests.console.browser.conftest import PHONE
from tests.console.definition import PATH, widget

Open = Callable[..., Any]


def test_a_kind_is_chosen_and_its_objects_follow_what_happens(open_page: Open, api: ApiClient) -> None:
    page = open_page("#/kinds")
    page.get_by_role("link", name="Widget").click()
    page.get_by_text("No Widget exists").wait_for()
    api.send("POST", PATH, value=widget("first", size=3))
    page.get_by_role("row", name="first default 3").wait_for()
    api.send("POST", PATH, value=widget("second", size=4))
    page.get_by_role("row", name="second default 4").wait_for()
    page.get_by_label("Name", exact=True).fill("sec")
    page.get_by_role("row", name="first").wait_for(state="detached")
    assert page.evaluate("location.hash") == "#/kinds/widgets.example.com?name=sec"
    assert page.title() == "Objects · Noxu"


@pytest.mark.slow
def test_a_long_list_goes_on_with_a_click_and_all_of_it_is_searched(open_page: Open) -> None:
    def answer(route: Any) -> None:
        limit = int(parse_qs(urlsplit(route.request.url).query)["limit"][0])
        names = [f"widget-{n:04}" for n in range(1_200)]
        columns = [{"name": "Name", "type": "string", "priority": 0}]
        rows = [{"cells": [name], "object": {"metadata": {"name": name}}} for name in names[:limit]]
        left = len(names) - len(rows)
        listed = {"remainingItemCount": left} if left else {}
        route.fulfill(json={"columnDefinitions": columns, "rows": rows, "metadata": listed})

    page = open_page("#/kinds", token=False)
    page.route("**/apis/example.com/v1/widgets?limit=*", answer)
    page.get_by_role("link", name="Widget").click()
    page.get_by_text("700 more are not shown.").wait_for()
    page.get_by_role("button", name="Show 500 more").click()
    page.get_by_role("link", name="widget-0999").wait_for()
    page.get_by_role("button", name="Show 200 more").wait_for()
    page.get_by_label("Name", exact=True).fill("widget-1199")
    page.get_by_role("link", name="widget-1199").wait_for()
    assert page.get_by_role("row").count() == 2


@pytest.mark.slow
def test_what_a_stranger_has_written_is_text(open_page: Open, api: ApiClient) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    value = widget("marked")
    value["metadata"]["annotations"] = {"note": hostile}
    api.send("POST", PATH, value=value)
    page = open_page(f"#/kinds/widgets.example.com?name={hostile}&namespace={hostile}")
    page.get_by_text("No Widget has such a name").wait_for()
    assert page.get_by_label("Name", exact=True).input_value() == hostile
    assert page.locator("img").count() == 0


@pytest.mark.slow
def test_a_phone_shows_the_kinds_first_and_then_one_of_them(open_page: Open) -> None:
    page = open_page("#/kinds", viewport=PHONE, color_scheme="dark")
    page.get_by_role("link", name="ConfigMap").click()
    page.get_by_role("heading", name="ConfigMap").wait_for()
    assert not page.get_by_placeholder("Search kinds").is_visible()
    page.get_by_role("link", name="All kinds").click()
    page.get_by_placeholder("Search kinds").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


AT_FIRST_RENDER: Final = """new MutationObserver((_, observer) => {
  if (!document.querySelector("main")) return;
  observer.disconnect();
  location.hash = "#/manners";
}).observe(document, { childList: true, subtree: true });"""


@pytest.mark.slow
def test_an_address_that_changes_while_the_page_starts_is_followed(open_page: Open) -> None:
    page = open_page("#/kinds")
    page.get_by_role("link", name="Widget").wait_for()
    page.add_init_script(AT_FIRST_RENDER)
    page.reload()
    page.get_by_role("link", name="Manners").and_(page.locator("[aria-current=page]")).wait_for()


@pytest.mark.slow
@pytest.mark.parametrize("token", [False, True], ids=["without the token", "with the token"])
def test_the_page_says_whether_it_may_change_something(open_page: Open, token: bool) -> None:
    page = open_page("#/kinds", token=token)
    page.get_by_text("Live").wait_for()
    page.get_by_role("link", name="Namespace").wait_for()
    assert page.get_by_role("button", name="Read only").count() == (0 if token else 1)
    assert "token" not in page.url


@pytest.mark.slow
def test_a_wrong_token_is_refused_in_the_dialog(open_page: Open) -> None:
    page = open_page("#/kinds")
    page.get_by_role("button", name="Read only").click()
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Use this token").click()
    page.get_by_text("this is not the token of this server").wait_for()
    open_page.complaints.clear()  # type: ignore[attr-defined] # the browser logs the 403
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
