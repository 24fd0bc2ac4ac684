"""Lists: pages, states, selectors and continue tokens."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any, Final

import pytest

from noxu.api import selectors
from noxu.api.errors import ApiError
from noxu.registry import reader
from noxu.registry.reader import Listing, Selection, Window, list_entries
from noxu.registry.resource import Converted, Resource
from noxu.registry.stored_object import StoredObject
from noxu.values import Object
from tests.registry.world import GROUP, World, error_of, version, widget, widgets, world_of
from tests.timing import loop_turns

PLACES: Final = [("b", "x"), ("a", "y"), ("a-b", "x"), ("a", "x")]
ORDER: Final = ["a-b/x", "a/x", "a/y", "b/x"]  # of the keys /namespace/name


@pytest.fixture
async def filled(world: World) -> World:
    """A world with four Widgets, which are created at the revisions 2 to 5; those named x have the label x."""
    for namespace, name in PLACES:
        await world.create(widget(name, metadata={"labels": {"name": name}}), namespace=namespace)
    return world


def names(found: Listing) -> list[str]:
    return [f"{entry.namespace}/{entry.key.name}" for entry in found.entries]


async def list_(
    world: World, *, namespace: str | None = None, labels: str = "", fields: str = "", **window: Any
) -> Listing:
    selection = Selection(
        world.widgets,
        namespace,
        selectors.parse_labels(labels) if labels else None,
        selectors.parse_fields(fields) if fields else None,
    )
    return await list_entries(world.reader, selection, Window(**window))


# -- what is listed ---------------------------------------------------------------------------------------------------

LISTED: Final[dict[str, tuple[dict[str, Any], list[str]]]] = {
    "everything": ({}, ORDER),
    "a namespace": ({"namespace": "a"}, ["a/x", "a/y"]),
    "a namespace without objects": ({"namespace": "c"}, []),
    "a label": ({"labels": "name=x"}, ["a-b/x", "a/x", "b/x"]),
    "a label in a namespace": ({"namespace": "a", "labels": "name!=x"}, ["a/y"]),
    "a field": ({"fields": "metadata.namespace=a"}, ["a/x", "a/y"]),
    "a label and a field": ({"labels": "name=x", "fields": "metadata.namespace=a"}, ["a/x"]),
    "nothing that matches": ({"labels": "name=z"}, []),
    "a name in a namespace": ({"namespace": "a", "fields": "metadata.name=x"}, ["a/x"]),
    "a name in all namespaces": ({"fields": "metadata.name=x"}, ["a-b/x", "a/x", "b/x"]),
    "a namespace and a name": ({"fields": "metadata.namespace=a,metadata.name=y"}, ["a/y"]),
    "the name of no object": ({"namespace": "a", "fields": "metadata.name=z"}, []),
    "a name in another namespace": ({"namespace": "b", "fields": "metadata.namespace=a,metadata.name=x"}, []),
    "a name and a label that differ": ({"namespace": "a", "labels": "name=y", "fields": "metadata.name=x"}, []),
}


@pytest.mark.parametrize(("selected", "expected"), LISTED.values(), ids=LISTED)
async def test_a_list_has_the_selected_objects_in_the_order_of_their_keys(
    filled: World, selected: dict[str, Any], expected: list[str]
) -> None:
    found = await list_(filled, **selected)
    assert names(found) == expected
    assert (found.revision, found.token, found.remaining) == (5, "", None)


@pytest.mark.slow(every=7)
@pytest.mark.parametrize(("selected", "expected"), LISTED.values(), ids=LISTED)
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("history", [False, True])
async def test_pages_show_the_same_objects_each_once(
    filled: World, selected: dict[str, Any], expected: list[str], limit: int, history: bool
) -> None:
    """Also if objects are created and deleted between the pages: these come from the history."""
    first = await list_(filled, limit=limit, **selected)
    if history:
        await filled.create(widget("w", metadata={"labels": {"name": "x"}}), namespace="a")
        await filled.writer.environment.persistence.remove(await filled.entry("x", "b"))
    found = [first]
    while found[-1].token:
        found.append(await list_(filled, limit=limit, token=found[-1].token, **selected))
    assert [name for page in found for name in names(page)] == expected
    assert {page.revision for page in found} == {5}
    assert all(len(page.entries) == limit for page in found[:-1])


@pytest.mark.parametrize("history", [False, True])
async def test_pages_count_the_remaining_objects_unless_a_selector_drops_some(filled: World, history: bool) -> None:
    first = await list_(filled, limit=1)
    if history:
        await filled.create(widget("new"), namespace="a")
    second = await list_(filled, limit=1, token=first.token)
    last = await list_(filled, limit=2, token=second.token)
    assert [page.remaining for page in (first, second, last)] == [3, 2, None]
    assert (await list_(filled, limit=1, labels="name=x")).remaining is None


# -- states -----------------------------------------------------------------------------------------------------------

STATES: Final[dict[str, tuple[dict[str, Any], list[str], int]]] = {
    # After five writes: x in b, y in a, x in a-b, x in a, and the deletion of y.
    "the newest": ({}, ["a-b/x", "a/x", "b/x"], 6),
    "any": ({"revision": None}, ["a-b/x", "a/x", "b/x"], 6),
    "any has one page": ({"revision": None, "limit": 1}, ["a-b/x", "a/x", "b/x"], 6),
    "at least an old one": ({"revision": 3}, ["a-b/x", "a/x", "b/x"], 6),
    "exactly an old one": ({"revision": 3, "exact": True}, ["a/y", "b/x"], 3),
    "exactly the newest": ({"revision": 6, "exact": True}, ["a-b/x", "a/x", "b/x"], 6),
    "a page of an old one": ({"revision": 3, "exact": True, "limit": 1}, ["a/y"], 3),
    "an old one, selected": ({"revision": 5, "exact": True, "labels": "name=y"}, ["a/y"], 5),
}


@pytest.mark.parametrize(("window", "expected", "revision"), STATES.values(), ids=STATES)
async def test_the_state_that_a_list_shows(
    filled: World, window: dict[str, Any], expected: list[str], revision: int
) -> None:
    await filled.persistence.remove(await filled.entry("y", "a"))
    found = await list_(filled, **window)
    assert (names(found), found.revision) == (expected, revision)


async def test_an_exact_state_after_writes_to_other_collections_is_that_of_the_cache(filled: World) -> None:
    await list_(filled)  # loads the collection
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    await filled.create(config_map, resource=filled.resource("configmaps"))
    found = await list_(filled, revision=5, exact=True)
    assert (names(found), found.revision) == (ORDER, 5)
    assert found.entries[0] is filled.reader.cache.collections[filled.widgets.collection].entries[found.entries[0].key]


async def test_history_is_read_in_parts_until_a_page_is_full(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "HISTORY_PAGE", 1)
    await filled.create(widget("new"), namespace="a")
    found = await list_(filled, revision=5, exact=True, labels="name=x", limit=2)
    assert names(found) == ["a-b/x", "a/x"]
    rest = await list_(filled, labels="name=x", limit=2, token=found.token)
    assert (names(rest), rest.token) == (["b/x"], "")


async def test_a_page_of_history_is_never_longer_than_its_limit(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "HISTORY_PAGE", 2)
    await filled.create(widget("new"), namespace="a")
    found = await list_(filled, revision=5, exact=True, fields="metadata.namespace!=a-b", limit=2)
    assert names(found) == ["a/x", "a/y"]


@pytest.mark.parametrize("window", [{}, {"revision": 5, "exact": True}], ids=["the newest", "an old state"])
async def test_a_page_that_ends_with_the_last_object_is_the_last(filled: World, window: dict[str, Any]) -> None:
    if window:
        await filled.create(widget("new"), namespace="a")
    found = await list_(filled, labels="name=x", limit=3, **window)
    assert (names(found), found.token) == (["a-b/x", "a/x", "b/x"], "")


async def test_a_list_waits_for_a_future_revision(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BLOCK_TIMEOUT", 0.0)
    with pytest.raises(ApiError) as caught:
        await list_(filled, revision=9)
    assert caught.value.message == "Timeout: Too large resource version: 9, current: 5"
    assert caught.value.code == 504


async def test_after_compaction_an_old_state_is_gone(filled: World) -> None:
    await filled.store.compact(4)
    assert (await error_of(list_(filled, revision=3, exact=True))) == (
        "The resourceVersion for the provided list is too old."
    )


async def test_after_compaction_a_list_may_continue_with_the_newest_state(filled: World) -> None:
    first = await list_(filled, limit=1)
    await filled.create(widget("w"), namespace="a")
    await filled.store.compact(6)
    with pytest.raises(ApiError) as caught:
        await list_(filled, limit=1, token=first.token)
    assert (caught.value.code, caught.value.reason) == (410, "Expired")
    assert caught.value.message.startswith("The provided continue parameter is too old")
    token = caught.value.metadata["continue"]
    rest = await list_(filled, token=token)
    assert (names(rest), rest.revision) == (["a/w", "a/x", "a/y", "b/x"], 6)


@pytest.mark.parametrize("namespace", [None, "a"])
async def test_a_list_is_complete_although_an_object_is_created_while_its_entries_are_converted(
    namespace: str | None,
) -> None:
    """The page was decided before; what comes later is neither in it nor on a next page."""
    async with world_of(defined=widgets(version(), version("v2"))) as world:
        await world.create(widget("x"), namespace="a")

        class Interrupted:
            timeout = 30

            async def convert(self, values: list[Object], api_version: str, weight: int) -> Converted:
                await world.create(widget(f"y{world.store.revision}"), namespace="a")
                return Converted([{**value, "apiVersion": api_version} for value in values], weight)

        world.widgets.versions.converter = Interrupted()
        selection = Selection(world.resource("widgets", GROUP, "v2"), namespace)
        for window in (Window(), Window(limit=1)):
            before = len((await world.reader.collection(world.widgets)).keys)
            found = await list_entries(world.reader, selection, window)
            remaining = before - 1 if window.limit else 0
            assert len(found.entries) == before - remaining
            assert (bool(found.token), found.remaining) == (bool(remaining), remaining or None)


# -- selecting --------------------------------------------------------------------------------------------------------


@dataclass
class Costly:
    """A selector that counts its matches and is said to need `cost` comparisons for each."""

    cost: int
    matched: int = 0

    def matches(self, labels: dict[str, str] | str, /) -> bool:
        self.matched += 1
        return True


@pytest.mark.parametrize(
    ("cost", "matched"), [(1, 4), (reader.MAX_COMPARISONS // 2, 2), (10 * reader.MAX_COMPARISONS, 1)]
)
async def test_other_tasks_run_after_a_limited_number_of_comparisons(filled: World, cost: int, matched: int) -> None:
    labels = Costly(cost)
    entries = (await list_(filled)).entries
    selecting = reader.select(entries, Selection(filled.widgets, labels=labels))
    selecting.send(None)  # until it waits
    assert labels.matched == matched
    selecting.close()
    await loop_turns(1)


async def test_selecting_ends_when_the_limit_is_reached(filled: World) -> None:
    labels = Costly(10 * reader.MAX_COMPARISONS)
    entries = (await list_(filled)).entries
    assert len(await reader.select(entries, Selection(filled.widgets, labels=labels), 2)) == 2
    assert labels.matched == 2


async def test_the_list_of_one_name_reads_one_entry(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[StoredObject] = []
    matches = Selection.matches
    monkeypatch.setattr(Selection, "matches", lambda self, entry: seen.append(entry) or matches(self, entry))  # type: ignore[func-returns-value]
    assert names(await list_(filled, namespace="a", fields="metadata.name=x")) == ["a/x"]
    assert [entry.key.name for entry in seen] == ["x"]


async def test_a_list_of_one_name_in_all_namespaces_reads_only_objects_of_this_name(
    filled: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[StoredObject] = []

    async def entries_at(entries: list[StoredObject], resource: Resource) -> list[StoredObject]:
        seen.extend(entries)
        return entries

    monkeypatch.setattr(reader, "entries_at", entries_at)
    assert names(await list_(filled, fields="metadata.name=y")) == ["a/y"]
    assert [entry.key.name for entry in seen] == ["y"]


@pytest.mark.parametrize("text", [
    "metadata.name=x", "metadata.name=x,metadata.name=y", "metadata.name!=x", "metadata.name=x,metadata.namespace!=a",
    "metadata.name=", "metadata.name=/",
])  # fmt: skip
@pytest.mark.parametrize("limit", [0, 1, 2, 3])
async def test_selecting_by_name_finds_what_matching_each_object_finds(filled: World, text: str, limit: int) -> None:
    selection = Selection(filled.widgets, fields=selectors.parse_fields(text))
    entries = [await filled.entry(name, namespace) for namespace, name in PLACES]
    each = [entry for entry in entries if selection.matches(entry)]
    assert await reader.select(entries, selection, limit) == (each[:limit] if limit else each)


async def test_an_entry_is_indexed_when_a_selector_has_matched_it(filled: World) -> None:
    selection = Selection(
        filled.widgets, labels=selectors.parse_labels("name=x"), fields=selectors.parse_fields("metadata.name=x")
    )
    found = await filled.entry("x", "a")
    entry = StoredObject(found.key, found.stored, found.revision)
    assert not selection.is_indexed(entry)
    assert selection.matches(entry)
    assert selection.is_indexed(entry)
    assert selection._replace(resource=widgets().storage).is_indexed(entry)
    selectable = widgets(version(selectableFields=[{"jsonPath": ".spec.size"}])).storage
    assert not selection._replace(resource=selectable).is_indexed(entry)
    assert selection.labels is not None
    assert selection.fields is not None
    assert selection.cost == selection.labels.cost + selection.fields.cost > 0


# -- continue tokens --------------------------------------------------------------------------------------------------


def token_of(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def token(rv: Any = 5, start: Any = "/a/x\0", v: Any = "meta.k8s.io/v1") -> str:
    return token_of({"v": v, "rv": rv, "start": start})


BAD_TOKENS: Final[dict[str, tuple[str, str]]] = {
    "no base64": ("a$b", ": illegal base64 data at input byte 1"),
    "too short": ("abcde", ": illegal base64 data at input byte 4"),
    "no object": (token_of([]), ": server does not recognize this encoded version "),
    "another version": (token(v="v2"), ": server does not recognize this encoded version v2"),
    "no revision": (token(rv=0), ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)"),
    "a revision of text": (token(rv="5"), ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)"),
    "no start": (token(start=""), ": encoded start key empty (version meta.k8s.io/v1)"),
    "a start that is a number": (token(start=3), ": encoded start key empty (version meta.k8s.io/v1)"),
    "a start that leaves its folder": (token(start="/../x"), ": /../x"),
    "a start with an empty part": (token(start="/a//x"), ": /a//x"),
}


@pytest.mark.parametrize(("bad", "why"), BAD_TOKENS.values(), ids=BAD_TOKENS)
async def test_a_bad_continue_token_is_refused(filled: World, bad: str, why: str) -> None:
    assert await error_of(list_(filled, token=bad)) == f"invalid continue token: continue key is not valid{why}"


GOOD_TOKENS: Final[dict[str, tuple[str, str | None, list[str]]]] = {
    "of all namespaces": (token(start="/a/x\0"), None, ["a/y", "b/x"]),
    "without the slash": (token(start="a/x\0"), None, ["a/y", "b/x"]),
    "without the zero byte": (token(start="/a/x"), None, ["a/y", "b/x"]),
    "of a namespace": (token(start="/x\0"), "a", ["a/y"]),
    "of the newest state": (token(rv=-1), None, ["a/y", "b/x"]),
    "of an older state": (token(rv=3, start="/a/y\0"), None, ["b/x"]),
    "of an object that never existed": (token(start="/a/xx\0"), None, ["a/y", "b/x"]),
}


@pytest.mark.parametrize(("good", "namespace", "expected"), GOOD_TOKENS.values(), ids=GOOD_TOKENS)
async def test_a_list_continues_after_the_object_in_its_token(
    filled: World, good: str, namespace: str | None, expected: list[str]
) -> None:
    assert names(await list_(filled, namespace=namespace, token=good)) == expected


async def test_cluster_scoped_objects_have_pages(world: World) -> None:
    namespaces = world.resource("namespaces")
    for name in "cab":
        value = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await world.create(value, resource=namespaces)
    first = await list_entries(world.reader, Selection(namespaces), Window(limit=2))
    last = await list_entries(world.reader, Selection(namespaces), Window(limit=2, token=first.token))
    assert [entry.key.name for page in (first, last) for entry in page.entries] == ["a", "b", "c"]


async def test_a_list_with_a_corrupt_object_is_refused_in_its_namespace(filled: World) -> None:
    collection = await filled.reader.collection(filled.widgets)
    collection.corrupt[filled.key("bad", "a")] = 3
    for namespace in (None, "a"):
        assert "failed to read one or more widgets" in await error_of(list_(filled, namespace=namespace))
    assert names(await list_(filled, namespace="b")) == ["b/x"]
