"""`noxu serve --watch`: what is applied when files change."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

from noxu.config import Config
from noxu.control_plane import ControlPlane, running
from noxu.manifests import documents as manifests
from noxu.manifests import loading, served_files
from noxu.manifests.watch import FileWatch, WatchedPaths
from noxu.registry.stored_object import object_at
from noxu.values import Json
from noxu_storage.memory import MemoryStore
from tests.control_planes import assemble
from tests.optional import needs_program
from tests.timing import eventually_async

CRD: Final = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {size: {type: integer, minimum: 1}}}}
"""


def widget(name: str, size: int) -> str:
    return f"apiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: {name}}}\nsize: {size}\n"


def config_map(name: str, value: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{value: '{value}'}}\n"


def save(path: Path, text: str) -> None:
    """As editors do it: a new file takes the place of the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text)
    temporary.replace(path)


class Watched:
    """A plane, the files that it was started with, and its log."""

    def __init__(self, plane: ControlPlane, log: pytest.LogCaptureFixture) -> None:
        self.plane = plane
        self._log = log

    async def value_of(self, name: str) -> Json:
        resource = self.plane.served_resources.current.find("", "v1", "configmaps")
        assert resource is not None
        return object_at(await self.plane.reader.get(resource, "default", name), resource)["data"]["value"]

    async def says(self, *expected: str) -> None:
        """Wait until the log has exactly these lines, and forget them."""
        await eventually_async(lambda: len(self._lines()) >= len(expected))
        assert self._lines() == list(expected)
        self._log.clear()

    def _lines(self) -> list[str]:
        return [record.getMessage() for record in self._log.records if record.name == "noxu"]


Start = Callable[..., Awaitable[Watched]]


@pytest.fixture
async def start(caplog: pytest.LogCaptureFixture) -> AsyncIterator[Start]:
    """Start with files and kustomizations, and watch them."""
    async with contextlib.AsyncExitStack() as stack:

        async def started(*files: Path, kustomizations: tuple[Path, ...] = ()) -> Watched:
            plane = await stack.enter_async_context(running(assemble(MemoryStore())))
            watch = FileWatch(files, kustomizations, every=0.02, settled=0.03)
            from noxu.manifests.documents import build

            found = [*manifests.read_paths(files), *(each for path in kustomizations for each in build(path))]
            documents, _ = loading.readable(map(loading.packed, found))
            config = Config(files=files, kustomizations=kustomizations, keep_going=True)
            loaded = await served_files.load(plane, config, documents, None, collects=True)
            task = asyncio.create_task(watch.run(plane, loaded))

            async def stop() -> None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

            stack.push_async_callback(stop)
            caplog.clear()
            return Watched(plane, caplog)

        caplog.set_level("INFO", "noxu")
        yield started


async def test_what_changes_is_applied(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    save(file, config_map("a", "1") + "---\n" + config_map("b", "1"))
    watched = await start(file)
    save(file, config_map("a", "2") + "---\n" + config_map("b", "1"))
    await watched.says("files have changed: ConfigMap a configured")
    save(file, config_map("a", "2") + "# a comment\n---\n" + config_map("b", "1") + "---\n" + config_map("c", "1"))
    await watched.says("files have changed: ConfigMap c created")
    assert [await watched.value_of(name) for name in "abc"] == ["2", "1", "1"]


async def test_files_of_a_directory_come_and_go(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    save(folder / "a.yaml", config_map("a", "1"))
    watched = await start(folder)
    save(folder / "deeper" / "b.yaml", config_map("b", "1"))
    await watched.says("files have changed: ConfigMap b created")
    (folder / "a.yaml").unlink()
    gone = f"ConfigMap default/a ({folder / 'a.yaml'})"
    await watched.says(f"one object is no longer in the files and is not deleted: {gone}; `kubectl delete` does that")
    assert await watched.value_of("a") == "1"
    save(folder / "a.yaml", config_map("a", "2"))
    await watched.says("files have changed: ConfigMap a configured")
    (folder / "deeper" / "b.yaml").rename(folder / "c.yaml")
    save(folder / "d.yaml", config_map("d", "1"))
    await watched.says("files have changed: ConfigMap b unchanged, ConfigMap d created")


async def test_a_file_that_cannot_be_read_changes_nothing_until_it_can(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    save(file, config_map("a", "1"))
    watched = await start(file)
    save(file, config_map("a", "2") + "---\na: [\n")
    await watched.says(
        f"not applied: {file}:7:1: yaml: did not find expected node content",
        f"{file}: nothing of it is applied until it can be read; its objects stay as they are",
    )
    assert await watched.value_of("a") == "1"
    save(file, config_map("a", "2"))
    await watched.says("files have changed: ConfigMap a configured")


async def test_what_was_refused_is_applied_when_its_definition_comes(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    save(folder / "a.yaml", widget("a", 0))
    watched = await start(folder)
    save(folder / "crd.yaml", CRD)
    refused = (
        'Widget.example.com "a" is invalid: size: Invalid value: 0: size in body should be greater than or equal to 1'
    )
    await watched.says(
        f"not applied: {folder / 'a.yaml'}:4:1: {refused}",
        "files have changed: CustomResourceDefinition widgets.example.com created",
    )
    save(folder / "a.yaml", widget("a", 1))
    await watched.says("files have changed: Widget a created")


async def test_what_others_have_changed_stays(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    save(file, config_map("a", "1") + "---\n" + config_map("b", "1"))
    watched = await start(file)
    await loading.apply(
        watched.plane, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"value": "9"}}
    )
    save(file, config_map("a", "2") + "---\n" + config_map("b", "1"))
    await watched.says("files have changed: ConfigMap a configured")
    assert await watched.value_of("b") == "9"


async def test_files_that_change_all_the_time_do_not_keep_others_waiting(start: Start, tmp_path: Path) -> None:
    """Of a directory only manifests count; of these one may never settle."""
    folder = tmp_path / "d"
    save(folder / "a.yaml", config_map("a", "1"))
    watched = await start(folder)

    async def busy() -> None:
        for n in itertools.count():
            save(folder / "busy.json", f'{{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {{"name": "b{n}"}}}}')
            await asyncio.sleep(0.001)

    task = asyncio.create_task(busy())
    save(folder / "a.yaml", config_map("a", "2"))

    async def applied() -> bool:
        return await watched.value_of("a") == "2"

    await eventually_async(applied)
    task.cancel()


def test_of_a_directory_only_what_may_be_read_is_watched(tmp_path: Path) -> None:
    names = ("a.yaml", "b.json.gz", "kustomization.yaml", "c.log", ".d.yaml", "e.yaml~", "f.tgz")
    for name in names:
        save(tmp_path / "d" / name, "")
    [found] = WatchedPaths([tmp_path / "d"], []).signatures().values()
    assert sorted(Path(file).name for file in found) == ["a.yaml", "b.json.gz", "kustomization.yaml"]


@needs_program("kubectl")
async def test_a_kustomization_is_built_again_when_what_it_names_changes(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "base" / "kustomization.yaml", "resources: [a.yaml]\n")
    save(tmp_path / "base" / "a.yaml", config_map("a", "1"))
    save(tmp_path / "top" / "kustomization.yaml", "resources: [../base]\nnamePrefix: my-\n")
    watched = await start(kustomizations=(Path("top"),))
    save(tmp_path / "base" / "a.yaml", config_map("a", "2"))
    await watched.says("files have changed: ConfigMap my-a configured")
    save(tmp_path / "top" / "kustomization.yaml", "resources: [../base]\nnamePrefix: your-\n")
    await watched.says(
        "files have changed: ConfigMap your-a created",
        "one object is no longer in the files and is not deleted: ConfigMap default/my-a (top, built); `kubectl delete` does that",
    )


PATHS: list[tuple[str, str]] = [
    ("a resource elsewhere", "resources: [../other/a.yaml]"),
    ("a base elsewhere", "resources: [../other]"),
    ("a patch", "patches: [{path: ../other/a.yaml}]"),
    ("a file of a generator", "configMapGenerator: [{name: a, files: [key=../other/a.yaml]}]"),
    ("a component", "components: [../other]"),
]


@pytest.mark.parametrize("text", [row[1] for row in PATHS], ids=[row[0] for row in PATHS])
def test_what_a_kustomization_names_is_watched(tmp_path: Path, text: str) -> None:
    save(tmp_path / "k" / "kustomization.yaml", text)
    save(tmp_path / "other" / "a.yaml", "")
    save(tmp_path / "other" / ".hidden", "")
    [found] = WatchedPaths([], [tmp_path / "k"]).signatures().values()
    assert set(found) == {str(tmp_path / "k/kustomization.yaml"), str(tmp_path / "other/a.yaml")}


def test_circles_end(tmp_path: Path) -> None:
    save(tmp_path / "d" / "a.yaml", "")
    (tmp_path / "d" / "self").symlink_to(tmp_path / "d")
    save(tmp_path / "k" / "kustomization.yaml", "resources: [., ../l, a.yaml]")
    save(tmp_path / "l" / "kustomization.yaml", "resources: [../k]")
    found = WatchedPaths([tmp_path / "d", tmp_path / "gone"], [tmp_path / "k"]).signatures()
    assert [len(each) for each in found.values()] == [1, 0, 2]


def test_a_file_of_the_same_size_and_time_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    save(file, "a: 1")
    paths = WatchedPaths([file], [])
    before, status = paths.signatures(), file.stat()
    save(file, "a: 2")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert paths.signatures() != before
