"""The names of collections: those of custom and built-in kinds are never the same."""

from __future__ import annotations

from noxu.registry import storage_form
from noxu.registry.builtin import built_in_versions, definitions_resource
from noxu.registry.custom import versions_of
from tests.definitions import version, widgets
from tests.rows import rows

BUILT_IN = [versions.storage for versions in (definitions_resource(), *built_in_versions())]


def test_a_collection_has_the_name_of_its_group_and_plural() -> None:
    assert storage_form.custom_collection("example.com", "widgets") == "example.com/widgets"
    assert storage_form.custom_collection("snapshot.storage.k8s.io", "volumesnapshots") == (
        "snapshot.storage.k8s.io/volumesnapshots"
    )


def test_every_collection_of_a_built_in_kind_whose_names_a_definition_may_have_is_known() -> None:
    expected = {resource.collection for resource in BUILT_IN if resource.is_stored and "." in resource.group}
    assert storage_form.beside_custom() == expected


@rows("resource", BUILT_IN, ids=lambda resource: str(resource.group_resource))
def test_custom_resources_with_the_names_of_a_built_in_kind_have_a_collection_of_their_own(resource) -> None:  # type: ignore[no-untyped-def]
    collections = {each.collection for each in BUILT_IN if each.is_stored}
    crd = widgets(version(), group=resource.group)
    crd["spec"]["names"]["plural"] = resource.plural
    crd["status"] = {"acceptedNames": crd["spec"]["names"]}
    found = versions_of(crd, since=0).collection
    if "." in resource.group:  # no definition has another group
        assert found not in collections
        assert storage_form.group_and_plural(found) == f"{resource.group}/{resource.plural}"
