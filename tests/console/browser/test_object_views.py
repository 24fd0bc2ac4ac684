"""In a real browser: an object over time, why it is as it is, and the schema of its kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pytest

from noxu.api.codec import decode_yaml
from noxu.commands.api_client import ApiClient
from tests.console.browser.conftest import PHONE, write
from tests.console.definition import PATH, widget

pytestmark = pytest.mark.slow
Open = Callable[..., Any]
WIDGETS: Final = "widgets.example.com"


@pytest.fixture(scope="module", autouse=True)
def past(api: ApiClient) -> list[str]:
    """The revisions of an object that two people have changed."""
    created = api.send("POST", PATH, {"fieldManager": "anna"}, widget("past", size=1)).value
    revisions = [created["metadata"]["resourceVersion"]]
    for manager, size in (("bert", 2), ("anna", 3)):
        changed = api.send("GET", f"{PATH}/past").value
        changed["spec"]["size"] = size
        revisions.append(
            api.send("PUT", f"{PATH}/past", {"fieldManager": manager}, changed).value["metadata"]["resourceVersion"]
        )
    api.send("POST", PATH, value=widget("limited", size=5, limit=9))
    return revisions


# -- an object over time -----------------------------------------------------------------------------------------------


def test_a_slider_goes_through_the_states_of_an_object(open_page: Open, past: list[str]) -> None:
    page = open_page(f"#/at/now/{WIDGETS}/default/past")
    page.get_by_text("3 of 3").wait_for()
    page.get_by_text("added: ").first.wait_for(state="attached")
    assert "size: 3" in page.locator(".diff .added").all_inner_texts()[-1]
    page.get_by_role("slider", name="Revision").press("ArrowLeft")
    page.get_by_text("2 of 3").wait_for()
    page.locator(".write").get_by_text("bert").wait_for()
    assert page.evaluate("location.hash") == f"#/at/{past[1]}/{WIDGETS}/default/past"
    assert f"/_noxu/at/{past[1]} get {WIDGETS} past -n default -o yaml" in page.locator(".line code").inner_text()
    page.get_by_role("button", name="The write before").click()
    page.get_by_text("It was created with this").wait_for()


def test_an_address_can_be_pasted_and_says_who_wrote_each_line(open_page: Open, past: list[str]) -> None:
    page = open_page(f"#/at/{past[1]}/{WIDGETS}/default/past?tab=blame")
    row = page.get_by_role("row").filter(has_text="size: 2")
    row.wait_for()
    assert row.get_by_role("link").inner_text() == past[1]
    assert row.get_by_role("cell", name="bert").count() == 1
    page.get_by_role("tab", name="State").click()
    page.locator(".code").get_by_text("size").wait_for()


def test_events_and_writes_stand_in_one_list_and_a_new_write_appears(open_page: Open, api: ApiClient) -> None:
    api.send("POST", PATH, value=widget("busy", size=1))
    about = {"kind": "Widget", "namespace": "default", "name": "busy"}
    event = {
        "metadata": {"name": "busy.1"},
        "involvedObject": about,
        "reason": "Scaled",
        "message": "one part is there",
    }
    api.send("POST", "/api/v1/namespaces/default/events", value=event)
    page = open_page(f"#/at/now/{WIDGETS}/default/busy?tab=events")
    row = page.get_by_role("row", name="Scaled")
    row.get_by_text("one part is there").wait_for()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", row.get_by_role("cell").first.inner_text())
    changed = api.send("GET", f"{PATH}/busy").value
    changed["spec"]["size"] = 2
    api.send("PUT", f"{PATH}/busy", value=changed)
    page.get_by_role("row").get_by_text("spec.size").wait_for()


def test_what_is_not_there_is_said(open_page: Open) -> None:
    page = open_page(f"#/at/now/{WIDGETS}/default/nothing")
    page.get_by_text("Nothing is known about it").wait_for()


def test_the_data_of_a_secret_are_shown_with_the_token_only(open_page: Open, api: ApiClient) -> None:
    path = "/api/v1/namespaces/default/secrets"
    api.send("POST", path, value={"metadata": {"name": "door"}, "data": {"code": "c2VzYW1l"}})
    changed = api.send("GET", f"{path}/door").value
    changed["data"]["code"] = "YWxpYmFiYQ=="
    api.send("PUT", f"{path}/door", value=changed)
    page = open_page("#/at/now/secrets/default/door")
    page.locator(".diff").get_by_text("(12 characters, masked)").wait_for()
    page.get_by_role("button", name="Show the data").click()
    page.get_by_role("dialog").get_by_text("A page needs a token").wait_for()
    assert "YWxpYmFiYQ" not in page.content()
    known = open_page("#/at/now/secrets/default/door?tab=blame", token=True)
    known.get_by_role("row").get_by_text("masked").wait_for()
    known.get_by_role("button", name="Show the data").click()
    known.get_by_role("row").get_by_text("YWxpYmFiYQ==").wait_for()


def test_an_applied_secret_is_tried_without_its_values(open_page: Open, api: ApiClient) -> None:
    applied = '{"data":{"code":"c2VzYW1l"}}'
    about = {
        "name": "applied",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied, "of": "ali"},
    }
    value = {"metadata": about, "data": {"code": "c2VzYW1l"}}
    api.send("POST", "/api/v1/namespaces/default/secrets", value=value)
    page = open_page("#/why/secrets/default/applied")
    page.locator(".verdict").get_by_text("Accepted").wait_for()
    page.locator(".result").get_by_text("ali").wait_for()
    assert "c2VzYW1l" not in page.content()


def test_yaml_of_the_page_is_read_as_what_it_was(open_page: Open, api: ApiClient) -> None:
    """The pure part of the page; the server reads what it has written."""
    page = open_page("#/kinds")
    value = {
        "lines": ["one\ntwo\n", "three\nfour"],
        "nested": [["five\nsix"], {"text": "seven\neight\n", "more": "nine\n\nten"}],
        "words": [".5", "./a", ".hidden", "on", "plain"],
    }
    text = page.evaluate(
        """async (value) => (await import("/_noxu/console/widgets.js")).toYaml(value)""",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "value": value},
    )
    assert decode_yaml(text.encode()).value["value"] == value


PASTED: Final = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tools.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: tools, kind: Tool}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {size: {minimum: 1}}
"""
HOSTILE: Final = "<img src=x onerror=alert(1)>"


def test_what_a_stranger_has_written_stays_text_in_every_view(open_page: Open, api: ApiClient) -> None:
    value = widget("hostile", size=1)
    value["metadata"]["annotations"] = {"note": HOSTILE}
    api.send("POST", PATH, {"fieldManager": HOSTILE}, value)
    about = {"kind": "Widget", "namespace": "default", "name": "hostile"}
    event = {"metadata": {"name": "hostile.1"}, "involvedObject": about, "reason": HOSTILE, "message": HOSTILE}
    api.send("POST", "/api/v1/namespaces/default/events", value=event)
    page = open_page()
    for address in (
        *(f"#/at/now/{WIDGETS}/default/hostile?tab={tab}" for tab in ("", "state", "blame", "events")),
        f"#/why/{WIDGETS}/default/hostile",
    ):
        page.evaluate("address => { location.hash = address }", address)
        page.locator("main").get_by_text(HOSTILE).first.wait_for()
        assert page.locator("main img").count() == 0
    page.evaluate("address => { location.hash = address }", "#/schema?paste=1")
    described = PASTED.replace("{size: {minimum: 1}}", f"{{size: {{type: integer, description: '{HOSTILE}'}}}}")
    write(page, "A CustomResourceDefinition, as YAML", described)
    page.locator(".tree .said").get_by_text(HOSTILE).wait_for()
    assert page.locator("main img").count() == 0


# -- why ---------------------------------------------------------------------------------------------------------------

EDITED: Final = """\
apiVersion: example.com/v1
kind: Widget
metadata:
  name: limited
  namespace: default
spec:
  limit: 3
  size: 5
  colour: red
"""


def test_a_refusal_is_explained_while_it_is_written(open_page: Open, api: ApiClient) -> None:
    page = open_page(f"#/why/{WIDGETS}/default/limited")
    page.locator(".verdict").get_by_text("Accepted").wait_for()
    page.get_by_role("button", name="limit: 9").click()
    page.locator(".because").get_by_text("In the stored object it is owned by").wait_for()
    write(page, "The object, as YAML", EDITED)
    page.locator(".verdict").get_by_text("Refused").wait_for()
    refused, dropped = page.locator(".reasons.refused"), page.locator(".reasons.pruned")
    assert "size exceeds the limit" in refused.inner_text()
    assert "!has(self.limit) || self.size <= self.limit" in refused.inner_text()
    assert "spec.colour" in dropped.inner_text()
    write(page, "The object, as YAML", EDITED.replace("  size: 5\n", ""))
    page.get_by_role("button", name="spec.size").click()
    page.locator(".because").get_by_text("filled in with its default: 1").wait_for()
    write(page, "The object, as YAML", "spec: [")
    page.locator(".reasons.refused").get_by_text("yaml: ").wait_for()
    assert api.send("GET", f"{PATH}/limited").value["spec"] == {"size": 5, "limit": 9}


def test_an_object_is_chosen_beside_its_kind(open_page: Open) -> None:
    page = open_page("#/why")
    page.get_by_role("combobox", name="Kind").select_option(WIDGETS)
    page.get_by_role("combobox", name="Object").select_option("default/limited")
    page.get_by_role("heading", name="Why is limited as it is?").wait_for()
    page.get_by_role("button", name="resourceVersion: ").click()
    page.locator(".because").get_by_text("the server sets it").wait_for()


def test_a_changed_rule_is_tried_on_the_stored_objects(open_page: Open) -> None:
    page = open_page(f"#/why/{WIDGETS}/default/limited")
    page.get_by_role("tab", name="The definition").click()
    editor = page.get_by_role("textbox", name="The definition, as YAML")
    editor.get_by_text("minimum").wait_for()
    write(page, "The definition, as YAML", editor.inner_text().replace("minimum: 1", "maximum: 4"))
    stored = page.locator(".reasons.stored")
    stored.get_by_role("link", name="default/limited").wait_for()
    assert "spec.size is wrong from now on" in stored.inner_text()
    assert stored.get_by_role("link", name="default/past").count() == 0


# -- schemas -----------------------------------------------------------------------------------------------------------


def test_a_schema_says_what_rules_cost_and_what_is_used(open_page: Open, api: ApiClient) -> None:
    page = open_page(f"#/schema/{WIDGETS}")
    spec = page.locator(".tree li").filter(has=page.get_by_text("spec", exact=True)).first
    spec.get_by_text("!has(self.limit) || self.size <= self.limit").wait_for()
    assert "of 10,000,000" in spec.locator(".costs").inner_text()
    page.get_by_role("button", name="Count writes from now on").click()
    page.get_by_text("Seen in 0 writes.").wait_for()
    api.send("POST", PATH, value=widget("refused", size=9, limit=3))
    api.send("POST", PATH, value=widget("counted", size=2, limit=3))
    page.get_by_text("Seen in 2 writes.").wait_for()
    page.get_by_text("true in 1, false in 1 writes").wait_for()
    page.get_by_role("searchbox", name="Field").fill("limit")
    page.locator(".tree .name").get_by_text("size").wait_for(state="detached")
    assert page.evaluate("location.hash") == f"#/schema/{WIDGETS}?find=limit"


def test_a_pasted_definition_is_checked(open_page: Open) -> None:
    page = open_page("#/schema?paste=1", viewport=PHONE)
    write(page, "A CustomResourceDefinition, as YAML", PASTED)
    page.locator(".findings").get_by_text("Required value: must not be empty for specified object fields").wait_for()
    write(page, "A CustomResourceDefinition, as YAML", PASTED.replace("{minimum: 1}", "{type: integer, minimum: 1}"))
    page.get_by_text("Nothing is wrong with it").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_of_a_long_name_three_lines_are_seen_and_all_of_it_is_said_and_printed(open_page: Open, api: ApiClient) -> None:
    name = "-".join(["a-name-that-somebody-has-generated-from-a-hash-0123456789abcdef"] * 3)
    api.send("POST", PATH, value=widget(name, size=3))
    page = open_page(f"#/at/now/widgets.example.com/default/{name}", viewport=PHONE)
    heading = page.get_by_role("heading", name=f"{name} widgets.example.com in default")
    heading.wait_for()
    cut = heading.locator(".cut")
    lines = "each => each.offsetHeight / parseFloat(getComputedStyle(each).lineHeight)"
    assert round(cut.evaluate(lines)) == 3
    assert cut.evaluate("each => { getSelection().selectAllChildren(each); return String(getSelection()) }") == name
    page.emulate_media(media="print")
    assert cut.evaluate("each => getComputedStyle(each).webkitLineClamp") == "none"


def test_on_paper_nothing_asks_to_be_clicked_and_no_column_is_left_out(open_page: Open, api: ApiClient) -> None:
    api.send("POST", PATH, value=widget("printed", size=3))
    page = open_page("#/timeline?by=table", viewport={"width": 680, "height": 1000})  # that of a sheet of A4
    page.get_by_role("row", name="default/printed").first.wait_for()
    page.emulate_media(media="print")
    assert page.get_by_role("button").count() == 0
    assert page.get_by_role("columnheader", name="Shown to").is_visible()
