"""The fields of built-in kinds by release, beside those of upstream's golden objects at the tags of the releases.

`data/fields.json` was extracted from these objects by `python -m conformance.released_fields`, and the fields of the server
come from upstream's types: neither is made from the other.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from conformance.released_fields import of_struct, outermost
from noxu import releases
from noxu.discovery.openapi_definitions import in_v3, name_of, reached
from noxu.go.structs import Struct, Type, decode
from noxu.kinds import facts
from noxu.kinds.facts import ReleasePart
from noxu.kinds.scheme import by_group_kind, served
from noxu.releases import NEWEST
from noxu.values import Object
from tests.rows import rows

UPSTREAM: Final[dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "fields.json").read_text())
LATER: Final = ("runningInUserNamespace", "compatibilityGroups", "derivedAttributes")
"""Fields that the newest release has, and the commit of its golden objects did not yet."""


def paths(kind: str, release: int) -> set[str]:
    api_version, _, name = kind.rpartition("/")
    found = set(of_struct(by_group_kind(release)[api_version, name].struct))
    return {path for path in found if not any(f".{name}" in path for name in LATER)}


@pytest.mark.parametrize("version", UPSTREAM)
def test_fields_are_those_of_upstream(version: str) -> None:
    for kind, expected in UPSTREAM[version]["kinds"].items():
        newest, found = paths(kind, NEWEST), paths(kind, releases.parse(version))
        assert outermost(newest, found) == expected.get("absent", []), kind
        assert outermost(found, newest) == expected.get("gone", []), kind
        assert len(found) == expected["fields"], kind


def test_the_newest_release_needs_no_differences() -> None:
    for kind in served():
        assert by_group_kind()[kind.api_version, kind.kind] is kind
        assert facts.origin_of(kind.struct).release == NEWEST


POD: Final[Object] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "a", "image": "b"}]},
}
DEPLOYMENT: Final[Object] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "a"},
    "spec": {"selector": {}, "template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}},
}


@rows(
    ("path", "since"),
    [
        ("spec.securityContext.appArmorProfile", 30),
        ("spec.trafficDistribution", 30),
        ("spec.successPolicy", 30),
        ("spec.managedBy", 30),
        ("spec.containers.volumeMounts.recursiveReadOnly", 30),
        ("spec.volumes.image", 31),
        ("spec.securityContext.supplementalGroupsPolicy", 31),
        ("spec.resources", 32),
        ("spec.securityContext.seLinuxChangePolicy", 32),
        ("spec.containers.lifecycle.stopSignal", 33),
        ("spec.behavior.scaleUp.tolerance", 33),
        ("endpoints.hints.forNodes", 33),
        ("spec.hostnameOverride", 34),
        ("spec.containers.restartPolicyRules", 34),
        ("spec.containers.env.valueFrom.fileKeyRef", 34),
        ("spec.serviceAccountTokenInSecrets", 35),
        ("spec.evictionResponders", 37),
    ],
)
def test_a_field_came_with_a_release(path: str, since: int) -> None:
    kinds = ("v1/Pod", "v1/Service", "batch/v1/Job", "autoscaling/v2/HorizontalPodAutoscaler",
             "discovery.k8s.io/v1/EndpointSlice", "storage.k8s.io/v1/CSIDriver")  # fmt: skip
    having = [r for r in range(releases.OLDEST, NEWEST + 1) if any(path in paths(kind, r) for kind in kinds)]
    assert having == list(range(since, NEWEST + 1))


def test_a_decoder_reports_fields_that_came_later_at_any_depth() -> None:
    template = {"spec": {**POD["spec"], "hostnameOverride": "a"}}
    value = {**DEPLOYMENT, "spec": {"selector": {}, "template": template}, "status": {"terminatingReplicas": 1}}
    unknown = {
        release: sorted(decode(by_group_kind(release)["apps/v1", "Deployment"].struct, value).unknown)
        for release in (29, 33, 34)
    }
    assert unknown == {
        29: ["spec.template.spec.hostnameOverride", "status.terminatingReplicas"],
        33: ["spec.template.spec.hostnameOverride"],
        34: [],
    }


def test_a_claim_of_a_pod_was_within_another_field() -> None:
    """Until 1.30: `source`, a type that is gone."""
    claims = {"old": {"source": {"resourceClaimName": "a"}}, "new": {"resourceClaimName": "a"}}
    table = {r: by_group_kind(r)["v1", "Pod"].struct for r in (30, 31)}
    unknown = {
        (release, name): decode(struct, {"spec": {"resourceClaims": [claim]}}).unknown
        for release, struct in table.items()
        for name, claim in claims.items()
    }
    assert unknown == {
        (30, "old"): [],
        (30, "new"): ["spec.resourceClaims[0].resourceClaimName"],
        (31, "old"): ["spec.resourceClaims[0].source"],
        (31, "new"): [],
    }


@pytest.mark.parametrize("release", range(releases.OLDEST, NEWEST + 1))
def test_every_struct_of_a_release_can_be_read(release: int) -> None:
    for kind in served(release):
        structs: list[Type] = [kind.struct, *(part.body for part in kind.subresources if part.body)]
        seen = set()
        while structs:
            found = structs.pop()
            if isinstance(found, Struct) and found not in seen:
                seen.add(found)
                structs += [field.type for field in found.fields.values()]
            elif not isinstance(found, Struct) and hasattr(found, "element"):
                structs.append(found.element)
        assert all(facts.origin_of(struct).release in (release, NEWEST) for struct in seen), kind.kind


@pytest.mark.parametrize("release", range(releases.OLDEST, NEWEST + 1))
def test_defaults_of_a_release_fill_in_only_its_fields(release: int) -> None:
    for value in (POD, DEPLOYMENT):
        kind = by_group_kind(release)[value["apiVersion"], value["kind"]]
        filled = decode(kind.struct, value).value
        kind.default(filled)
        assert decode(kind.struct, filled).unknown == []


def test_a_list_is_merged_by_key_since_it_has_the_marker() -> None:
    """The marker came with 1.30; before, an apply replaced the list."""
    merged = {r: facts.struct("core/v1.PodSpec", r).fields["imagePullSecrets"].list_type for r in (29, 30)}
    assert merged == {29: "", 30: "map"}


def test_an_enum_has_the_values_of_the_release() -> None:
    operators = {r: facts.enum("TolerationOperator", ReleasePart("core/v1", r)) for r in (34, 35)}
    assert operators == {34: ["Exists", "Equal"], 35: ["Exists", "Equal", "Lt", "Gt"]}


def test_documents_show_the_fields_of_a_release() -> None:
    for release in (29, 33, NEWEST):
        pod = by_group_kind(release)["v1", "Pod"]
        names = reached([name_of(pod.struct)], release)
        described = in_v3("io.k8s.api.core.v1.PodSpec", "#", release)["properties"]
        assert set(described) == set(facts.struct("core/v1.PodSpec", release).fields)
        assert ("io.k8s.api.core.v1.ImageVolumeSource" in names) == (release >= 31)
        assert ("io.k8s.api.core.v1.ClaimSource" in names) == (release <= 30)
