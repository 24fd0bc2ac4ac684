"""What differs from run to run by itself is masked, and nothing else."""

from __future__ import annotations

from noxu.exploration.masks import Mask, MaskedNames, Shape, end_state, learn, leaves, state
from noxu.exploration.recording import ObjectPlace
from noxu.values import Object
from tests.exploration.recordings import CONFIGS, SECRETS, WIDGETS, Script, clean
from tests.rows import rows

A = Shape(SECRETS, "default", "a")


def test_a_field_that_differs_among_clean_runs_is_masked() -> None:
    mask = learn([clean("one").recording(), clean("two").recording()])
    assert mask.fields == {A: frozenset({("data", "token")})}
    assert end_state(clean("three").recording(), mask) == end_state(clean("one").recording(), mask)


def test_an_object_that_is_not_in_every_clean_run_is_masked() -> None:
    more = clean()
    more.write("controller", "create", CONFIGS, "sometimes")
    mask = learn([clean().recording(), more.recording()])
    assert mask.shapes == {Shape(CONFIGS, "default", "sometimes")}


@rows(
    "path",
    [
        ("metadata", "uid"),
        ("metadata", "resourceVersion"),
        ("metadata", "creationTimestamp"),
        ("metadata", "managedFields"),
    ],
    ids=["the uid", "the resourceVersion", "the creation", "the owners of fields"],
)
def test_what_a_server_sets_anew_is_always_masked(path: tuple[str, ...]) -> None:
    value: Object = {"metadata": {"name": "a", path[-1]: "something"}}
    assert [found for found, _ in leaves(value, MaskedNames(Script().recording()))] == [("metadata", "name")]


def test_the_uid_of_an_owner_becomes_its_shape() -> None:
    script = Script()
    script.write("workload", "create", WIDGETS, "a", uid="12345678-1234-4234-8234-123456789abc")
    names = MaskedNames(script.recording())
    assert names.text("12345678-1234-4234-8234-123456789abc") == f"<uid of {WIDGETS} a>"


def test_generated_names_are_masked() -> None:
    script = Script()
    script.write("controller", "create", CONFIGS, "a-x7k2p", metadata={"generateName": "a-"})
    [shape] = end_state(script.recording(), Mask())
    assert shape == Shape(CONFIGS, "default", "a-*")


def test_a_uid_in_a_name_is_masked() -> None:
    script = Script()
    script.write("simulated-provisioner", "create", "persistentvolumes", "pvc-12345678-1234-4234-8234-123456789abc")
    [shape] = end_state(script.recording(), Mask())
    assert shape == Shape("persistentvolumes", "default", "pvc-*")


@rows(
    "observed, is_usual",
    [(7, True), (6, False)],
    ids=["the newest generation", "an older one"],
)
def test_generations_count_what_has_happened(observed: int, is_usual: bool) -> None:
    names = MaskedNames(Script().recording())
    usual = state({"metadata": {"generation": 2}, "status": {"observedGeneration": 2}}, A, Mask(), names)
    found = state({"metadata": {"generation": 7}, "status": {"observedGeneration": observed}}, A, Mask(), names)
    assert (found == usual) is is_usual


def test_the_order_of_a_list_does_not_count() -> None:
    names = MaskedNames(Script().recording())
    one, two = ({"spec": {"items": items}} for items in ([{"a": 1}, {"a": 2}], [{"a": 2}, {"a": 1}]))
    assert list(leaves(one, names)) == list(leaves(two, names))


@rows(
    "pattern, path, is_ignored",
    [
        ("*.metadata.annotations.example.com/*", ("metadata", "annotations", "example.com/progress"), True),
        ("*.metadata.annotations.example.com/*", (), False),
        ("*.status.size", ("status", "size"), True),
        ("*.status", ("status", "size"), True),
        ("secrets.status.size", ("status", "size"), False),
        ("widgets.status.ready", ("status", "size"), False),
        ("widgets/a*", (), True),
        ("widgets/b*", (), False),
    ],
    ids=[
        "an annotation, whose name has a slash",
        "which is no object",
        "a field of any kind",
        "what is below it",
        "a field of another kind",
        "another field",
        "objects by their names",
        "objects of another name",
    ],
)
def test_a_person_says_what_to_ignore(pattern: str, path: tuple[str, ...], is_ignored: bool) -> None:
    mask, shape = Mask(ignored=(pattern,)), Shape(WIDGETS, "default", "a")
    assert (mask.covers(shape, path) if path else mask.hides(shape)) is is_ignored


def test_the_places_of_the_server_itself_are_not_compared() -> None:
    assert Mask().hides(Shape("services", "default", "kubernetes"))
    assert Mask().hides(Shape("configmaps", "default", "kube-root-ca.crt"))
    assert str(Shape(*ObjectPlace("nodes", "", "node-1"))) == "nodes node-1"
