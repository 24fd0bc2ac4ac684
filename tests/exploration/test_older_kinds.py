"""Older versions of built-in kinds are named, and what a program has looked for in vain is found in what it says."""

from __future__ import annotations

import pytest

from noxu.exploration import older_kinds
from noxu.exploration.server import ExploredServer
from tests.rows import rows


def test_an_older_version_of_a_built_in_kind_is_served(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("kinds")
    names = (
        "PodDisruptionBudget.v1beta1.policy",
        "CronJob.v1beta1.batch",
    )
    with ExploredServer(kinds=[older_kinds.write(name, directory) for name in names]) as server:
        server.create({
            "apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "a", "namespace": "default"},
            "spec": {"maxUnavailable": 1},
        })  # fmt: skip
        assert server.get("poddisruptionbudgets.v1.policy", "a", namespace="default")["spec"] == {"maxUnavailable": 1}
        assert server.list("cronjobs.v1beta1.batch") == []


@rows(
    "name, message",
    [
        ("PodDisruptionBudgets.v1beta1.policy", "did you mean PodDisruptionBudget.v1beta1.policy"),
        ("Widget.v1.example.com", "a document of OpenAPI describes others"),
        ("PodDisruptionBudget.v1.policy", "PodDisruptionBudget.v1.policy is built in"),
    ],
    ids=["misspelt", "another one", "built in"],
)
def test_what_is_no_older_version_is_refused(name: str, message: str) -> None:
    assert older_kinds.is_name(name)
    with pytest.raises(ValueError, match=message):
        older_kinds.document(name)


@rows(
    "said, missed",
    [
        ('E: no matches for kind "CronJob" in version "batch/v1beta1"\n', ["CronJob.v1beta1.batch"]),
        ('{"error":"list: no matches for kind \\"Issuer\\" in version \\"cert-manager.io/v1alpha2\\""}', ["Issuer.v1alpha2.cert-manager.io"]),
        ('no matches for kind "A" in version "b.c/v1", no matches for kind "A" in version "b.c/v1"', ["A.v1.b.c"]),
        ("all is served", []),
    ],
    ids=["a text", "JSON", "twice", "nothing"],
)  # fmt: skip
def test_what_a_program_has_looked_for_in_vain_is_found(said: str, missed: list[str]) -> None:
    assert older_kinds.missed(said) == missed


@rows(
    "name, advice",
    [
        ("CronJob.v1beta1.batch", "it is with `kinds: [CronJob.v1beta1.batch]`"),
        ("Issuer.v1.cert-manager.io", "it is if the manifests have its CRD"),
    ],
    ids=["an older version", "of others"],
)
def test_how_it_is_served(name: str, advice: str) -> None:
    assert older_kinds.advice(name) == advice
