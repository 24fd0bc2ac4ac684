"""A law: what strangers have written stays text, in every view of the page, and in the file that needs no server.

Each text of HOSTILE is everywhere where a client can put it: keys and values of objects, Events, user agents, field managers,
traces, messages of rules, schemas, faults, snapshots. If one of them became code, `window.hacked` would say so; a request to another
place, a dialog, an error, or something that the policy of the page (CSP) refuses fails, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

import pytest

from noxu import Noxu
from noxu.commands.api_client import ApiClient
from noxu.console import static_file
from noxu.console.recorded_answers import two_runs
from noxu.recordings.lines import ServerRecording, parse
from tests.console.browser.conftest import PHONE
from tests.console.definition import PATH, widget

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow
Open = Callable[..., Any]
WIDGETS: Final = "widgets.example.com"
HACK: Final = "window.hacked=1"
SAID: Final = "hostile text"
HOSTILE: Final = "\n".join(
    [
        SAID,
        f'<img src=x onerror="{HACK}"><svg onload="{HACK}">',
        f"</script><script>{HACK}</script><!--",
        f"javascript:{HACK}//",
        f'"\' onmouseover={HACK} autofocus onfocus={HACK} x="',
        "\u202e\u2066 reversed \u2069\u200f",
        "\x00\x07\x1b[31m\ufeff\uffff",
        "<iframe src=//example.invalid/></textarea></style><style>*{display:none}</style>",
        "${window.hacked=2}{{constructor.constructor('window.hacked=3')()}}<%= 1 %>",
        "__proto__ constructor $& $1",
    ]
)
LONG: Final = f"{SAID} {'<b>&amp;' * 14_000}"  # 100 kB
LINE: Final = f"<img src=x onerror={HACK}> javascript:{HACK} </script>"
SECRET: Final = "c3RyaWN0bHkgY29uZmlkZW50aWFs"
PLAIN: Final = "strictly confidential"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recordings") / "run.noxu"


@pytest.fixture(scope="module")
def server(recording: Path) -> Iterator[Noxu]:
    """With a definition whose every text is hostile."""
    definition: Any = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": WIDGETS, "annotations": {"note": HOSTILE}},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [
                        {"name": LINE, "type": "string", "jsonPath": ".spec.text", "description": HOSTILE}
                    ],
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "description": HOSTILE,
                            "properties": {
                                "spec": {
                                    "type": "object",
                                    "properties": {
                                        "size": {"type": "integer"},
                                        "text": {"type": "string", "description": HOSTILE},
                                        "filled": {"type": "string", "default": HOSTILE, "enum": [HOSTILE, LINE]},
                                        LINE: {"type": "string", "pattern": "^[^<]*$", "description": HOSTILE},
                                        "map": {"type": "object", "additionalProperties": {"type": "string"}},
                                    },
                                    "x-kubernetes-validations": [
                                        {"rule": f"self.size < 5 || self.text == {json.dumps(LINE)}", "message": LINE}
                                    ],
                                }
                            },
                        }
                    },
                }
            ],
        },
    }
    with Noxu(manifests=[definition], record=recording) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def written(server: Noxu, api: ApiClient) -> None:
    """What strangers write."""
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=60)

    def send(method: str, path: str, value: Any) -> tuple[int, Any]:
        headers = {
            "User-Agent": LINE,
            "Content-Type": "application/json",
            "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "tracestate": LINE,
        }
        connection.request(method, f"{path}?fieldManager={quote(LINE)}", json.dumps(value), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def stored(answer: tuple[int, Any]) -> Any:
        assert answer[0] < 300, answer[1].get("message", "")[:1000]
        return answer[1]

    def refused(answer: tuple[int, Any]) -> None:
        assert answer[0] == 422

    value = widget("first", size=1, text=HOSTILE, map={HOSTILE: HOSTILE, "__proto__": LONG})
    value["metadata"] |= {"annotations": {"example.com/note": HOSTILE, "long": LONG}, "finalizers": []}
    value = stored(send("POST", PATH, value))
    value["spec"]["text"] = f"{HOSTILE}!"
    value["spec"]["map"] = {f"{HOSTILE}!": LINE}
    stored(send("PUT", f"{PATH}/first", value))
    refused(send("POST", PATH, widget("second", size=9, text=HOSTILE)))
    refused(send("POST", PATH, widget("third", **{LINE: HOSTILE}, unknown=HOSTILE)))
    refused(send("POST", PATH, widget(LINE)))
    send("POST", f"{PATH}/{quote(LINE)}", {})
    about = {"kind": "Widget", "namespace": "default", "name": "first"}
    event = {
        "metadata": {"name": "first.1"}, "involvedObject": about, "reason": LINE[:120], "message": HOSTILE[:1000],
        "type": "Warning", "source": {"component": LINE},
    }  # fmt: skip
    stored(send("POST", "/api/v1/namespaces/default/events", event))
    config = {"metadata": {"name": "first"}, "data": {"file": f"{HOSTILE}\n{LONG}"}}
    stored(send("POST", "/api/v1/namespaces/default/configmaps", config))
    applied = json.dumps({"data": {"code": SECRET}, "stringData": {"code": PLAIN}})
    secret = {
        "metadata": {"name": "first", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied}},
        "data": {"code": SECRET},
    }
    secret = stored(send("POST", "/api/v1/namespaces/default/secrets", secret))
    secret["data"]["other"] = SECRET
    stored(send("PUT", "/api/v1/namespaces/default/secrets/first", secret))
    connection.close()
    rule = {"match": {"userAgent": LINE, "user": HOSTILE, "name": LINE}, "error": "Conflict"}
    assert api.send("POST", "/_noxu/faults", value={"rules": [rule]}).status == 201


@pytest.fixture
def watched() -> Callable[[Page], Callable[[], list[str]]]:
    """Begins to watch a page, and returns what says what has been wrong with it."""

    def watch(page: Page) -> Callable[[], list[str]]:
        found: list[str] = []
        home = urlsplit(page.url).netloc
        page.on("pageerror", lambda error: found.append(f"error: {error}"))
        page.on("dialog", lambda dialog: found.append(f"dialog: {dialog.message}"))
        page.on("console", lambda message: found.append(message.text) if message.type == "error" else None)
        page.on("popup", lambda popup: found.append(f"window: {popup.url}"))
        page.on(
            "request", lambda request: None if is_own(request.url) else found.append(f"request: {request.url[:200]}")
        )

        def is_own(address: str) -> bool:
            return urlsplit(address).scheme == "data" or urlsplit(address).netloc == home

        page.evaluate("""() => {
          window.refusals = [];
          document.addEventListener("securitypolicyviolation", (event) => window.refusals.push(`${event.violatedDirective} ${event.blockedURI}`));
        }""")

        def problems() -> list[str]:
            state = page.evaluate(
                """() => [
                  ...window.refusals,
                  ...("hacked" in window ? ["hacked"] : []),
                  ...[...document.querySelectorAll("main :is(img, script, iframe, svg, style, object, embed)")].map((each) => each.outerHTML),
                  ...[...document.querySelectorAll("a[href]")].map((each) => each.getAttribute("href")).filter((each) => !/^(#|data:application)/.test(each)),
                  ...[...document.querySelectorAll("*")].flatMap((each) => each.getAttributeNames().filter((name) => name.startsWith("on"))),
                ]"""
            )
            return [*found, *state]

        return problems

    return watch


LIVE: Final = {
    "#/timeline?noise=1&outcome=all&by=table": WIDGETS,
    "#/timeline?outcome=all": "marks",
    "#/timeline?by=time&outcome=all": "marks",
    f"#/timeline?kind={quote(LINE)}&client={quote(LINE)}&object={quote(LINE)}": "Nothing matches",
    "#/kinds": "Choose a kind",
    f"#/kinds/{WIDGETS}": SAID,
    f"#/kinds/{WIDGETS}?name={quote(HOSTILE)}&namespace={quote(LINE)}&kind={quote(LINE)}": "No Widget",
    "#/kinds/configmaps": "first",
    f"#/at/now/{WIDGETS}/default/first": SAID,
    f"#/at/now/{WIDGETS}/default/first?tab=state": SAID,
    f"#/at/now/{WIDGETS}/default/first?tab=blame": SAID,
    f"#/at/now/{WIDGETS}/default/first?tab=events": SAID,
    "#/at/now/configmaps/default/first": SAID,
    f"#/at/{quote(LINE, safe='')}/{quote(LINE, safe='')}/default/{quote(LINE, safe='')}": "img src=x",
    f"#/why/{WIDGETS}/default/first": SAID,
    f"#/why/{quote(LINE, safe='')}": "img src=x",
    "#/break": "img src=x",
    "#/manners": "The least role",
    f"#/manners/{quote(LINE + ' system:anonymous', safe='')}": "The least role",
    f"#/schema/{WIDGETS}": SAID,
    f"#/schema/{quote(LINE, safe='')}": "img src=x",
}


def test_nothing_hostile_runs_in_a_view(open_page: Open, api: ApiClient, watched: Any) -> None:
    page = open_page("#/kinds")
    page.set_viewport_size(PHONE)
    problems = watched(page)
    marks = api.send("GET", "/_noxu/console/timeline").value["marks"]
    strange = [mark for mark in marks if "<img" in mark["lane"]]
    assert {mark["what"] for mark in strange} >= {"write", "refused"}
    views = {**LIVE, **{f"#/timeline?outcome=all&mark={mark['key']}": "img src=x" for mark in strange}}
    found = {}
    for address, says in views.items():
        page.evaluate("address => { location.hash = address }", address)
        page.locator("main").get_by_text(says).first.wait_for(state="attached")
        if problem := problems():
            found[address] = problem
        open_page.complaints.clear()  # type: ignore[attr-defined] # a 404 of what is not there
    assert {address: each for address, each in found.items() if not is_of_an_answer(each)} == {}


def is_of_an_answer(problems: list[str]) -> bool:
    """The browser logs an answer 404 or 400 as an error."""
    return all(
        problem.startswith("Failed to load resource: the server responded with a status of 4") for problem in problems
    )


def test_what_is_tried_stays_text(open_page: Open, watched: Any) -> None:
    page = open_page(f"#/why/{WIDGETS}/default/first")
    problems = watched(page)
    editor = page.get_by_role("textbox", name="The object, as YAML")
    editor.get_by_text("apiVersion").wait_for()
    editor.click()
    page.keyboard.press("ControlOrMeta+A")
    value = widget("first", size=9, text=LINE, **{LINE: LINE}, unknown=HOSTILE)
    page.keyboard.insert_text(json.dumps(value))
    page.locator(".reasons.pruned").get_by_text("spec.unknown").wait_for()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.insert_text(HOSTILE)
    page.locator(".reasons.refused").get_by_text("yaml").wait_for()
    assert problems() == []


RECORDED: Final = {
    "#/timeline?outcome=all&noise=1&by=table": WIDGETS,
    "#/timeline?outcome=all": "marks",
    "#/kinds": "Choose a kind",
    f"#/kinds/{WIDGETS}": "first",
    "#/recording": "POST",
    "#/recording?by=writes": WIDGETS,
    f"#/recording?text={quote(HOSTILE)}&client={quote(LINE)}": "No request is like this",
    "#/runs": "first difference",
    "#/timeline?mark=plan-1": SAID,
}


def test_nothing_hostile_runs_in_the_static_file(
    server: Noxu, recording: Path, open_page: Open, watched: Any, tmp_path: Path
) -> None:
    run = parse(recording.read_bytes(), recording.name)
    empty = ServerRecording(run.began, 0, LINE, {}, [])
    answers = two_runs(empty, run, (f"{HOSTILE}\ud800", LINE))
    # what a file of noxu explore adds: its plan, its finding, what the program has said
    finding = {"details": [HOSTILE], "others": [LINE], "stable": False}
    answers["/_noxu/console/runs"] |= {"plan": {"title": HOSTILE, LINE: HOSTILE}, "finding": finding, "output": HOSTILE}
    place = {"resource": "", "namespace": "", "name": ""}
    struck = {
        "key": "plan-1",
        "at": 0.5,
        "lane": "the plan",
        "what": "plan",
        "verb": HOSTILE,
        "subresource": "",
        "because": [],
    }
    answers["/_noxu/console/timeline"]["marks"].insert(0, {**struck, **place})
    file = tmp_path / "run.html"
    file.write_bytes(static_file.page(answers))
    steps = answers["/_noxu/console/recording"]["steps"]
    writes = [mark["revision"] for mark in answers["/_noxu/console/timeline"]["marks"] if mark["what"] == "write"]
    views = {
        **RECORDED,
        **{f"#/recording/{step['step']}": "after" for step in steps if step["client"]["agent"] == LINE},
        **{f"#/recording/write-{revision}": f"Revision {revision}" for revision in writes[-4:]},
    }
    page = open_page("#/kinds")
    page.goto(file.as_uri())
    problems = watched(page)
    found = {}
    for address, says in views.items():
        page.evaluate("address => { location.hash = address }", address)
        page.locator("main").get_by_text(says).first.wait_for(state="attached")
        if problem := problems():
            found[address] = problem
    assert found == {}
    assert [name for name in (SECRET, PLAIN) if name in file.read_text() or name in recording.read_text()] == []


# -- secrets -----------------------------------------------------------------------------------------------------------


def test_no_view_and_no_answer_of_the_console_has_the_data_of_a_secret(
    open_page: Open, api: ApiClient, server: Noxu
) -> None:
    page = open_page("#/kinds")
    bodies: list[str] = []
    page.on(
        "response",
        lambda response: bodies.append(response.url) if "/stream" not in response.url and leaks(response) else None,
    )

    def leaks(response: Any) -> bool:
        text = response.text()
        return SECRET in text or PLAIN in text

    marks = api.send("GET", "/_noxu/console/timeline").value["marks"]
    of_secrets = [mark["key"] for mark in marks if mark["resource"] == "secrets"]
    assert of_secrets
    for address, says in {
        **{f"#/timeline?mark={key}": "masked" for key in of_secrets},
        "#/kinds/secrets": "first",
        "#/at/now/secrets/default/first": "masked",
        "#/at/now/secrets/default/first?tab=state": "masked",
        "#/at/now/secrets/default/first?tab=blame": "masked",
        "#/at/now/secrets/default/first?tab=events": "Created",
        "#/why/secrets/default/first": "As it would be stored",
    }.items():
        page.evaluate("address => { location.hash = address }", address)
        page.locator("main").get_by_text(says).first.wait_for()
        assert SECRET not in page.content(), address
        assert PLAIN not in page.content(), address
    assert [url for url in bodies if "/_noxu/" in url] == []
