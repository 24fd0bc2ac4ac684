"""Names that were made at random are the same in each run when they are masked."""

from __future__ import annotations

from noxu.exploration.recording import ObjectPlace
from noxu.exploration.shapes import MaskedNames, Shape, generated
from tests.exploration.recordings import CONFIGS, WIDGETS, Script
from tests.rows import rows

UID, ANOTHER = "12345678-1234-4234-8234-123456789abc", "12345678-1234-4234-8234-123456789abd"


def names() -> MaskedNames:
    """A Widget with a uid has a ConfigMap with a generated name, and a volume with that uid in its name; a Deployment has a pod."""
    script = Script()
    script.write("workload", "create", WIDGETS, "a", uid=UID)
    script.write("controller", "create", CONFIGS, "a-x7k2p", metadata={"generateName": "a-"}, uid=ANOTHER)
    script.write("simulated-provisioner", "create", "persistentvolumes", f"pvc-{UID}")
    of_template = {"labels": {"pod-template-hash": "5f7b"}}
    script.write("deployment-controller", "create", "replicasets.apps", "b-5f7b", metadata=of_template)
    of_template |= {"generateName": "b-5f7b-"}
    script.write("replicaset-controller", "create", "pods", "b-5f7b-x7k2p", metadata=of_template)
    return MaskedNames(script.recording())


@rows(
    "resource, name, masked",
    [
        (WIDGETS, "a", "a"),
        (CONFIGS, "a-x7k2p", "a-*"),
        ("persistentvolumes", f"pvc-{UID}", "pvc-*"),
        ("replicasets.apps", "b-5f7b", "b-*"),
        ("pods", "b-5f7b-x7k2p", "b-*-*"),
        (CONFIGS, "never-seen", "never-seen"),
    ],
    ids=[
        "a name that was given",
        "one that was generated",
        "a uid in a name",
        "the hash of a template, which is another one where the first is still taken",
        "one that was generated from that",
        "an object that was never there",
    ],
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
        ("b-5f7b", "b-*"),
        ("b-5f7b-", "b-*-"),
        ('ReplicaSet "b-5f7b" has timed out progressing.', 'ReplicaSet "b-*" has timed out progressing.'),
        ("b-5f7b2, and a-b-5f7b", "b-5f7b2, and a-b-5f7b"),
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
        "a name with the hash of a template",
        "what names are generated from that",
        "such a name in a text",
        "other names",
        "a time",
        "a time with parts of a second and a zone",
        "a time in a text",
        "a time without a zone",
    ],
)
def test_uids_times_and_hashes_in_texts_are_masked(text: str, masked: str) -> None:
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


@rows(
    "name, metadata, masked",
    [
        ("a", {}, ""),
        ("a-x7k2p", {"generateName": "a-"}, "a-*"),
        (f"pvc-{UID}", {}, "pvc-*"),
        ("a-1795904226", {}, "a-*"),
        ("a-29931737-b", {}, "a-*-b"),
        ("a-1795904226-x7k2p", {"generateName": "a-1795904226-"}, "a-*-*"),
        ("a-1795904226000", {}, "a-*"),
        ("a-20261128", {}, "a-*"),
        ("a-20261128221707", {}, "a-*"),
        ("a-1234567890", {}, ""),
        ("a-20200101", {}, ""),
        ("a-99999999", {}, ""),
        ("a1795904226f", {}, ""),
    ],
    ids=[
        "a name that was given",
        "one that a server generates",
        "one with a uid",
        "one with the seconds of its creation",
        "with the minutes",
        "one that a server generates from such a name",
        "with thousandths of seconds",
        "with the date",
        "with date and time",
        "a number that is another time",
        "another date",
        "a number that is no date",
        "a number in a word",
    ],
)
def test_a_name_that_is_another_one_in_each_run_is_known(name: str, metadata: dict[str, str], masked: str) -> None:
    made = {"creationTimestamp": "2026-11-28T22:17:07Z", "name": name, **metadata}
    assert generated({"metadata": made}) == masked
