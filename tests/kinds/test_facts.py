"""The data of the built-in kinds: it is what was published, and reads and writes published objects byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance import kinds
from noxu.api import protobuf
from noxu.go.structs import Presence, decode
from noxu.kinds import facts, scheme
from tests.optional import SHARED, needs_data

FACTS = SHARED / "kinds"
GOLDEN = sorted((FACTS / "roundtrip").glob("*.json")) if FACTS.exists() else []
WITHOUT_ENVELOPE = "core.v1.WatchEvent.json"

needs_facts = needs_data("kinds")


@needs_facts
def test_the_data_is_what_was_published(capsys: pytest.CaptureFixture[str]) -> None:
    assert kinds.main(["--facts", str(FACTS)]) == 0, capsys.readouterr().out


@needs_facts
def test_published_objects_survive_json_and_protobuf() -> None:
    groups = json.loads((FACTS / "types.json").read_text())["groups"]
    for path in GOLDEN:
        written = json.loads(path.read_text())
        group, _, version = written.get("apiVersion", "v1").rpartition("/")
        name = written.get("kind") or path.stem.rpartition(".")[2]
        part = f"{groups[group]}/{version}"
        table = facts.struct(f"{part}.{name}" if name in facts.types(part) else f"meta/v1.{name}")
        decoded = decode(table, written)
        assert (decoded.error, decoded.unknown) == ("", []), path.name
        assert json.dumps(decoded.value) == json.dumps(written), path.name
        message = path.with_suffix(".pb").read_bytes()
        assert protobuf.encode(table, decoded.value) == message, path.name
        if path.name != WITHOUT_ENVELOPE:
            assert json.dumps(protobuf.decode(message, lambda *_, found=table: found)[1]) == json.dumps(written), (
                path.name
            )


def test_every_struct_can_be_read() -> None:
    names = 0
    for path in (Path(facts.__file__).with_name("data") / "types").glob("*.json"):
        part = path.stem.replace(".", "/", 1)
        for name, given in facts.types(part).items():
            if "fields" in given:
                assert facts.struct(f"{part}.{name}").fields is not None
                names += 1
    assert names > 600


def test_embedded_structs_are_inlined() -> None:
    volume = facts.struct("core/v1.Volume").fields["emptyDir"]
    assert (volume.inline, volume.within, volume.write) == ("VolumeSource", (2,), Presence.POINTER)
    assert list(facts.struct("core/v1.Pod").fields) == ["kind", "apiVersion", "metadata", "spec", "status"]


def test_nothing_but_the_kinds_is_read_until_an_object_arrives() -> None:
    facts.types.cache_clear()
    assert len(scheme.kinds_of(facts.read("kinds.json"))) > 60
    assert facts.types.cache_info().currsize == 0


QUANTITIES = [("1000m", "1"), ("0.5", "500m"), (1.5, "1500m"), (2, "2"), ("1024Mi", "1Gi"), (" 1 ", "1")]


@pytest.mark.parametrize(("given", "expected"), QUANTITIES)
def test_quantities_are_canonical(given: object, expected: str) -> None:
    found = decode(facts.struct("core/v1.ResourceRequirements"), {"limits": {"cpu": given}})
    assert (found.value, found.error) == ({"limits": {"cpu": expected}}, "")


REFUSED = [
    ("1x", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
    ("1kk", "unable to parse quantity's suffix"),
    (True, "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_what_is_no_quantity_is_an_error(given: object, message: str) -> None:
    assert decode(facts.struct("core/v1.ResourceRequirements"), {"limits": {"cpu": given}}).error == message
