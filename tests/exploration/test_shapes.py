"""Names that were made at random are the same in each run when they are masked."""

from __future__ import annotations

from noxu.exploration.recording import ObjectPlace
from noxu.exploration.shapes import MaskedNames, Shape
from tests.exploration.recordings import CONFIGS, WIDGETS, Script
from tests.rows import rows

UID, ANOTHER = "12345678-1234-4234-8234-123456789abc", "12345678-1234-4234-8234-123456789abd"


def names() -> MaskedNames:
    """A Widget with a uid has a ConfigMap with a generated name, and a volume with that uid in its name."""
    script = Script()
    script.write("workload", "create", WIDGETS, "a", uid=UID)
    script.write("controller", "create", CONFIGS, "a-x7k2p", metadata={"generateName": "a-"}, uid=ANOTHER)
    script.write("simulated-provisioner", "create", "persistentvolumes", f"pvc-{UID}")
    return MaskedNames(script.recording())


@rows(
    "resource, name, masked",
    [
        (WIDGETS, "a", "a"),
        (CONFIGS, "a-x7k2p", "a-*"),
        ("persistentvolumes", f"pvc-{UID}", "pvc-*"),
        (CONFIGS, "never-seen", "never-seen"),
    ],
    ids=["a name that was given", "one that was generated", "a uid in a name", "an object that was never there"],
)
def test_a_shape_is_the_same_in_each_run(resource: str, name: str, masked: str) -> None:
    assert names().shape(ObjectPlace(resource, "default", name)) == Shape(resource, "default", masked)


@rows(
    "text, masked",
    [
        ("a", "a"),
        (UID, f"<uid of {WIDGETS} a>"),
        (ANOTHER, f"<uid of {CONFIGS} a-*>"),
        (f"owned by {UID}, and by {ANOTHER}", f"owned by <uid of {WIDGETS} a>, and by <uid of {CONFIGS} a-*>"),
        (UID.replace("1", "f"), "<uid>"),
        ("2026-11-28T09:00:00Z", "<time>"),
        ("2026-11-28T09:00:00.123+01:00", "<time>"),
        ("since 2026-11-28T09:00:00Z", "since 2026-11-28T09:00:00Z"),
        ("2026-11-28T09:00:00", "2026-11-28T09:00:00"),
    ],
    ids=[
        "a word",
        "the uid of an owner",
        "the uid of an object with a generated name",
        "several uids",
        "the uid of nothing that was there",
        "a time",
        "a time with parts of a second and a zone",
        "a time in a text",
        "a time without a zone",
    ],
)
def test_uids_and_times_in_texts_are_masked(text: str, masked: str) -> None:
    assert names().text(text) == masked


@rows(
    "shape, text",
    [
        (Shape("nodes", "", "node-1"), "nodes node-1"),
        (Shape(WIDGETS, "default", "a"), f"{WIDGETS} default/a"),
    ],
    ids=["of the cluster", "in a namespace"],
)
def test_a_shape_is_written_as_a_person_names_it(shape: Shape, text: str) -> None:
    assert str(shape) == text
