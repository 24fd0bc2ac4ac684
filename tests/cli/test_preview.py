"""`noxu preview`: where the objects are, what is printed, and the exit status."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from noxu.testing.handle import Noxu
from tests.cli.test_stored import store
from tests.rows import rows

Make = Callable[..., Any]
INTEGER, STRING = {"type": "integer"}, {"type": "string"}
LIMITED = {**INTEGER, "maximum": 5}
PRINTED = [
    "CRD                   OBJECTS   REFUSED   FORGIVEN   PRUNED   DEFAULTED   UNREADABLE",
    "widgets.example.com   3         0         2          1        0           0",
    "widgets.example.com: warning: Widget default/b would be refused if it were created anew: spec.size: Invalid value: 7: "
    "spec.size in body should be less than or equal to 5",
    "widgets.example.com: warning: Widget default/c would be refused if it were created anew: spec.size: Invalid value: 8: "
    "spec.size in body should be less than or equal to 5",
    "widgets.example.com: spec.colour is pruned in 1 object",
]


@pytest.fixture
def objects(crd: Make, widget: Make) -> list[Any]:
    """A CRD, and the Widgets a, b and c; b and c are larger than LIMITED, c has a colour."""
    former = crd(size=INTEGER, colour=STRING)
    return [former, widget("a", size=1), widget("b", size=7), widget("c", size=8, colour="red")]


def test_objects_in_a_data_directory(run: Make, write: Make, here: Path, objects: list[Any], crd: Make) -> None:
    store(here / ".noxu", *objects)
    write("new.json", crd(size=LIMITED))
    ran = run("preview -f new.json")
    assert (ran.status, ran.err, ran.out.splitlines()) == (1, "", PRINTED)


def test_objects_of_a_server(run: Make, write: Make, objects: list[Any], crd: Make) -> None:
    write("new.json", crd(size=LIMITED))
    with Noxu() as noxu:
        noxu.apply(*objects)
        ran = run(f"preview -f new.json --server {noxu.url}")
    assert (ran.status, ran.err, ran.out.splitlines()) == (1, "", PRINTED)


def test_clients_of_a_recording(run: Make, write: Make, here: Path, objects: list[Any], crd: Make) -> None:
    """What a client writes and reads is judged by both CRDs, with the objects that were there."""
    with Noxu(record="requests.noxu") as noxu:
        noxu.apply(*objects)
        noxu.patch("widgets.example.com", "a", {"spec": {"size": 6}})
        noxu.get("widgets.example.com", "c")
    write("new.json", crd(size=LIMITED))
    write("objects.json", {"apiVersion": "v1", "kind": "List", "items": objects})
    words = "preview -f new.json --old objects.json --requests requests.noxu"
    ran = run(words)
    table = [line.split() for line in ran.out.split("\n\n")[1].splitlines()[:2]]
    assert (ran.status, table[0]) == (
        1,
        ["CRD", "CLIENT", "REQUESTS", "REFUSED", "PRUNED", "DEFAULTED", "NOT", "SERVED"],
    )
    assert "spec.colour is lost in what it writes, in 1 request" in ran.out
    assert ": PATCH /apis/example.com/v1/namespaces/default/widgets/a" in ran.out
    [client] = run(f"{words} --output json").json["definitions"][0]["clients"]
    assert (client["refused"], client["pruned"], client["notServed"]) == (3, 2, 0)
    assert "| widgets.example.com |" in run(f"{words} --output markdown").out.split("\n\n")[1]
    assert 'failures="1"' in run(f"{words} --output junit").out
    assert run(words.replace("requests.noxu", "new.json")).status == 2


@rows(
    "words, status, text",
    [
        ("-f new.json", 1, PRINTED[-1]),
        ("-f new.json --limit 1", 1, "warning: 1 more objects are refused, or would be; --limit lists more"),
        ("-f new.json --output json", 1, '"prunedFields": {\n        "spec.colour": 1'),
        ("-f new.json --output junit", 1, 'failures="1"'),
        ("-f new.json --output markdown", 1, "| widgets.example.com | 3 | 0 | 2 | 1 | 0 | 0 |"),
        ("-f old.json", 0, "widgets.example.com   3         0         0          0        0           0"),
        ("-f default.json", 0, "warning: spec.shape gets a default in 3 objects"),
        ("-f default.json --strict", 1, "spec.shape"),
    ],
)
def test_objects_in_files(
    run: Make, write: Make, objects: list[Any], crd: Make, words: str, status: int, text: str
) -> None:
    write("new.json", crd(size=LIMITED))
    write("old.json", objects[0])
    write("default.json", crd(size=INTEGER, colour=STRING, shape={**STRING, "default": "round"}))
    write("objects.json", {"apiVersion": "v1", "kind": "List", "items": objects[1:]})
    ran = run(f"preview {words} --old old.json --old objects.json")
    assert (ran.status, ran.err) == (status, "")
    assert text in ran.out


@rows(
    "words, status, message",
    [
        ("", 2, "give the new CRDs with -f PATH"),
        ("-f new.json --old old.json --server http://127.0.0.1:1", 2, "--old has the objects in files"),
        ("-f new.json", 2, "name a data directory with --data"),
        ("-f absent.json --old old.json", 2, "absent.json"),
        ("-f https://example.com/a.yaml", 2, "curl -fsSL https://example.com/a.yaml | noxu preview -f -"),
        ("-f refused.json --old old.json", 1, "servers would refuse widgets.example.com"),
        ("-f new.json --old broken.json", 2, "the former CRD widgets.example.com is invalid; `noxu lint` says more"),
        ("-f gears.json --old old.json", 0, "gears.example.com: there is no former CRD, so it has no objects"),
    ],
)
def test_what_cannot_be_previewed_is_a_sentence(
    run: Make, write: Make, crd: Make, words: str, status: int, message: str
) -> None:
    write("new.json", crd(size=LIMITED))
    write("old.json", crd(size=INTEGER))
    write("refused.json", crd(size={"type": "none"}))
    write("broken.json", {**crd(), "spec": {}})
    write("gears.json", {**crd(), "metadata": {"name": "gears.example.com"}, "spec": {**crd()["spec"], "names": {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"}}})  # fmt: skip
    ran = run(f"preview {words}")
    assert ran.status == status
    assert message in ran.err
