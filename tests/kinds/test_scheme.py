"""Which struct a kind has in requests and responses: built-in kinds, their lists, and types that are not stored."""

from __future__ import annotations

import subprocess
import sys

import pytest

from noxu.go.structs import Struct, decode
from noxu.kinds.kind import Context, Kind, prepare
from noxu.kinds.meta import ALL
from noxu.kinds.scheme import by_group_kind, served, struct_of
from noxu.values import Object
from tests.rows import rows


def test_every_kind_is_found_by_its_name() -> None:
    for kind in served():
        assert by_group_kind()[kind.api_version, kind.kind] is kind
        assert struct_of(kind.api_version, kind.kind) is kind.struct
        assert (struct_of(kind.api_version, kind.list_kind) is not None) is kind.stored
    assert struct_of("v1", "Unknown") is None


@pytest.mark.parametrize("options", ALL, ids=[struct.name for struct in ALL])
def test_options_are_known_in_every_group(options: Struct) -> None:
    assert struct_of("v1", options.name) is options
    assert struct_of("example.com/v7", options.name) is options


OTHERS = [
    ("v1", "DeleteOptions"),
    ("meta.k8s.io/v1", "DeleteOptions"),
    ("example.com/v1", "DeleteOptions"),
    ("v1", "Status"),
    ("v1", "List"),
    ("v1", "NamespaceList"),
    ("v1", "APIResourceList"),
    ("coordination.k8s.io/v1", "LeaseList"),
    ("meta.k8s.io/v1", "PartialObjectMetadataList"),
    ("autoscaling/v1", "Scale"),
    ("authentication.k8s.io/v1", "TokenRequest"),
    ("apidiscovery.k8s.io/v2", "APIGroupDiscoveryList"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinitionList"),
]
UNKNOWN_KINDS = [
    ("v1", "Widget"),
    ("v2", "Namespace"),
    ("example.com/v1", "Namespace"),
    ("authentication.k8s.io/v1", "TokenReviewList"),
    ("", ""),
]


@rows(("api_version", "kind"), OTHERS)
def test_tables_of_types_that_are_not_kinds(api_version: str, kind: str) -> None:
    found = struct_of(api_version, kind)
    assert found is not None
    assert found.name == kind


@pytest.mark.parametrize(("api_version", "kind"), UNKNOWN_KINDS)
def test_unknown_kinds_have_no_table(api_version: str, kind: str) -> None:
    assert struct_of(api_version, kind) is None


def test_a_list_has_one_table() -> None:
    assert struct_of("v1", "SecretList") is struct_of("v1", "SecretList")


def test_some_kinds_have_a_propagation_policy_of_their_own() -> None:
    found = {(kind.api_version, kind.kind): kind.propagation for kind in served() if kind.propagation != "Background"}
    assert found == {
        ("v1", "ReplicationController"): "Orphan",
        ("batch/v1", "Job"): "Orphan",
        ("v1", "Event"): "Unsupported",
        ("events.k8s.io/v1", "Event"): "Unsupported",
    }


def test_the_rules_of_pods_are_imported_by_the_first_pod() -> None:
    code = (
        "import sys; from noxu.kinds.scheme import by_group_kind as kinds; module = 'noxu.kinds.pods';"
        "kinds()['v1', 'Namespace'].load_rules(); print(module in sys.modules);"
        "kinds()['v1', 'Pod'].load_rules(); print(module in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "True"]


@rows("kind", served(), ids=lambda kind: f"{kind.api_version} {kind.kind}")
def test_a_new_object_has_what_the_server_sets_in_the_types_of_its_struct(kind: Kind) -> None:
    sent = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {"name": "a"}}
    new: Object = decode(kind.struct, sent).value
    prepare(kind, new, None, Context(now="2026-01-01T00:00:00Z"))
    assert decode(kind.struct, new).error == ""
