"""Further versions of built-in kinds: one collection, the same fields, another apiVersion."""

from __future__ import annotations

import pytest

from noxu.registry.builtin import built_in_versions
from noxu.registry.further_versions import with_further
from noxu.registry.resource import Versions
from noxu.values import Object


def definition(name: str, *versions: str) -> Object:
    return {"metadata": {"name": name}, "spec": {"versions": [{"name": version} for version in versions]}}


def budgets(*definitions: Object) -> Versions:
    built_in, _ = with_further(built_in_versions(), definitions, has_foreign=False)
    [found] = [versions for versions in built_in if versions.collection == "policy/poddisruptionbudgets"]
    return found


OLD = definition("poddisruptionbudgets.policy", "v1beta1")


def test_both_versions_have_one_collection() -> None:
    versions = budgets(OLD)
    assert [resource.api_version for resource in versions.all] == ["policy/v1", "policy/v1beta1"]
    assert versions.storage.api_version == "policy/v1"
    assert {resource.collection for resource in versions.all} == {versions.collection}


@pytest.mark.parametrize(("stored", "shown"), [("policy/v1", "policy/v1beta1"), ("policy/v1beta1", "policy/v1")])
def test_only_the_api_version_differs(stored: str, shown: str) -> None:
    value: Object = {"apiVersion": stored, "kind": "PodDisruptionBudget", "metadata": {}, "spec": {"minAvailable": 1}}
    resource = budgets(OLD).find(shown)
    assert resource is not None
    decoded, unknown = resource.codec.decode(resource, value)
    converted = resource.codec.convert(resource, decoded)
    assert ({name: converted[name] for name in value}, unknown) == ({**value, "apiVersion": shown}, [])


def test_a_version_that_is_there_changes_nothing() -> None:
    assert [resource.version for resource in budgets(definition("poddisruptionbudgets.policy", "v1")).all] == ["v1"]


def test_kinds_that_are_not_built_in_are_left() -> None:
    metrics = definition("pods.metrics.k8s.io", "v1beta1")
    assert with_further(built_in_versions(), [OLD, metrics], has_foreign=False).others == [metrics]


@pytest.mark.parametrize(
    "given",
    [definition("poddisruptionbudgets.policy", "v1beta1", "v1beta2"),
     definition("horizontalpodautoscalers.autoscaling", "v2beta2")],
)  # fmt: skip
def test_a_third_version_is_refused(given: Object) -> None:
    with pytest.raises(ValueError, match=r"is built in as .*: it can have one further version"):
        with_further(built_in_versions(), [given], has_foreign=False)
