"""A recording as one file, in a browser without a server: what it says, and that hostile data stay text."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from noxu.console import static_file
from noxu.console.recorded_answers import two_runs
from noxu.recordings.lines import ServerRecording
from noxu.values import Object
from tests.console.browser.conftest import chromium
from tests.console.test_joined_modules import top_names

HOSTILE: Final = "</script><img src=x onerror=alert(1)><script>alert(2)</script>"
CLIENT: Final = {"user": HOSTILE, "agent": HOSTILE}
VALUE: Final = {
    "apiVersion": "example.com/v1",
    "kind": HOSTILE,
    "metadata": {"name": HOSTILE, "namespace": HOSTILE, "labels": {HOSTILE: HOSTILE}},
    "spec": {HOSTILE: [HOSTILE]},
}
PLACE: Final = {"resource": "widgets.example.com", "namespace": HOSTILE, "name": HOSTILE}
LINES: Final[list[Object]] = [
    {"step": 1, "at": 0.1, "client": CLIENT, "watch": f"/apis/example.com/v1/widgets?labelSelector={HOSTILE}"},
    {"step": 2, "at": 0.2, "client": CLIENT, "id": "a", "method": "POST", "path": f"/apis/example.com/v1/{HOSTILE}", "body": VALUE,
     "expect": {"code": 422, "body": {"reason": HOSTILE, "message": HOSTILE}, "warnings": [HOSTILE]}},
    {"write": {"revision": 5, "verb": HOSTILE, "event": "ADDED", "subresource": HOSTILE, "user": HOSTILE, "userAgent": HOSTILE,
               "controller": "", "requestID": "", "object": VALUE, **PLACE}, "at": 0.3},
    {"events": [{"type": HOSTILE, "object": VALUE}], "of": 1, "at": 0.4},
]  # fmt: skip


@pytest.mark.slow
def test_a_recording_is_shown_without_a_server(tmp_path: Path) -> None:
    program = chromium()
    from playwright.sync_api import sync_playwright

    empty, run = (ServerRecording("2026-03-01T12:00:00Z", 3, HOSTILE, {}, lines) for lines in ((), LINES))
    file = tmp_path / "run.html"
    file.write_bytes(static_file.page(two_runs(empty, run, (HOSTILE, HOSTILE))))
    complaints: list[str] = []
    asked: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 390, "height": 844})
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: asked.append(request.url))
        for address, said in (
            ("#/timeline?outcome=all&by=table", "422"),
            ("#/recording", f"POST /apis/example.com/v1/{HOSTILE}"),
            ("#/recording/1", f'kind: "{HOSTILE}"'),
            ("#/recording/2", "Warnings"),
            ("#/recording?by=writes", f"widgets.example.com {HOSTILE}/{HOSTILE}"),
            ("#/recording/write-5", f'kind: "{HOSTILE}"'),
            ("#/runs", "first difference"),
            ("#/kinds/widgets.example.com", HOSTILE),
        ):
            page.goto(f"{file.as_uri()}{address}")
            page.get_by_role("main").get_by_text(said).first.wait_for(state="attached", timeout=30_000)
            assert page.locator("main img, main script").count() == 0
        browser.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


@pytest.mark.slow
def test_no_name_of_a_module_hides_one_of_the_browser() -> None:
    """Joined with others, a module that has a `Node` takes that of the document from all of them."""
    program = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        hidden = browser.new_page().evaluate("names => names.filter((each) => each in window)", top_names())
        browser.close()
    assert hidden == []
