"""Built-in kinds by release: which resources of v1 and v2 came later than the oldest release.

From the register.go of each group version of k8s.io/api. The alpha and beta versions that these kinds had before are not
served here, in any release.
"""

from __future__ import annotations

from functools import cache
from typing import Final

LATER: Final[dict[int, dict[tuple[str, str], tuple[str, ...]]]] = {
    30: {
        ("admissionregistration.k8s.io", "v1"): ("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
    },
    33: {
        ("networking.k8s.io", "v1"): ("ipaddresses", "servicecidrs"),
    },
    34: {
        ("resource.k8s.io", "v1"): ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"),
        ("storage.k8s.io", "v1"): ("volumeattributesclasses",),
    },
    36: {
        ("admissionregistration.k8s.io", "v1"): ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
    },
    37: {
        ("certificates.k8s.io", "v1"): ("clustertrustbundles", "podcertificaterequests"),
        ("resource.k8s.io", "v1"): ("devicetaintrules",),
        ("storagemigration.k8s.io", "v1"): ("storageversionmigrations",),
    },
}
"""By release, group and version: the resources that came with the release."""


@cache
def later(release: int) -> frozenset[tuple[str, str, str]]:
    """The resources that a release does not have: (group, version, plural)."""
    return frozenset(
        (group, version, plural)
        for since, versions in LATER.items()
        if since > release
        for (group, version), plurals in versions.items()
        for plural in plurals
    )


def since(api_version: str, kind: str) -> int | None:
    """The release that a built-in kind came with in a group version; None if it is older, or not built in."""
    group, _, version = api_version.rpartition("/")
    lower = kind.lower()
    plurals = {f"{lower}s", f"{lower}es", f"{lower[:-1]}ies"}
    for release, versions in LATER.items():
        if not plurals.isdisjoint(versions.get((group, version), ())):
            return release
    return None
