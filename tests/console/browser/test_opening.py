"""A recording that is opened in the live page: it is shown instead of the server until it is closed."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.exploration.test_opened_files import RECORDED, finding_file

pytestmark = pytest.mark.slow
Open = Callable[..., Any]

DROP: Final = """([name, content]) => {
  const data = new DataTransfer();
  data.items.add(new File([Uint8Array.from(atob(content), (each) => each.charCodeAt(0))], name));
  for (const type of ["dragover", "drop"]) document.body.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
}"""


def drop(page: Any, name: str, content: bytes) -> None:
    page.evaluate(DROP, [name, base64.b64encode(content).decode()])


def test_a_finding_that_is_dropped_says_what_went_wrong_and_when(open_page: Open) -> None:
    page = open_page("#/kinds")
    page.get_by_role("link", name="Widget").wait_for()
    drop(page, "explore-1.noxu", finding_file())
    page.get_by_role("heading", name="secrets default/a is missing").wait_for()
    page.get_by_text("The first difference is a write that the other run lacks").wait_for()
    page.get_by_role("row", name="first difference create secrets default/a").wait_for()
    page.get_by_text("The plan", exact=True).click()
    page.get_by_text("class: crash").wait_for()
    page.get_by_role("listitem").filter(has_text="the program is killed").get_by_role("link").click()
    page.get_by_role("heading", name="the plan: the program is killed").wait_for()
    page.get_by_role("link", name="controller: create configmaps default/a").click()
    page.get_by_role("button", name="Close explore-1.noxu").click()
    page.get_by_text("Live").wait_for()
    page.get_by_role("link", name="Break").wait_for()


def test_a_file_is_chosen_and_what_is_no_recording_is_refused(open_page: Open) -> None:
    page = open_page("#/kinds")
    page.get_by_role("link", name="Widget").wait_for()
    page.locator("input[type=file]").set_input_files(
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"hello"}
    )
    page.get_by_role("alert").get_by_text("notes.txt is no recording").wait_for()
    open_page.complaints.clear()  # type: ignore[attr-defined] # the browser logs the 422
    page.get_by_role("button", name="Close", exact=True).click()
    page.locator("input[type=file]").set_input_files({"name": "run.noxu", "mimeType": "", "buffer": RECORDED})
    page.get_by_role("button", name="Close run.noxu").wait_for()
    page.get_by_text("Nothing has happened", exact=True).wait_for()
