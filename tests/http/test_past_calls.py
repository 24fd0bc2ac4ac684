"""`/_noxu/diff`, `/_noxu/blame` and `/_noxu/bisect` over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import pytest

from noxu.api.errors import ApiError
from noxu.control import diff, object_states
from noxu.testing.handle import MakeNoxu, Noxu
from noxu.values import Object
from noxu_storage.types import Compacted
from tests import definitions
from tests.clocks import ManualClock
from tests.http.test_past import Sent, config_map, send
from tests.timing import HANGS_AFTER

GROUP: Final = "past.example.com"
SPEC: Final = {"type": "object", "properties": {"size": {"type": "integer"}, "colour": {"type": "string"}}}
DEFINITION: Final = definitions.widgets(
    definitions.version({"type": "object", "properties": {"spec": SPEC}}), group=GROUP
)


def widget(name: str = "a", **spec: Any) -> Object:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


class Past(NamedTuple):
    """A server whose Widget a was 1, 9, 2, 8 in size; the revisions of that, and one before."""

    noxu: Noxu
    before: int
    sizes: list[int]

    def ask(self, call: str, **query: Any) -> Sent:
        given = {"from": query.pop("since"), **query} if "since" in query else query
        return send(self.noxu.url, "GET", f"/_noxu/{call}?{urlencode(given)}")


def revision(applied: list[Object]) -> int:
    return int(applied[0]["metadata"]["resourceVersion"])


@pytest.fixture(scope="module")
def past() -> Iterator[Past]:
    clock = ManualClock()
    with Noxu(manifests=[DEFINITION], clock=clock) as noxu:
        before = send(noxu.url, "GET", "/_noxu/at/now").value["revision"]
        sizes = []
        for size in (1, 9, 2, 8):
            clock.jump(60)
            sizes.append(revision(noxu.apply(widget(size=size, colour="red"))))
        yield Past(noxu, before, sizes)


def test_blame_has_the_revision_of_each_line_and_who_wrote_it(past: Past) -> None:
    answer = past.ask("blame", type="Widget", name="a").value
    first, *_, last = past.sizes
    lines = {line["text"].strip(): line["revision"] for line in answer["lines"]}
    assert (lines["size: 8"], lines["colour: red"], lines["spec:"], lines["generation: 4"]) == (
        last,
        first,
        first,
        last,
    )
    assert not any("managedFields" in text for text in lines)
    assert answer["object"] == {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "namespace": "default", "name": "a"}
    assert answer["complete"] is True
    assert answer["writes"] == [
        {"revision": first, "time": "2026-01-02T03:05:05.678901Z", "verb": "create", "user": "system:anonymous",
         "agent": "noxu-handle", "manager": "noxu"},
        {"revision": last, "time": "2026-01-02T03:08:05.678901Z", "verb": "update", "user": "system:anonymous",
         "agent": "noxu-handle", "manager": "noxu"},
    ]  # fmt: skip


def test_blame_of_an_earlier_moment_with_owners(past: Past) -> None:
    answer = past.ask("blame", type="widgets", name="a", at=past.sizes[1], managedFields="true").value
    lines = {line["text"].strip(): line["revision"] for line in answer["lines"]}
    assert (lines["size: 9"], lines["managedFields:"]) == (past.sizes[1], past.sizes[0])


def test_blame_of_a_built_in_kind_and_of_a_cluster_wide_one(past: Past) -> None:
    for named in ({"type": "ns", "name": "default"}, {"type": "svc", "name": "kubernetes"}):
        assert past.ask("blame", **named).value["lines"][0]["text"] == "apiVersion: v1"


def test_what_the_history_does_not_know_the_object_tells(make_noxu: MakeNoxu) -> None:
    clock = ManualClock()
    noxu = make_noxu(history="off", clock=clock)
    noxu.apply(config_map("a", k="1"))
    clock.jump(60)
    noxu.apply(config_map("a", k="2"))
    answer = send(noxu.url, "GET", "/_noxu/blame?type=configmaps&name=a").value
    assert [(write["manager"], write.get("user")) for write in answer["writes"]] == [("noxu", None)] * 2
    assert all(write["time"].endswith("Z") for write in answer["writes"])


def test_bisect_finds_the_first_revision_and_all_changes(past: Past) -> None:
    answer = past.ask("bisect", type="widgets", name="a", condition="self.spec.size > 5").value
    assert (answer["revision"], answer["states"], answer["complete"]) == (past.sizes[1], 4, True)
    changes = [(change["revision"], change["met"], change["manager"]) for change in answer["changes"]]
    assert changes == [(each, met, "noxu") for each, met in zip(past.sizes, (False, True) * 2, strict=True)]
    never = past.ask("bisect", type="widgets", name="a", condition="self.spec.size > 50").value
    assert (never["revision"], [change["met"] for change in never["changes"]]) == (None, [False])


def changes(answer: Sent) -> list[tuple[str, str, str]]:
    return [(item["change"], item["kind"], item["name"]) for item in answer.value["items"]]


def test_diff_of_one_object(past: Past) -> None:
    answer = past.ask("diff", since=past.sizes[0], to=past.sizes[1], type="widgets", name="a")
    [item] = answer.value["items"]
    name = f"{GROUP}.v1.Widget.default.a"
    assert item["diff"].splitlines()[:2] == [f"--- {past.sizes[0]}/{name}", f"+++ {past.sizes[1]}/{name}"]
    assert [line for line in item["diff"].splitlines()[3:] if line[0] in "+-"] == [
        "-  generation: 1", "+  generation: 2", "-  size: 1", "+  size: 9",
    ]  # fmt: skip
    assert answer.value["from"] == {"revision": past.sizes[0], "time": "2026-01-02T03:05:05.678901Z"}
    back = past.ask("diff", since=past.sizes[1], to=past.sizes[0], type="widgets", name="a").value["items"][0]["diff"]
    assert "-  size: 9\n+  size: 1" in back


def test_diff_of_everything_is_what_was_created_changed_and_deleted(make_noxu: MakeNoxu) -> None:
    noxu = make_noxu(manifests=[DEFINITION])
    noxu.apply(config_map("changed", k="1"), config_map("deleted"), config_map("replaced"), config_map("same", k="1"))
    start = revision(noxu.apply(widget()))
    noxu.apply(config_map("changed", k="2"), config_map("same", k="2"), config_map("created"))
    noxu.apply(config_map("same", k="1"))
    noxu.delete("configmaps", "deleted")
    noxu.delete("configmaps", "replaced")
    noxu.create(config_map("replaced"))
    noxu.create(config_map("short"))
    noxu.delete("configmaps", "short")
    noxu.apply(widget("b"))
    past = Past(noxu, 0, [])
    configs = [("changed", "changed"), ("created", "created"), ("deleted", "deleted"), ("replaced", "replaced")]
    of_config = [(change, "ConfigMap", name) for change, name in configs]
    both = past.ask("diff", since=start)
    assert changes(both) == [*of_config, ("created", "Widget", "b")]
    assert changes(past.ask("diff", since=start, type="cm")) == of_config
    assert changes(past.ask("diff", since=start, type="widgets", namespace="other")) == []
    assert changes(past.ask("diff", since=start, to=start)) == []
    some = past.ask("diff", since=start, limit=2)
    assert (changes(some), some.value["remaining"]) == (of_config[:2], 5), "two of them show no difference"
    assert changes(past.ask("diff", since="now", to=start))[1:3] == [
        ("deleted", "ConfigMap", "created"), ("created", "ConfigMap", "deleted"),
    ]  # fmt: skip


def test_diff_shows_what_a_definition_makes_of_an_object(make_noxu: MakeNoxu) -> None:
    noxu = make_noxu(manifests=[DEFINITION])
    start = revision(noxu.apply(widget(size=1, colour="red")))
    changed = {"size": {"type": "integer"}, "parts": {"type": "integer", "default": 3}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": changed}}}
    noxu.apply(definitions.widgets(definitions.version(schema), group=GROUP))
    past = Past(noxu, 0, [])
    [item] = past.ask("diff", since=start, type="widgets", name="a").value["items"]
    assert "-  colour: red\n+  parts: 3" in item["diff"]
    noxu.delete("customresourcedefinitions", f"widgets.{GROUP}")
    gone = past.ask("diff", since=start, type="widgets", name="a").value["items"]
    assert [each["change"] for each in gone] == ["deleted"]


REFUSED: Final = [
    ("no moment", "diff", {}, 400, "from: it is required"),
    ("a moment to come", "diff", {"since": "9999"}, 400, "revision 9999 does not exist yet"),
    ("no objects", "diff", {"since": "1", "limit": "0"}, 400, "limit: it is at least 1"),
    ("a name without a type", "diff", {"since": "1", "name": "a"}, 400, "name needs a type"),
    ("a type that is served at neither moment", "diff", {"since": "1", "type": "widgts"}, 404, "did you mean widgets."),
    ("an object that is not there", "blame", {"type": "widgets", "name": "z"}, 404,
     f"there is no widgets.{GROUP} default/z at revision "),
    ("a type that was not served", "blame", {"type": "widgets", "name": "a", "at": "1"}, 404,
     "at revision 1, no kind 'widgets' is served"),
    ("a kind that is not stored", "blame", {"type": "tokenreviews", "name": "a"}, 400, "they are not stored"),
    ("no condition", "bisect", {"type": "widgets", "name": "a"}, 400, "condition: it is required"),
    ("a bad condition", "bisect", {"type": "widgets", "name": "a", "condition": "self."}, 400, "Syntax error"),
    ("a condition on a field that there is not", "bisect", {"type": "widgets", "name": "a", "condition": "self.spec.sise > 1"},
     400, "condition: no Widget has a field 'sise'; did you mean size?"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "query", "code", "text"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_what_is_refused(past: Past, call: str, query: dict[str, str], code: int, text: str) -> None:
    answer = past.ask(call, **query)
    assert (answer.code, text in answer.value["message"]) == (code, True), answer.value


def test_what_is_compacted_is_said(make_noxu: MakeNoxu) -> None:
    noxu = make_noxu()
    noxu.apply(config_map("a", k="1"))
    middle = revision(noxu.apply(config_map("a", k="2")))
    noxu.apply(config_map("a", k="3"))
    noxu._runner.submit(noxu._server.plane.store.compact(middle)).result()
    past = Past(noxu, 0, [])
    gone = past.ask("diff", since=middle - 1)
    assert (gone.code, gone.value["reason"]) == (410, "Expired")
    blamed = past.ask("blame", type="cm", name="a").value
    assert (blamed["complete"], {line["revision"] for line in blamed["lines"]}) == (False, {middle, middle + 1})


def test_it_is_for_masters_only(make_noxu: MakeNoxu) -> None:
    noxu = make_noxu(authorization_modes=["RBAC"], users={"root": ["system:masters"], "dev": []})
    noxu.apply(config_map("a"))
    for call in ("diff?from=1", "blame?type=cm&name=a", "bisect?type=cm&name=a&condition=true"):
        codes = [send(noxu.url, "GET", f"/_noxu/{call}", noxu.users[user].headers).code for user in ("root", "dev")]
        assert codes == [200, 403]


def test_pins_are_no_objects(make_noxu: MakeNoxu) -> None:
    noxu = make_noxu()
    start = revision(noxu.apply(config_map("a")))
    send(noxu.url, "POST", "/_noxu/snapshots", {}, {"name": "base"})
    noxu.apply(config_map("b"))
    assert [each[2] for each in changes(Past(noxu, 0, []).ask("diff", since=start))] == ["b"]
    assert [each[2] for each in changes(Past(noxu, 0, []).ask("diff", since="base"))] == ["b"]
    assert diff.DIFFERENCES > 1


def test_large_differences_end_an_answer(make_noxu: MakeNoxu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff, "MAX_BYTES", 100)
    noxu = make_noxu()
    start = revision(noxu.apply(config_map("start")))
    noxu.apply(config_map("a"), config_map("b"), config_map("c"))
    some = Past(noxu, 0, []).ask("diff", since=start)
    assert (changes(some), some.value["remaining"]) == ([("created", "ConfigMap", "a")], 2)


async def test_what_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_states, "MAX_SECONDS", 0.0)
    with pytest.raises(ApiError, match="this takes more than 0 seconds: ask about less") as ended:
        async with object_states.looking_back():
            await asyncio.sleep(HANGS_AFTER)
    assert ended.value.code == 504


async def test_what_is_removed_meanwhile_is_gone() -> None:
    with pytest.raises(
        ApiError, match="was removed meanwhile: the past begins at revision 7; `noxu serve --history`"
    ) as gone:
        async with object_states.looking_back():
            raise Compacted(7)
    assert gone.value.reason == "Expired"


@pytest.mark.parametrize("data", [False, True], ids=["in memory", "SQLite"])
def test_what_is_deleted_says_where_its_past_is(make_noxu: MakeNoxu, tmp_path: Path, data: bool) -> None:
    noxu = make_noxu(data=tmp_path / "data" if data else None)
    noxu.apply(config_map("a", k="1"))
    noxu.delete("configmaps", "a")
    past = Past(noxu, 0, [])
    deleted = past.ask("at/now").value["revision"]
    noxu.apply(config_map("b"))
    assert (
        past.ask("blame", type="cm", name="a")
        .value["message"]
        .endswith(f" at revision {deleted + 1}: it was deleted at revision {deleted}, and `at` {deleted - 1} shows it")
    )
    assert past.ask("blame", type="cm", name="a", at=deleted - 1).value["complete"] is True
    assert past.ask("blame", type="cm", name="z").value["message"].endswith(", nor has there been one")
    noxu._runner.submit(noxu._server.plane.store.compact(deleted)).result()
    assert (
        past.ask("blame", type="cm", name="a")
        .value["message"]
        .endswith(f", nor has there been one since revision {deleted}, where the past begins")
    )
