"""What differs from run to run by itself is masked, and nothing else."""

from __future__ import annotations

from noxu.exploration.masks import Mask, States, learn, masked
from noxu.exploration.shapes import Shape
from tests.exploration.recordings import CONFIGS, SECRETS, WIDGETS, clean
from tests.rows import rows

A = Shape(SECRETS, "default", "a")


def test_a_field_that_differs_among_clean_runs_is_masked() -> None:
    mask = learn([clean("one").recording(), clean("two").recording()])
    assert mask.fields == {A: frozenset({("data", "token")})}
    one, three = (masked(clean(token).recording(), mask) for token in ("one", "three"))
    assert one.end() == three.end()


def test_an_object_that_is_not_in_every_clean_run_is_masked() -> None:
    more = clean()
    more.write("controller", "create", CONFIGS, "sometimes")
    mask = learn([clean().recording(), more.recording()])
    assert mask.shapes == {Shape(CONFIGS, "default", "sometimes")}


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
    assert (mask.of(shape).covers(path) if path else mask.hides(shape)) is is_ignored


def test_the_places_of_the_server_itself_are_not_compared() -> None:
    assert Mask().hides(Shape("services", "default", "kubernetes"))
    assert Mask().hides(Shape("configmaps", "default", "kube-root-ca.crt"))


@rows(
    "resource, path, is_chosen",
    [
        ("pods", ("status", "podIP"), True),
        ("pods", ("status", "containerStatuses", "*", "image"), True),
        ("pods", ("status", "phase"), False),
        ("pods", ("metadata", "labels", "controller-revision-hash"), True),
        ("pods", ("metadata", "labels", "app"), False),
        ("services", ("status", "podIP"), False),
        ("deployments.apps", ("status", "collisionCount"), True),
        ("persistentvolumeclaims", ("metadata", "annotations", "volume.kubernetes.io/selected-node"), True),
        ("persistentvolumeclaims", ("metadata", "annotations"), False),
    ],
    ids=[
        "the address of a pod",
        "what is below a field",
        "how a pod is",
        "the hash of its template",
        "another label",
        "of another resource",
        "how often the name of a ReplicaSet was taken",
        "an annotation",
        "not all annotations",
    ],
)
def test_what_a_cluster_chooses_is_masked(resource: str, path: tuple[str, ...], is_chosen: bool) -> None:
    assert Mask().of(Shape(resource, "default", "a")).covers(path) is is_chosen


# -- the objects of a run ---------------------------------------------------------------------------------------------


@rows(
    "step, shapes",
    [(0, []), (1, [CONFIGS, SECRETS, WIDGETS]), (2, [CONFIGS, SECRETS, WIDGETS])],
    ids=["before the first step", "after it", "at the end"],
)
def test_a_run_is_seen_at_the_end_of_each_step(step: int, shapes: list[str]) -> None:
    run = masked(clean().recording(), Mask())
    assert sorted(shape.resource for shape in run.until(step).end()) == shapes
    assert (run.until(step).end() == run.end()) is (step == 2)


def test_an_object_is_masked_once_in_each_of_its_states() -> None:
    run = masked(clean().recording(), Mask())
    [config], [widget] = (
        [shape for shape in run.end() if shape.resource == resource] for resource in (CONFIGS, WIDGETS)
    )
    before, after = run.until(1).end(), run.until(2).end()
    assert before[config][0] is after[config][0]
    assert before[widget][0] is not after[widget][0]
    assert before[widget] != after[widget]


def test_objects_with_one_shape_are_compared_in_any_order() -> None:
    def two(*sizes: str) -> States:
        script = clean()
        for n, size in enumerate(sizes):
            script.write(
                "controller", "create", SECRETS, f"a-{n}", data={"size": size}, metadata={"generateName": "a-"}
            )
        return masked(script.recording(), Mask(ignored=("*.metadata.name",))).end()

    assert two("1", "2") == two("2", "1") != two("2", "2")
