"""The names of releases, and the tables beside upstream's.

`data/gates.json`, `data/functions.json` and `data/kinds.json` were extracted from upstream's files at the tags of the releases; each entry
names its files and their commit. They are not written from the tables that they judge.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from noxu import releases
from noxu.cel.checking.environment import of_release
from noxu.control_plane import WITHOUT_CONTROLLERS, assemble
from noxu.features import Features, parse_gates
from noxu.features import of_release as features_of
from noxu.releases import gates, libraries
from noxu.releases.kinds import later, since
from noxu_storage.memory import MemoryStore
from tests.rows import rows

_DATA: Final = Path(__file__).parent / "data"
GATES: Final[dict[str, Any]] = json.loads((_DATA / "gates.json").read_text())
FUNCTIONS: Final[dict[str, Any]] = json.loads((_DATA / "functions.json").read_text())
KINDS: Final[dict[str, Any]] = json.loads((_DATA / "kinds.json").read_text())
_OF_UPSTREAM: Final = {
    (group_version, kind)
    for entry in KINDS.values()
    for group_version, listed in entry["kinds"].items()
    for kind in listed
}


@rows(
    ("text", "release"),
    [("1.29", 29), ("v1.31", 31), ("1.31.4", 31), ("1.37", 37), (" 1.30", 30)],
)
def test_a_release_is_written_as_versions_of_kubernetes_are(text: str, release: int) -> None:
    assert releases.parse(text) == release


@pytest.mark.parametrize("text", ["", "1.28", "1.38", "2.31", "31", "latest", "1.3", "1.31-rc.1"])
def test_an_unknown_version_is_answered_with_the_known_ones(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a known version of Kubernetes: give one of 1\.29, 1\.30, .*1\.37$"):
        releases.parse(text)


def test_a_list_has_each_release_once_the_oldest_first() -> None:
    assert releases.parse_list(["1.37,1.29", "1.31.2,1.31"]) == (29, 31, 37)


@pytest.mark.parametrize("version", GATES)
def test_gates_are_those_of_upstream(version: str) -> None:
    release, upstream = releases.parse(version), GATES[version]["gates"]
    for name in gates.GATES:
        here = gates.gate(name, release)
        if name in upstream:
            assert here is not None, name
            assert [here.default, here.stage, here.locked] == upstream[name], name
        else:  # not there yet, or upstream has removed it because it is always enabled
            assert here is None or (here.locked and here.default), name


def test_the_newest_release_enables_what_is_enabled_without_a_release() -> None:
    assert features_of(releases.NEWEST) == Features() == parse_gates([])
    of_gates = {name: gates.is_default(gate, releases.NEWEST) for gate, name in _FIELDS.items()}
    assert of_gates == {name: getattr(Features(), name) for name in of_gates}


_FIELDS: Final = {
    "CRDValidationRatcheting": "ratcheting",
    "CBORServingAndStorage": "cbor",
    "CustomResourceFieldSelectors": "field_selectors",
    "WatchListCompression": "watch_list_compression",
}


@rows(
    ("release", "flags", "expected"),
    [
        (29, [], Features(ratcheting=False, field_selectors=False, watch_list_compression=False, release=29)),
        (30, [], Features(field_selectors=False, watch_list_compression=False, release=30)),
        (31, [], Features(watch_list_compression=False, release=31)),
        (37, [], Features()),
        (
            29,
            ["CRDValidationRatcheting=true"],
            Features(field_selectors=False, watch_list_compression=False, release=29),
        ),
        (32, ["CBORServingAndStorage=true"], Features(cbor=True, watch_list_compression=False, release=32)),
    ],
)
def test_features_are_those_of_a_release(release: int, flags: list[str], expected: Features) -> None:
    assert parse_gates(flags, release) == expected


@rows(
    ("release", "flag", "message"),
    [
        (29, "CustomResourceFieldSelectors=true", "it came with Kubernetes 1.30"),
        (31, "CBORServingAndStorage=true", "it came with Kubernetes 1.32"),
        (36, "WatchListCompression=false", "it came with Kubernetes 1.37"),
    ],
)
def test_a_gate_that_came_later_is_unknown(release: int, flag: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"unrecognized feature gate: .*{message}"):
        parse_gates([flag], release)


@pytest.mark.parametrize("version", FUNCTIONS)
def test_functions_are_those_of_upstream(version: str) -> None:
    """Those of libraries: the functions of CEL itself are not in these files."""
    upstream, environments = FUNCTIONS[version], of_release(releases.parse(version))
    new, stored = set(environments.new.functions), set(environments.stored.functions)
    known = {name for entry in FUNCTIONS.values() for name in (*entry["new"], *entry["only_stored"])}
    assert new & known == set(upstream["new"]) | (new & {"string"})
    assert (stored - new) & known == set(upstream["only_stored"])


def test_libraries_name_functions_overloads_and_macros_that_exist() -> None:
    newest = of_release(releases.NEWEST).stored
    overloads = {overload.id for function in newest.functions.values() for overload in function.overloads}
    macros = {(name, number) for name, number, _ in newest.macros}
    for library in libraries.LIBRARIES:
        assert set(library.functions) <= set(newest.functions), library.name
        assert set(library.overloads) <= overloads, library.name
        assert {(name, number) for name, numbers in library.macros for number in numbers} <= macros, library.name
        assert library.stored <= library.new <= library.stored + 1, library.name


@rows(
    ("name", "release"),
    [
        ("cidr", 31),
        ("sets.contains", 30),
        ("transformMap", 33),
        ("sortBy", 35),
        ("includes", 38),
        ("matches", None),
        ("no", None),
    ],
)
def test_a_function_has_a_release_from_which_rules_may_use_it(name: str, release: int | None) -> None:
    assert libraries.since(name) == release


def served(release: int) -> set[tuple[str, str]]:
    """The built-in kinds of a release, with their group versions."""
    plane = assemble(replace(WITHOUT_CONTROLLERS, features=features_of(release)), MemoryStore())
    return {(resource.api_version, resource.kind) for resource in plane.served_resources.current.resources}


@pytest.mark.parametrize("version", KINDS)
def test_built_in_kinds_are_those_of_upstream(version: str) -> None:
    upstream = {(group_version, kind) for group_version, listed in KINDS[version]["kinds"].items() for kind in listed}
    assert served(releases.parse(version)) & _OF_UPSTREAM == upstream & served(releases.NEWEST)


def test_kinds_that_came_later_exist() -> None:
    resources = assemble(WITHOUT_CONTROLLERS, MemoryStore()).served_resources.current.by_path
    assert later(releases.OLDEST) <= set(resources)
    assert later(releases.NEWEST) == frozenset()


@rows(
    ("api_version", "kind", "release"),
    [
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", 30),
        ("networking.k8s.io/v1", "IPAddress", 33),
        ("resource.k8s.io/v1", "DeviceClass", 34),
        ("storagemigration.k8s.io/v1", "StorageVersionMigration", 37),
        ("networking.k8s.io/v1", "Ingress", None),
        ("v1", "Pod", None),
        ("example.com/v1", "DeviceClass", None),
    ],
)
def test_a_kind_came_with_a_release(api_version: str, kind: str, release: int | None) -> None:
    assert since(api_version, kind) == release
