"""Every view for everyone: axe-core finds nothing serious, light and dark, on a desktop and on a phone; and the keyboard is enough.

axe-core (Deque, MPL-2.0) comes with the package axe-playwright-python. What it cannot see is tested here: that Tab reaches every
control, and that each works with keys alone.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from noxu.commands.api_client import ApiClient
from noxu.console import static_file
from noxu.console.recorded_answers import two_runs
from noxu.recordings.lines import ServerRecording
from tests import optional
from tests.console.browser.conftest import DESKTOP, PHONE
from tests.console.definition import PATH, widget
from tests.console.test_recorded_answers import LINES

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow
Open = Callable[..., Any]
WIDGETS: Final = "widgets.example.com"
AXE_PACKAGE: Final = "axe_playwright_python"

VIEWS: Final = {
    "the timeline": ("#/timeline?noise=1", "marks"),
    "a mark of it": (f"#/timeline?kind={WIDGETS}&mark=MARK", "Break it here"),
    "the timeline as a table": ("#/timeline?by=table&outcome=all", "revision"),
    "an empty timeline": ("#/timeline?object=nothing", "Nothing matches"),
    "all kinds": ("#/kinds", "Choose a kind"),
    "a kind": (f"#/kinds/{WIDGETS}", "first"),
    "an object": (f"#/at/now/{WIDGETS}/default/first", "of 2"),
    "its lines": (f"#/at/now/{WIDGETS}/default/first?tab=blame", "resourceVersion"),
    "its events": (f"#/at/now/{WIDGETS}/default/first?tab=events", "spec.size"),
    "why, and what is tried": (f"#/why/{WIDGETS}/default/first", "As it would be stored"),
    "faults and snapshots": ("#/break", "has hit nothing"),
    "manners": ("#/manners", "The least role"),
    "a schema": (f"#/schema/{WIDGETS}", "costs"),
    "a definition to be checked": ("#/schema?paste=1", "Paste a CustomResourceDefinition"),
}
RECORDED: Final = {
    "a recording": ("#/recording", "POST"),
    "a step of it": ("#/recording/3", "AlreadyExists"),
    "a write of it": ("#/recording/write-5", "size"),
    "two runs": ("#/runs", "first difference"),
}
RUN: Final = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations
    .filter((each) => ["serious", "critical"].includes(each.impact))
    .map((each) => `${each.id}: ${each.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`).join(" | ")}`);
}"""


@pytest.fixture(scope="module")
def axe() -> str:
    optional.require_package(AXE_PACKAGE)
    found = find_spec(AXE_PACKAGE)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).with_name("axe.min.js").read_text()


@pytest.fixture(scope="module", autouse=True)
def mark(api: ApiClient) -> str:
    """The key of a mark, when something of everything is there."""
    created = api.send("POST", PATH, value=widget("first", size=3)).value
    api.send("POST", PATH, value=widget("refused", size=9, limit=3))
    created["spec"]["size"] = 4
    changed = api.send("PUT", f"{PATH}/first", value=created).value
    api.send("POST", "/_noxu/snapshots", value={"name": "before"})
    api.send(
        "POST",
        "/_noxu/faults",
        value={"rules": [{"name": "stale", "match": {"resource": "nodes"}, "error": "Conflict"}]},
    )
    return str(changed["metadata"]["resourceVersion"])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of two runs as one file."""
    one, other = (ServerRecording("1970-01-01T00:00:00Z", 3, "1.0", {}, lines) for lines in (LINES[:4], LINES))
    file = tmp_path_factory.mktemp("recorded") / "runs.html"
    file.write_bytes(static_file.page(two_runs(one, other, ("one", "other"))))
    return file.as_uri()


def violations(page: Page, axe: str) -> list[str]:
    """What axe-core finds. Colours do not depend on the width, nor places on the colours: each has both values once."""
    page.evaluate(f"{axe};0")
    found = []
    for size, scheme in ((DESKTOP, "light"), (PHONE, "dark")):
        page.set_viewport_size({"width": size["width"], "height": size["height"]})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        found += [f"{scheme}, {size['width']} wide: {each}" for each in page.evaluate(RUN)]
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append(f"{size['width']} wide: it is wider")
    return found


def show(page: Page, address: str, says: str) -> None:
    page.evaluate("address => { location.hash = address }", address)
    page.locator("main").get_by_text(says).first.wait_for()


def test_axe_finds_nothing_serious_in_a_view(open_page: Open, axe: str, mark: str) -> None:
    page = open_page("#/kinds")
    found = {}
    for view, (address, says) in VIEWS.items():
        show(page, address.replace("MARK", mark), says)
        found[view] = violations(page, axe)
    assert {view: each for view, each in found.items() if each} == {}


def test_axe_finds_nothing_serious_in_a_recording(open_page: Open, axe: str, recorded: str) -> None:
    page = open_page("#/kinds")
    page.goto(recorded)
    found = {}
    for view, (address, says) in RECORDED.items():
        show(page, address, says)
        found[view] = violations(page, axe)
    assert {view: each for view, each in found.items() if each} == {}


def test_axe_finds_nothing_serious_in_the_dialog(open_page: Open, axe: str) -> None:
    page = open_page("#/break")
    page.get_by_role("button", name="Take a snapshot").click()
    page.get_by_role("dialog").wait_for()
    assert violations(page, axe) == []


# -- the keyboard ------------------------------------------------------------------------------------------------------

UNREACHED: Final = """async () => {
  const isShown = (each) => each.checkVisibility({ visibilityProperty: true }) && !each.disabled && !each.closest("details:not([open]) > :not(summary)");
  const controls = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")];
  return controls.filter((each) => isShown(each) && !each.hasAttribute("data-reached") && each.tabIndex >= 0).map((each) => each.outerHTML.slice(0, 200));
}"""
REACHED: Final = """() => {
  const element = document.activeElement;
  if (!element || element === document.body) return "";
  const outline = getComputedStyle(element);
  const wasThere = element.hasAttribute("data-reached");
  element.setAttribute("data-reached", "");
  if (wasThere) return "again";
  return element.matches(":focus-visible") && outline.outlineStyle === "none" && outline.borderStyle === "none" ? `no outline: ${element.outerHTML.slice(0, 200)}` : "";
}"""
FORGET: Final = """() => {
  document.querySelectorAll("[data-reached]").forEach((each) => each.removeAttribute("data-reached"));
  document.activeElement.blur();
}"""
MOST_CONTROLS: Final = 150
WALKS: Final = 5


def reached_by_tab(page: Page) -> list[str]:
    """What is wrong whenever Tab goes through the page: a control that is drawn anew meanwhile is reached the next time."""
    problems = walked(page)
    for _ in range(WALKS - 1):
        if problems:
            page.evaluate(FORGET)
            problems = walked(page)
    return problems


def walked(page: Page) -> list[str]:
    problems = []
    for _ in range(MOST_CONTROLS):
        page.keyboard.press("Tab")
        problem = page.evaluate(REACHED)
        if problem == "again":
            break
        problems += [problem] if problem else []
    return [*problems, *page.evaluate(UNREACHED)]


def test_tab_reaches_every_control_of_a_view_and_shows_where_it_is(open_page: Open, mark: str) -> None:
    page = open_page("#/kinds")
    found = {}
    for view, (address, says) in VIEWS.items():
        page.reload()
        show(page, address.replace("MARK", mark), says)
        found[view] = reached_by_tab(page)
    assert {view: each for view, each in found.items() if each} == {}


def press(page: Page, control: Any, key: str) -> None:
    control.focus()
    page.keyboard.press(key)


def test_objects_are_found_with_keys(open_page: Open) -> None:
    page = open_page("#/kinds")
    press(page, page.get_by_role("link", name="Widget"), "Enter")
    press(page, page.get_by_role("link", name="first"), "Enter")
    page.get_by_text("2 of 2").wait_for()
    press(page, page.get_by_role("slider", name="Revision"), "ArrowLeft")
    page.get_by_text("1 of 2").wait_for()
    press(page, page.get_by_role("button", name="The write after"), "Space")
    page.get_by_text("2 of 2").wait_for()
    press(page, page.get_by_role("tab", name="Change"), "ArrowRight")
    assert page.evaluate("document.activeElement.innerText") == "State"
    page.keyboard.press("End")
    page.get_by_role("row", name="Created").wait_for()
    assert page.evaluate("document.activeElement.getAttribute('aria-selected')") == "true"
    press(page, page.get_by_role("link", name="Skip to the content"), "Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_the_timeline_is_read_with_keys(open_page: Open) -> None:
    page = open_page(f"#/timeline?kind={WIDGETS}")
    press(page, page.get_by_role("application"), "End")
    detail = page.get_by_role("complementary")
    detail.wait_for()
    page.keyboard.press("-")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "detail"
    press(page, detail.get_by_text("Break it here"), "Enter")
    detail.get_by_role("button", name="Refuse the next one: Conflict").wait_for()
    press(page, detail.get_by_role("button", name="Close"), "Enter")
    detail.wait_for(state="detached")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "application"


def test_a_link_to_another_view_takes_the_keyboard_along(open_page: Open, mark: str) -> None:
    page = open_page(f"#/timeline?kind={WIDGETS}&mark={mark}")
    press(page, page.get_by_role("link", name="why it is as it is"), "Enter")
    page.get_by_role("heading", name="Why is first as it is?").wait_for()
    assert page.evaluate("document.activeElement.id") == "main"
    press(page, page.get_by_role("link", name="Break", exact=True), "Enter")
    page.get_by_role("heading", name="Break it on purpose").wait_for()
    assert page.evaluate("document.activeElement.innerText") == "Break"  # it is still there


def test_something_is_tried_with_keys(open_page: Open) -> None:
    page = open_page(f"#/why/{WIDGETS}/default/first")
    page.get_by_text("Accepted").wait_for()
    editor = page.get_by_role("textbox", name="The object, as YAML")
    press(page, editor, "ControlOrMeta+End")
    page.keyboard.type("9")
    page.get_by_role("button", name="size: 49").wait_for()
    page.keyboard.press("Tab")  # leaves the editor
    page.keyboard.press("Enter")  # the button that undoes
    page.get_by_role("button", name="size: 4", exact=True).wait_for()
    lines = page.get_by_role("group", name="The lines of the object")
    press(page, lines.get_by_role("button").first, "End")
    page.keyboard.press("Enter")
    page.get_by_text("is what you have written").wait_for()


def test_something_is_broken_with_keys(open_page: Open, api: ApiClient) -> None:
    page = open_page("#/break", token=True)
    press(page, page.get_by_role("switch", name="stale"), "Space")
    page.get_by_role("switch", name="stale", checked=False).wait_for()
    page.keyboard.press("Space")
    page.get_by_role("switch", name="stale", checked=True).wait_for()
    press(page, page.get_by_role("button", name="Restore before"), "Enter")
    page.get_by_text("changed back").wait_for()
    press(page, page.get_by_label("Times"), "Enter")  # of the form
    page.get_by_role("switch").nth(1).wait_for()


def test_schemas_and_manners_are_read_with_keys(open_page: Open) -> None:
    page = open_page(f"#/schema/{WIDGETS}")
    turn = page.get_by_role("button", name="Fields of spec")
    turn.wait_for()
    press(page, turn, "Enter")
    page.get_by_role("button", name="Fields of spec", expanded=False).wait_for()
    press(page, page.get_by_role("link", name="Manners"), "Enter")
    press(page, page.get_by_role("navigation", name="Clients").get_by_role("link").first, "Enter")
    page.get_by_role("button", name="Copy").wait_for()


def test_the_dialog_keeps_the_keyboard_and_gives_it_back(open_page: Open) -> None:
    page = open_page("#/break")
    press(page, page.get_by_role("button", name="Take a snapshot"), "Enter")
    page.get_by_role("dialog").wait_for()
    for _ in range(6):
        page.keyboard.press("Tab")
        assert page.evaluate(
            "document.activeElement === document.body || Boolean(document.activeElement.closest('dialog'))"
        )
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    assert page.evaluate("document.activeElement.innerText") == "Take a snapshot"
