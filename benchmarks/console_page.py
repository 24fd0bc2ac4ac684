"""What `python -m benchmarks.console` measures in Chromium: the first view, the frames of the timeline, the memory of the page.

Writes come from a server that runs; for the memory, from a stream that the page makes itself, which is as fast as the page
reads it. Frames are counted by requestAnimationFrame: the picture scrolls in each, and zooms in every fortieth.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import statistics
import threading
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from benchmarks.history import Client
from benchmarks.watchers import server

CHROMIUM: Final = ("chromium", "chromium-browser", "google-chrome")
PATH: Final = "/api/v1/namespaces/default/configmaps"
MARKS: Final = 10_000  # as many as a page keeps
OPENINGS: Final = 7
FRAMES_FOR: Final = 4_000  # milliseconds
TIMELINE: Final = "#/timeline?noise=1"

FIRST_VIEW: Final = """async () => {
  const rows = () => document.querySelector("main .list li, main canvas, main table tbody tr");
  while (!rows()) await new Promise(requestAnimationFrame);
  return performance.now();
}"""

FRAMES: Final = """async (most) => {
  const canvas = document.querySelector("canvas");
  const wheel = (options) => canvas.dispatchEvent(new WheelEvent("wheel", { bubbles: true, cancelable: true, ...options }));
  const [times, began] = [[], performance.now()];
  let last = began;
  for (let n = 1; last - began < most; n++) {
    wheel({ deltaX: n % 400 < 200 ? -40 : 40 });
    if (n % 40 === 0) wheel({ ctrlKey: true, deltaY: n % 80 ? -1 : 1 });
    const now = await new Promise(requestAnimationFrame);
    times.push(now - last);
    last = now;
  }
  return times.slice(1);
}"""

STREAM: Final = """(() => {
  const asked = window.fetch;
  const encoder = new TextEncoder();
  window.passed = 0;
  window.most = 0;
  const write = (n) => ({
    at: 1767225600 + n / 1000, lane: `client-${n % 40}/v1`, verb: "update", subresource: "status",
    resource: "widgets.example.com", namespace: "default", name: `widget-${n % 10000}`, revision: n, event: "MODIFIED",
    because: n > 9 ? [n - 7] : [], to: [`client-${(n + 1) % 40}/v1`], id: `${n}-6f1c-4f0e-9d4b-1e2f3a4b5c6d`, manager: "manager",
    code: 200, request: n, method: "PUT", path: `/apis/example.com/v1/namespaces/default/widgets/widget-${n % 10000}`, seconds: 0.002,
  });
  const columns = Object.keys(write(1));
  const line = (writes) => encoder.encode(JSON.stringify({
    revision: window.passed, lost: 0, columns, writes: writes.map(Object.values), marks: [], received: [],
  }) + "\\n");
  window.fetch = (path, options) => {
    if (path !== "/_noxu/console/stream") return asked(path, options);
    const body = new ReadableStream({
      async pull(control) {
        while (window.passed >= window.most) await new Promise((done) => setTimeout(done, 50));
        const writes = [];
        while (writes.length < 1000) writes.push(write(++window.passed));
        control.enqueue(line(writes));
        await new Promise((done) => setTimeout(done)); // frames are drawn meanwhile
      },
    }, { highWaterMark: 1 });
    return Promise.resolve(new Response(body));
  };
})()"""


def browser_program() -> str:
    """The path of Chromium; SystemExit with a sentence without it, or without Playwright."""
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None or find_spec("playwright") is None:
        raise SystemExit("the page is not measured: it takes Chromium on the PATH, and the package playwright")
    return found


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    program = browser_program()
    with import_module("playwright.sync_api").sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu", "--enable-precise-memory-info"]
        )
        yield browser
        browser.close()


def opened(browser: Any, address: str, script: str = "") -> tuple[Any, Any]:
    """A page, and a session of its debugger. `script` runs first."""
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.set_default_timeout(120_000)
    if script:
        page.add_init_script(script)
    session = page.context.new_cdp_session(page)
    session.send("Performance.setTimeDomain", {"timeDomain": "threadTicks"})
    session.send("Performance.enable")
    page.goto(address)
    return page, session


def processor_seconds(session: Any) -> float:
    """The processor time of the page's own thread: a busy machine makes it wait, and changes this little."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))


def measure(events: Sequence[int]) -> None:
    with server() as (port, _), chromium() as browser:
        address = f"http://127.0.0.1:{port}/_noxu/"
        writer = Writer(port)
        writer.write(500)
        first_view(browser, address)
        frames(browser, address, writer)
        heap(browser, address, events)


def first_view(browser: Any, address: str) -> None:
    """From the navigation to content from the server, with an empty cache each time."""
    for name, view in (("the timeline", TIMELINE), ("objects", "#/kinds")):
        times, spent = [], []
        for _ in range(OPENINGS):
            page, session = opened(browser, f"{address}{view}")
            times.append(page.evaluate(FIRST_VIEW))
            spent.append(processor_seconds(session) * 1000)
            page.context.close()
        print(
            f"first view of {name}: {statistics.median(times):.0f} ms, {min(times):.0f} at best; "
            f"{statistics.median(spent):.0f} ms of them its thread computes"
        )


def frames(browser: Any, address: str, writer: Writer) -> None:
    page, session = opened(browser, f"{address}{TIMELINE}")
    page.get_by_text("Live").wait_for()
    writer.write(MARKS + 500)
    page.wait_for_function("/(1\\d,\\d{3}) marks/.test(document.body.innerText)")
    for rate in (0, 100, 1_000):
        with writer.writing(rate):
            began = processor_seconds(session)
            times = page.evaluate(FRAMES, FRAMES_FOR)
            spent = (processor_seconds(session) - began) * 1000
        print(
            f"{MARKS} marks, scrolled and zoomed, {rate} writes/s: {1000 * len(times) / sum(times):.0f} frames/s, "
            f"the longest {max(times):.0f} ms, {sum(each > 50 for each in times)} of {len(times)} over 50 ms; "
            f"its thread computes {spent / len(times):.1f} ms a frame"
        )
    elements = page.evaluate("document.querySelectorAll('main *').length")
    print(f"{MARKS} marks are drawn with {elements} elements")
    page.context.close()


def heap(browser: Any, address: str, events: Sequence[int]) -> None:
    page, session = opened(browser, f"{address}{TIMELINE}", STREAM)
    for number in (10_000, *events):
        page.evaluate("(most) => (window.most = most)", number)
        page.wait_for_function("(most) => window.passed >= most", arg=number)
        session.send("HeapProfiler.collectGarbage")
        used = session.send("Runtime.getHeapUsage")["usedSize"]
        print(f"after {number} events: {used / 1e6:.1f} MB in the heap of the page")
    page.context.close()


class Writer:
    """Writes to a server from another thread, as two clients, one of which watches."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._names = 0

    def write(self, count: int) -> None:
        """Write so often, as fast as the server answers."""
        thread = threading.Thread(target=lambda: asyncio.run(self._write(count, threading.Event(), 0)))
        thread.start()  # this one has Playwright's loop
        thread.join()

    @contextlib.contextmanager
    def writing(self, rate: int) -> Iterator[None]:
        """Write so often a second while the context is open."""
        over = threading.Event()
        thread = threading.Thread(target=lambda: asyncio.run(self._write(1 << 30, over, rate)))
        if rate:
            thread.start()
        try:
            yield
        finally:
            over.set()
            if rate:
                thread.join()

    async def _write(self, count: int, over: threading.Event, rate: int) -> None:
        client = Client(*await asyncio.open_connection("127.0.0.1", self._port))
        reader, watch = await asyncio.open_connection("127.0.0.1", self._port)
        watch.write(f"GET {PATH}?watch=1 HTTP/1.1\r\nHost: localhost\r\nUser-Agent: watcher/v1\r\n\r\n".encode())
        draining = asyncio.create_task(_drain(reader))
        due = asyncio.get_running_loop().time()
        for _ in range(count):
            if over.is_set():
                break
            self._names += 1
            await client.send("POST", PATH, b'{"metadata": {"name": "a%d"}}' % self._names)
            if rate:
                due += 1 / rate
                await asyncio.sleep(max(due - asyncio.get_running_loop().time(), 0))
        draining.cancel()
        watch.close()
        await client.close()


async def _drain(reader: asyncio.StreamReader) -> None:
    while await reader.read(1 << 20):
        pass
