"""Makes the pictures of the console in README.md and docs/console.md: docs/console/*.webp.

    python -m docs.console_pictures

They need Chromium. A story is played against a server in memory: two operators follow databases, and a fault breaks one of their
writes. Chromium shows it, so the pictures show what the console shows; `story` has the data.
"""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from noxu import Noxu
from noxu.console import static_file
from noxu.console.recorded_answers import two_runs
from noxu.recordings.lines import parse
from noxu.values import Object

if TYPE_CHECKING:
    from playwright.sync_api import Page

FOLDER: Final = Path(__file__).with_name("console")
CHROMIUM: Final = ("chromium", "chromium-browser", "google-chrome")
SIZE: Final = {"width": 1280, "height": 720}
SCALE: Final = 1.5
QUALITY: Final = 82  # of WebP: text stays sharp

# -- the story ---------------------------------------------------------------------------------------------------------

DATABASES: Final = "databases.example.com"
PATH: Final = "/apis/example.com/v1/namespaces/shop/databases"
NAMESPACE: Final[Object] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
DEFINITION: Final[Object] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": DATABASES},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "databases", "singular": "database", "kind": "Database"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Engine", "type": "string", "jsonPath": ".spec.engine"},
                    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["engine"],
                                "properties": {
                                    "engine": {"type": "string", "enum": ["mysql", "postgres"]},
                                    "replicas": {"type": "integer", "minimum": 1, "maximum": 9, "default": 1},
                                    "storage": {
                                        "type": "object",
                                        "default": {},
                                        "properties": {
                                            "size": {"type": "string", "pattern": "^[0-9]+Gi$", "default": "10Gi"},
                                            "class": {"type": "string", "default": "standard"},
                                        },
                                    },
                                    "backup": {
                                        "type": "object",
                                        "properties": {
                                            "schedule": {"type": "string", "description": "When, as cron has it."},
                                            "keep": {"type": "integer", "minimum": 1, "default": 7},
                                        },
                                    },
                                },
                                "x-kubernetes-validations": [
                                    {
                                        "rule": "self.engine != 'mysql' || self.replicas <= 3",
                                        "message": "mysql runs at most 3 replicas",
                                    },
                                    {
                                        "rule": "!has(self.backup) || self.replicas > 1",
                                        "message": "a backup is taken from the second replica",
                                    },
                                ],
                            },
                            "status": {
                                "type": "object",
                                "properties": {
                                    "phase": {"type": "string"},
                                    "endpoint": {"type": "string"},
                                    "observedGeneration": {"type": "integer"},
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}
FAULT: Final = {
    "match": {"verbs": ["create"], "resource": "services", "namespace": "shop", "userAgent": "database-operator*"},
    "error": "ServiceUnavailable",
    "times": 1,
}


class Client:
    """A client with a user agent of its own."""

    def __init__(self, url: str, agent: str) -> None:
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
        self._agent = agent

    def send(self, method: str, path: str, body: Object | None = None) -> tuple[int, Any]:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        manager = self._agent.partition("/")[0]
        address = f"{path}?fieldManager={manager}" if method != "GET" and path.startswith("/api") else path
        headers = {"User-Agent": self._agent, "Content-Type": kind}
        self._connection.request(method, address, None if body is None else json.dumps(body), headers)
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())

    def follow(self, path: str) -> Iterator[Object]:
        """The lines of a stream, such as the events of a watch, until the server stops."""
        self._connection.request("GET", path, headers={"User-Agent": self._agent})
        stream = self._connection.getresponse()
        try:
            for line in stream:
                yield json.loads(line)
        except (OSError, HTTPException, ValueError):
            return

    def close(self) -> None:
        self._connection.close()


class Operator:
    """Follows the databases in a thread of its own. `done` is set when it has nothing left to do for a generation."""

    def __init__(self, url: str, agent: str, reconcile: Callable[[Client, Object], bool]) -> None:
        self._watching, self._writing = Client(url, agent), Client(url, agent)
        self._reconcile = reconcile
        self._done: set[tuple[str, int]] = set()
        self._changed = threading.Condition()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        for event in self._watching.follow(f"{PATH}?watch=1"):
            metadata = event["object"]["metadata"]
            if event["type"] != "DELETED" and self._reconcile(self._writing, event["object"]):
                with self._changed:
                    self._done.add((metadata["name"], metadata["generation"]))
                    self._changed.notify_all()
        self._watching.close()
        self._writing.close()

    def wait(self, name: str, generation: int) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: (name, generation) in self._done, 60):
                raise TimeoutError(f"{name} has not been reconciled")


def provide(client: Client, database: Object) -> bool:
    """The database operator: a Secret, a Service and a ConfigMap for each database. If one is refused, it goes on without it."""
    name, generation = database["metadata"]["name"], database["metadata"]["generation"]
    if database.get("status", {}).get("observedGeneration") == generation:
        return True
    labels = {"metadata": {"name": name, "labels": {"app": name}}}
    path = "/api/v1/namespaces/shop"
    if generation == 1:
        client.send("POST", f"{path}/secrets", {**labels, "stringData": {"password": "correct horse"}})
        client.send("POST", f"{path}/services", {**labels, "spec": {"ports": [{"port": 5432}]}})
    settings = {"max_connections": str(100 * database["spec"]["replicas"])}
    if generation == 1:
        client.send("POST", f"{path}/configmaps", {**labels, "data": settings})
    else:
        client.send("PATCH", f"{path}/configmaps/{name}", {"data": settings})
    status = {"phase": "Ready", "endpoint": f"{name}.shop.svc:5432", "observedGeneration": generation}
    client.send("PATCH", f"{PATH}/{name}/status", {"status": status})
    return False


def back_up(client: Client, database: Object) -> bool:
    """The backup operator: a ConfigMap for each database that is ready."""
    metadata = database["metadata"]
    if database.get("status", {}).get("observedGeneration") != metadata["generation"]:
        return False
    if metadata["generation"] == 1:
        about = {"metadata": {"name": f"{metadata['name']}-backup"}, "data": {"target": database["status"]["endpoint"]}}
        client.send("POST", "/api/v1/namespaces/shop/configmaps", about)
    return True


def database(name: str, **spec: object) -> Object:
    return {"apiVersion": "example.com/v1", "kind": "Database", "metadata": {"name": name}, "spec": spec}


def story(url: str) -> list[Operator]:
    """Play it: databases are created, scaled and refused, and the operators follow. They end with the server."""
    kubectl, deployer = Client(url, "kubectl/v1.37.0 (linux/amd64)"), Client(url, "argocd/v3.1")
    operators = [
        Operator(url, "database-operator/v2.1", provide),
        Operator(url, "backup-operator/v1.4", back_up),
    ]

    def settled(name: str, generation: int) -> None:
        for operator in operators:
            operator.wait(name, generation)

    kubectl.send("POST", PATH, database("orders", engine="postgres", replicas=2, backup={"schedule": "0 3 * * *"}))
    settled("orders", 1)
    kubectl.send("POST", PATH, database("users", engine="mysql", replicas=5))  # refused by a rule
    deployer.send("PATCH", f"{PATH}/orders", {"spec": {"replicas": 3}})
    settled("orders", 2)
    deployer.send("PATCH", f"{PATH}/orders", {"spec": {"storage": {"size": "50Gi"}}})
    settled("orders", 3)
    kubectl.close()
    deployer.close()
    return operators


@contextmanager
def played(record: Path, *, faults: bool) -> Iterator[Noxu]:
    """A server that has seen the story."""
    with Noxu(manifests=[NAMESPACE, DEFINITION], record=record, history="all") as server:
        if faults:
            tester = Client(server.url, "tester")
            tester.send("POST", "/_noxu/faults", {"rules": [FAULT]})
            tester.close()
        page = Client(server.url, "Mozilla/5.0")
        next(page.follow("/_noxu/console/stream"))  # while a page is open, what writes have sent is kept
        operators = story(server.url)
        page.close()
        yield server
    for operator in operators:
        operator.thread.join()


# -- the pictures ------------------------------------------------------------------------------------------------------


class Picture(NamedTuple):
    """`steps`: what is done before it is taken. `says`: a text that is there when the page is ready."""

    name: str
    address: str
    says: str
    steps: Callable[[Page], object] = lambda _: None
    is_dark: bool = False


def _choose_the_first(page: Page) -> None:
    page.get_by_role("application").focus()
    page.keyboard.press("Home")
    page.get_by_role("complementary").wait_for()


def _try_mysql(page: Page) -> None:
    editor = page.get_by_role("textbox", name="The object, as YAML")
    text = editor.inner_text().replace("postgres", "mysql").replace("replicas: 3", "replicas: 5")
    editor.click()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.insert_text(text.replace("schedule:", "schedul:"))
    page.get_by_text("mysql runs at most 3 replicas").wait_for()


TIMELINE: Final = "#/timeline"
LIVE: Final = (
    Picture("timeline", TIMELINE, "changed nothing", _choose_the_first),
    Picture("timeline-dark", TIMELINE, "changed nothing", _choose_the_first, is_dark=True),
    Picture("object", f"#/at/now/{DATABASES}/shop/orders?tab=blame", "50Gi"),
    Picture("why", f"#/why/{DATABASES}/shop/orders", "Accepted", _try_mysql),
    Picture("schema", f"#/schema/{DATABASES}", "mysql runs at most", is_dark=True),
)
RUNS: Final = ("without-fault.noxu", "with-fault.noxu")
RECORDED: Final = (Picture("runs", "#/runs", "first difference"),)


def pictures() -> Iterator[tuple[str, bytes]]:
    """Each picture by its name: WebP. Raises FileNotFoundError without Chromium."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        raise FileNotFoundError("the pictures need Chromium: install Debian's package chromium")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with played(folder / RUNS[0], faults=False):
            pass
        with played(folder / RUNS[1], faults=True) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
            for picture in LIVE:
                yield picture.name, taken(browser, f"{server.url}/_noxu/", picture)
            browser.close()
        one, other = (parse((folder / name).read_bytes(), name) for name in RUNS)
        file = folder / "runs.html"
        file.write_bytes(static_file.page(two_runs(one, other, RUNS)))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
            for picture in RECORDED:
                yield picture.name, taken(browser, file.as_uri(), picture)
            browser.close()


def taken(browser: Any, page_address: str, picture: Picture) -> bytes:
    """A picture of the page."""
    context = browser.new_context(
        viewport=SIZE,
        device_scale_factor=SCALE,
        color_scheme="dark" if picture.is_dark else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(f"{page_address}{picture.address}")
    page.get_by_role("main").get_by_text(picture.says).locator("visible=true").first.wait_for()
    picture.steps(page)
    page.evaluate("document.activeElement.blur()")
    session = context.new_cdp_session(page)
    shot = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    context.close()
    return base64.b64decode(shot["data"])


def main(folder: Path = FOLDER) -> None:
    folder.mkdir(exist_ok=True)
    for name, content in pictures():
        (folder / f"{name}.webp").write_bytes(content)


if __name__ == "__main__":
    main()
