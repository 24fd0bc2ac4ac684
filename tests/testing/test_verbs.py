"""What a test asks the server: each verb, in a sync and in an async test."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from noxu import ApiError, ApiWarning, LoadError, Noxu, UnknownFieldWarning
from tests.testing.widgets import DEFINITION, size, widget

pytestmark = pytest.mark.noxu(DEFINITION)


def test_what_is_created_can_be_read_and_listed(noxu: Noxu) -> None:
    created = noxu.create(widget("a"))
    assert type(created) is dict
    assert created["spec"] == {"size": 1}
    assert noxu.get("widgets", "a") == created
    assert noxu.get(created) == created
    assert noxu.list("widgets") == [created]


async def test_in_a_coroutine_the_same_verbs_are_awaited(noxu: Noxu) -> None:
    created = await noxu.create(widget("a"))
    assert type(created) is dict
    assert await noxu.get("widgets", "a") == created
    assert await noxu.list("widgets") == [created]
    assert size(await noxu.patch(created, {"spec": {"size": 2}})) == 2
    [again] = await noxu.apply(widget("a", size=3))
    assert size(await noxu.update({**again, "spec": {"size": 4}})) == 4
    assert (await noxu.status(created, {"size": 4}))["status"] == {"size": 4}
    assert (await noxu.scale(created, 5))["spec"] == {"replicas": 5}
    assert (await noxu.delete(created))["status"] == "Success"
    assert await noxu.events(created) == []
    assert await noxu.requests() == []


SOURCES: dict[str, Any] = {
    "an object": lambda _: widget("a"),
    "a text": lambda _: yaml.safe_dump(widget("a")),
    "a path": lambda path: path / "a.yaml",
    "the name of a file": lambda path: str(path / "a.yaml"),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())
def test_one_object_is_created_from(source: Any, noxu: Noxu, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(widget("a")))
    assert noxu.create(source(tmp_path))["metadata"]["name"] == "a"


def test_create_takes_one_object(noxu: Noxu) -> None:
    with pytest.raises(LoadError, match="2 objects, and not one: `apply` takes any number"):
        noxu.create({"apiVersion": "v1", "kind": "List", "items": [widget("a"), widget("b")]})


def test_a_generated_name(noxu: Noxu) -> None:
    value = {**widget(""), "metadata": {"generateName": "w-"}}
    assert noxu.create(value)["metadata"]["name"].startswith("w-")


def test_a_dry_run_stores_nothing(noxu: Noxu) -> None:
    assert noxu.create(widget("a"), dry_run=True)["spec"] == {"size": 1}
    assert noxu.list("widgets") == []


def test_namespaces(noxu: Noxu) -> None:
    noxu.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    noxu.create(widget("a"))
    there = noxu.create(widget("a", size=2), namespace="other")
    assert there["metadata"]["namespace"] == "other"
    assert size(noxu.get("widgets", "a", namespace="other")) == 2
    assert size(noxu.get("widgets", "a")) == 1
    assert size(noxu.get(there)) == 2
    assert [size(item) for item in noxu.list("widgets")] == [1, 2]
    assert [size(item) for item in noxu.list("widgets", namespace="other")] == [2]


SELECTED = [
    ("a label", {"labels": {"app": "x"}}, ["a"]),
    ("an expression", {"labels": "app in (x, y)"}, ["a", "b"]),
    ("a field", {"fields": {"metadata.name": "b"}}, ["b"]),
]


@pytest.mark.parametrize(("options", "names"), [row[1:] for row in SELECTED], ids=[row[0] for row in SELECTED])
def test_a_list_selects_by(options: Any, names: list[str], noxu: Noxu) -> None:
    for name, app in (("a", "x"), ("b", "y"), ("c", "z")):
        noxu.create({**widget(name), "metadata": {"name": name, "labels": {"app": app}}})
    assert [item["metadata"]["name"] for item in noxu.list("widgets", **options)] == names


def test_the_kind_of_a_list_may_be_that_of_an_object(noxu: Noxu) -> None:
    created = noxu.create(widget("a"))
    assert noxu.list(created) == noxu.list({"apiVersion": "example.com/v1", "kind": "Widget"}) == [created]


def test_items_of_a_list_have_their_kind(noxu: Noxu) -> None:
    [account] = noxu.list("serviceaccounts", namespace="default")
    assert (account["apiVersion"], account["kind"]) == ("v1", "ServiceAccount")
    assert noxu.get(account) == account


PATCHES: list[tuple[str, Any, dict[str, Any], int]] = [
    ("a merge patch", {"spec": {"size": 3}}, {}, 3),
    ("a JSON patch", [{"op": "replace", "path": "/spec/size", "value": 4}], {}, 4),
    ("a configuration", {"spec": {"size": 5}}, {"type": "apply", "field_manager": "me", "force": True}, 5),
]


@pytest.mark.parametrize(
    ("patch", "options", "expected"), [row[1:] for row in PATCHES], ids=[row[0] for row in PATCHES]
)
def test_an_object_is_changed_by(patch: Any, options: Any, expected: int, noxu: Noxu) -> None:
    created = noxu.create(widget("a"))
    assert size(noxu.patch("widgets", "a", patch, **options)) == expected
    assert size(noxu.patch(created, patch, **options)) == expected


def test_a_strategic_merge_patch(noxu: Noxu) -> None:
    containers = [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]
    noxu.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}})
    patch = {"spec": {"containers": [{"name": "b", "image": "z"}]}}
    changed = noxu.patch("pods", "p", patch, type="strategic")
    assert [container["image"] for container in changed["spec"]["containers"]] == ["x", "z"]


def test_another_owner_of_a_field_is_a_conflict(noxu: Noxu) -> None:
    noxu.create(widget("a", size=2))
    with pytest.raises(ApiError) as refused:
        noxu.patch("widgets", "a", {"spec": {"size": 3}}, type="apply", field_manager="me")
    assert (refused.value.code, refused.value.reason) == (409, "Conflict")


def test_an_update_with_an_old_version_is_a_conflict(noxu: Noxu) -> None:
    old = noxu.create(widget("a"))
    new = noxu.update({**old, "spec": {"size": 2}})
    with pytest.raises(ApiError, match="has been modified") as refused:
        noxu.update({**old, "spec": {"size": 3}})
    assert refused.value.code == 409
    assert noxu.get(old) == new


def test_status_and_scale(noxu: Noxu) -> None:
    created = noxu.create(widget("a"))
    noxu.status("widgets", "a", {"ready": True})
    assert noxu.status(created, {"size": 1})["status"] == {"ready": True, "size": 1}
    assert noxu.scale("widgets", "a", 2)["spec"] == {"replicas": 2}
    assert noxu.scale(created, 3)["spec"] == {"replicas": 3}
    assert size(noxu.get(created)) == 3


def test_an_object_with_finalizers_stays(noxu: Noxu) -> None:
    kept = noxu.create({**widget("a"), "metadata": {"name": "a", "finalizers": ["example.com/keep"]}})
    assert noxu.delete("widgets", "a")["metadata"]["deletionTimestamp"]
    noxu.patch(kept, {"metadata": {"finalizers": None}})
    assert noxu.list("widgets") == []


def test_the_propagation_of_a_deletion(noxu: Noxu) -> None:
    created = noxu.create(widget("a"))
    assert noxu.delete(created, propagation="Orphan", grace=0)["metadata"]["finalizers"] == ["orphan"]


def test_errors_have_code_reason_and_causes(noxu: Noxu) -> None:
    with pytest.raises(ApiError, match='"a" is invalid') as refused:
        noxu.create(widget("a", size=7))
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    assert [cause["field"] for cause in refused.value.causes] == ["spec.size"]
    with pytest.raises(ApiError, match=r'widgets\.example\.com "b" not found') as missing:
        noxu.get("widgets", "b")
    assert (missing.value.code, missing.value.reason, missing.value.causes) == (404, "NotFound", [])


def test_unknown_fields_warn_at_the_line_that_sends_them(noxu: Noxu) -> None:
    with pytest.warns(UnknownFieldWarning) as warned:
        stored = noxu.create(widget("a", siez=3))
    assert stored["spec"] == {"size": 1}
    [warning] = warned
    assert str(warning.message) == 'Widget: unknown field "spec.siez" (did you mean spec.size?)'
    assert warning.filename == __file__
    with pytest.warns(UnknownFieldWarning, match=r'unknown field "spec\.colour"'):
        noxu.apply(widget("b", colour="red"))


async def test_unknown_fields_warn_in_a_coroutine(noxu: Noxu) -> None:
    with pytest.warns(UnknownFieldWarning) as warned:
        await noxu.create(widget("a", siez=3))
    assert warned[0].filename == __file__


def test_unknown_fields_are_refused_if_the_call_is_strict(noxu: Noxu) -> None:
    with pytest.raises(ApiError, match=r'strict decoding error: unknown field "spec\.siez"'):
        noxu.create(widget("a", siez=3), strict=True)
    with pytest.raises(ApiError, match="strict decoding error"):
        noxu.apply(widget("a", siez=3), strict=True)


TWICE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {k: v, k: w}
"""


def test_fields_that_are_there_twice_warn_and_are_refused_likewise(noxu: Noxu) -> None:
    for write in (noxu.create, noxu.apply):
        with pytest.raises(
            ApiError, match=r'strict decoding error: yaml: unmarshal errors:\n.*key "k" already set in map'
        ):
            write(TWICE, strict=True)  # type: ignore[operator]
        with pytest.warns(UnknownFieldWarning, match='ConfigMap: line 5: key "k" already set in map'):
            write(TWICE)  # type: ignore[operator]


def test_a_strict_server_refuses_them_unless_a_call_does_not() -> None:
    with Noxu(None, [DEFINITION], strict=True) as noxu:
        with pytest.raises(ApiError, match="strict decoding error"):
            noxu.create(widget("a", siez=3))
        with pytest.warns(UnknownFieldWarning):
            noxu.create(widget("a", siez=3), strict=False)


def test_other_warnings_of_the_server_are_warnings(noxu: Noxu) -> None:
    definition = noxu.get("crds", "widgets.example.com")
    definition["spec"]["versions"][1] |= {"deprecated": True, "deprecationWarning": "v1alpha1 is old"}
    noxu.update(definition)
    with pytest.warns(ApiWarning, match="^v1alpha1 is old$"):
        noxu.create({**widget("a"), "apiVersion": "example.com/v1alpha1"})


def test_calls_with_too_few_arguments_say_which(noxu: Noxu) -> None:
    with pytest.raises(TypeError, match="after a kind come name and patch"):
        noxu.patch("widgets", {"spec": {}})  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="after an object come replicas"):
        noxu.scale(widget("a"), "a", 3)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="the name of the widgets is missing"):
        noxu.get("widgets")  # type: ignore[call-overload]


def test_many_calls_at_once(noxu: Noxu) -> None:
    async def create() -> list[dict[str, Any]]:
        return await asyncio.gather(*(noxu.create(widget(f"w{n}", size=n % 5)) for n in range(20)))

    created = asyncio.run(create())
    assert [size(item) for item in created] == [n % 5 for n in range(20)]


def test_a_user_has_the_verbs_with_its_own_rights() -> None:
    with Noxu(None, [DEFINITION], authorization_modes=["RBAC"], users=["jane"]) as noxu:
        noxu.create(widget("a"))
        with pytest.raises(ApiError, match='User "jane" cannot get resource "widgets"') as refused:
            noxu.users["jane"].get("widgets", "a")
        assert refused.value.code == 403
        assert noxu.user("admin", groups=["system:masters"]).get("widgets", "a")["spec"] == {"size": 1}


def test_the_verbs_work_over_tls() -> None:
    with Noxu(tls=True, manifests=[DEFINITION], users={"jane": ["system:masters"]}) as noxu:
        assert noxu.create(widget("a")) == noxu.users["jane"].get("widgets", "a")


def test_results_are_those_of_the_api(noxu: Noxu) -> None:
    created = noxu.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "<é>"}})
    assert json.loads(json.dumps(created)) == created
    assert created["data"] == {"k": "<é>"}
    assert created["metadata"]["managedFields"][0]["manager"] == "noxu"
