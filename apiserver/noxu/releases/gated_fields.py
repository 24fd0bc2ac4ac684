"""Fields of built-in kinds by release: those that a feature gate which is off by default keeps out of objects.

From pkg/features/kube_features.go of k8s.io/kubernetes (the histories of gates, up to that of 1.35), from pkg/api/pod/util.go,
pkg/api/persistentvolume(claim)/util.go and pkg/registry/*/*/strategy.go. The decoder knows such a field, and the documents show
it; the strategy of the kind drops it from a new object, and from an updated one unless the old one has it already. Gates of
later releases are not listed, so from 1.36 on nothing is dropped.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class GatedFields(NamedTuple):
    """Fields of types (`PodSpec.hostUsers`) that are dropped up to the release `until`.

    `emptied`: structs around it that have nothing else are dropped, too. `forced`: the value that a field gets instead.
    """

    gate: str
    until: int
    fields: tuple[str, ...]
    emptied: bool = False
    forced: str = ""


GATED: Final = (
    GatedFields("LoadBalancerIPMode", 29, ("LoadBalancerIngress.ipMode",)),
    GatedFields("PodLifecycleSleepAction", 29, ("LifecycleHandler.sleep",), emptied=True),
    GatedFields("JobSuccessPolicy", 30, ("JobSpec.successPolicy",)),
    GatedFields(
        "MatchLabelKeysInPodAffinity", 30, ("PodAffinityTerm.matchLabelKeys", "PodAffinityTerm.mismatchLabelKeys")
    ),
    GatedFields("RecursiveReadOnlyMounts", 30, ("VolumeMount.recursiveReadOnly", "ContainerStatus.volumeMounts")),
    GatedFields("ServiceTrafficDistribution", 30, ("ServiceSpec.trafficDistribution",)),
    GatedFields("JobManagedBy", 31, ("JobSpec.managedBy",)),
    GatedFields(
        "InPlacePodVerticalScaling", 32,
        ("Container.resizePolicy", "EphemeralContainerCommon.resizePolicy", "ContainerStatus.resources",
         "ContainerStatus.allocatedResources"),
    ),
    GatedFields("ProcMountType", 32, ("SecurityContext.procMount",), forced="Default"),
    GatedFields("SELinuxChangePolicy", 32, ("PodSecurityContext.seLinuxChangePolicy",)),
    GatedFields(
        "SupplementalGroupsPolicy", 32, ("PodSecurityContext.supplementalGroupsPolicy", "ContainerStatus.user")
    ),
    GatedFields("UserNamespacesSupport", 32, ("PodSpec.hostUsers",)),
    GatedFields(
        "DynamicResourceAllocation", 33,
        ("PodSpec.resourceClaims", "ResourceRequirements.claims", "PodStatus.resourceClaimStatuses"),
    ),
    GatedFields("PodLevelResources", 33, ("PodSpec.resources",)),
    GatedFields("PodObservedGenerationTracking", 33, ("PodStatus.observedGeneration", "PodCondition.observedGeneration")),
    GatedFields(
        "VolumeAttributesClass", 33,
        ("PersistentVolumeClaimSpec.volumeAttributesClassName", "PersistentVolumeSpec.volumeAttributesClassName"),
    ),
    GatedFields(
        "ContainerRestartRules", 34, ("Container.restartPolicyRules", "EphemeralContainerCommon.restartPolicyRules")
    ),
    GatedFields("EnvFiles", 34, ("EnvVarSource.fileKeyRef",)),
    GatedFields("HPAConfigurableTolerance", 34, ("HPAScalingRules.tolerance",)),
    GatedFields("HostnameOverride", 34, ("PodSpec.hostnameOverride",)),
    GatedFields("ImageVolume", 34, ("VolumeSource.image",)),
    GatedFields("MaxUnavailableStatefulSet", 34, ("RollingUpdateStatefulSetStrategy.maxUnavailable",)),
    GatedFields("ClusterTrustBundleProjection", 35, ("VolumeProjection.clusterTrustBundle",)),
    GatedFields("ContainerStopSignals", 35, ("Lifecycle.stopSignal",), emptied=True),
    GatedFields("CoordinatedLeaderElection", 35, ("LeaseSpec.strategy", "LeaseSpec.preferredHolder")),
    GatedFields("DRAExtendedResource", 35, ("PodStatus.extendedResourceClaimStatus",)),
    GatedFields("GenericWorkload", 35, ("PodSpec.workloadRef",)),
    GatedFields("InPlacePodLevelResourcesVerticalScaling", 35, ("PodStatus.resources", "PodStatus.allocatedResources")),
    GatedFields("PodCertificateRequest", 35, ("VolumeProjection.podCertificate",)),
    GatedFields("ResourceHealthStatus", 35, ("ContainerStatus.allocatedResourcesStatus",)),
)  # fmt: skip
"""In the order of the releases from which on they are kept."""

LAST: Final = max(gated.until for gated in GATED)
