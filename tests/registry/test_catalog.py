"""The served resources: which resources are served, and in which order discovery lists them."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.registry import custom
from noxu.registry.builtin import built_in_versions, definitions_resource
from noxu.registry.resource import Resource, Versions
from noxu.registry.served_resources import PRIORITIES, LiveResources, ServedResources
from tests.registry.world import version


def defined(plural: str, *names: str, group: str = "example.com", unserved: tuple[str, ...] = ()) -> Versions:
    """The resources of a definition; the first version is the storage version."""
    accepted = {"plural": plural, "kind": plural.capitalize()}
    versions = [version(name, storage=name == names[0], served=name not in unserved) for name in names]
    spec = {"group": group, "scope": "Namespaced", "names": accepted, "versions": versions}
    return custom.versions_of({"spec": spec, "status": {"acceptedNames": accepted}}, 1)


@pytest.fixture
def served_resources() -> ServedResources:
    return ServedResources(
        [definitions_resource(), *built_in_versions()],
        {
            "things": defined("things", "v1", "v1beta1", "v2", unserved=("v1beta1",)),
            "others": defined("others", "v2", "v10"),
            "mine": defined("mine", "v1alpha1", group="a.example.com"),
            "hidden": defined("hidden", "v1", group="hidden.example.com", unserved=("v1",)),
        },
    )


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (("", "v1", "configmaps"), "ConfigMap"),
        (("apiextensions.k8s.io", "v1", "customresourcedefinitions"), "CustomResourceDefinition"),
        (("example.com", "v2", "things"), "Things"),
        (("example.com", "v1beta1", "things"), None),
        (("example.com", "v3", "things"), None),
        (("example.com", "v1", "thing"), None),
        (("hidden.example.com", "v1", "hidden"), None),
        (("", "v1", "things"), None),
    ],
    ids=lambda given: "/".join(given) if isinstance(given, tuple) else "",
)
def test_only_served_versions_are_found(served_resources: ServedResources, path: Any, kind: str | None) -> None:
    found = served_resources.find(*path)
    assert (found.kind if found else None) == kind


def test_events_are_one_resource_in_two_groups(served_resources: ServedResources) -> None:
    core, other = served_resources.find("", "v1", "events"), served_resources.find("events.k8s.io", "v1", "events")
    assert core is not None
    assert other is not None
    assert core.versions is other.versions
    assert core.collection == other.collection


def test_groups_are_in_the_order_of_their_priorities_and_versions_best_first(served_resources: ServedResources) -> None:
    groups = list(served_resources.groups)
    assert groups[:5] == ["apiregistration.k8s.io", "", "apps", "events.k8s.io", "authentication.k8s.io"]
    assert groups[13:15] == ["admissionregistration.k8s.io", "apiextensions.k8s.io"]
    assert groups[-2:] == ["a.example.com", "example.com"]
    assert "hidden.example.com" not in groups
    assert served_resources.groups["example.com"] == ["v10", "v2", "v1"]


def test_every_built_in_group_version_has_a_priority(served_resources: ServedResources) -> None:
    built_in = {
        (group, version) for group in served_resources.built_in_groups for version in served_resources.groups[group]
    }
    assert built_in - {("apiregistration.k8s.io", "v1")} == PRIORITIES.keys()


def test_the_group_versions_of_other_servers_survive_a_change_of_a_definition(
    served_resources: ServedResources,
) -> None:
    elsewhere = frozenset({("metrics.k8s.io", "v1beta1")})
    assert served_resources.with_elsewhere(elsewhere).with_definition("none", None).elsewhere == elsewhere


def test_the_resources_of_a_version_are_in_the_order_in_which_they_were_defined(
    served_resources: ServedResources,
) -> None:
    assert [found.plural for found in served_resources.in_version("example.com", "v2")] == ["things", "others"]
    assert served_resources.in_version("example.com", "v1beta1") == []


@pytest.mark.parametrize(
    ("api_version", "kind", "plural"),
    [
        ("v1", "ConfigMap", "configmaps"),
        ("example.com/v2", "Things", "things"),
        ("example.com/v1beta1", "Things", None),
        ("example.com/v2", "things", None),
        ("hidden.example.com/v1", "Hidden", None),
        ("authentication.k8s.io/v1", "TokenReview", None),
    ],
)
def test_kinds_of_stored_objects_are_found(
    served_resources: ServedResources, api_version: str, kind: str, plural: str | None
) -> None:
    found = served_resources.kinds.get((api_version, kind))
    assert (found.plural if found else None) == plural


@pytest.mark.parametrize(
    ("collection", "version"),
    [
        ("/configmaps", "v1"),
        ("example.com/things", "v2"),
        ("example.com/others", "v10"),
        ("a.example.com/mine", "v1alpha1"),
        ("hidden.example.com/hidden", None),
        ("authentication.k8s.io/tokenreviews", None),
    ],
)
def test_the_best_served_version_of_a_collection_is_preferred(
    served_resources: ServedResources, collection: str, version: str | None
) -> None:
    found = served_resources.preferred.get(collection)
    assert (found.version if found else None) == version


def test_followers_are_called_after_the_catalog_was_replaced(served_resources: ServedResources) -> None:
    live, seen = LiveResources(served_resources), list[ServedResources]()
    live.followers.append(lambda: seen.append(live.current))
    live.replace(without := served_resources.with_definition("things", None))
    assert seen == [without]


def test_a_change_of_a_definition_makes_another_catalog(served_resources: ServedResources) -> None:
    live = LiveResources(served_resources)
    live.current = served_resources.with_definition("things", defined("things", "v3"))
    assert live.current.find("example.com", "v3", "things") is not None
    assert live.current.find("example.com", "v2", "things") is None
    assert served_resources.find("example.com", "v2", "things") is not None  # requests that have begun see this
    removed = live.current.with_definition("things", None)
    assert "things" not in removed.defined
    assert removed.find("", "v1", "configmaps") is served_resources.find("", "v1", "configmaps")
    assert removed.built_in_groups == served_resources.built_in_groups


def test_a_built_in_resource_is_not_replaced_by_a_definition() -> None:
    built_in = defined("things", "v1")
    served_resources = ServedResources([built_in], {"things": defined("things", "v1")})
    assert served_resources.find("example.com", "v1", "things") is built_in.storage


CHANGES: dict[str, tuple[str, Versions | None]] = {
    "a new one": ("new", defined("new", "v1")),
    "one is withdrawn": ("things", None),
    "one is replaced": ("things", defined("things", "v2", "v3")),
    "the last one is replaced": ("hidden", defined("hidden", "v1")),
    "one that is not there is withdrawn": ("none", None),
    "one with the path of a built-in resource": ("roles", defined("roles", "v1", group="rbac.authorization.k8s.io")),
}


@pytest.mark.parametrize(("name", "versions"), CHANGES.values(), ids=CHANGES)
def test_a_catalog_that_was_changed_is_equal_to_a_new_one(
    served_resources: ServedResources, name: str, versions: Versions | None
) -> None:
    changed = served_resources.with_definition(name, versions)
    definitions = {other: kept for other, kept in served_resources.defined.items() if other != name}
    new = ServedResources(
        served_resources._builtins, definitions if versions is None else {**definitions, name: versions}
    )
    assert list(changed.defined) == list(new.defined)
    assert list(changed.by_path.items()) == list(new.by_path.items())


@pytest.mark.parametrize("disabled", [frozenset(), frozenset({("apps", "v1"), ("", "v1")})], ids=["all", "some"])
def test_resources_are_found_by_the_kinds_that_clients_can_use(
    served_resources: ServedResources, disabled: frozenset[tuple[str, str]]
) -> None:
    """If several have the same kind, the first one."""
    roles = defined("roles", "v1", group="rbac.authorization.k8s.io")
    found = ServedResources(served_resources._builtins, {**served_resources.defined, "roles": roles}, disabled=disabled)
    expected: dict[tuple[str, str], Resource] = {}
    for resource in found.resources:
        expected.setdefault((resource.api_version, resource.kind), resource)
    everything = [*found.by_path.values(), *found._own.values(), *roles.all]
    for key in {(resource.api_version, resource.kind) for resource in everything} | {("v1", "None")}:
        assert found.find_kind(*key) is expected.get(key), key


def test_the_names_of_attributes_are_in_memory_once_for_all_resources() -> None:
    """CPython's dictionary of an instance has no keys of its own as long as the class has less than 30 names."""
    resources = [resource for versions in built_in_versions() for resource in versions.all]
    assert {len(vars(resource)) < 30 for resource in resources} == {True}
