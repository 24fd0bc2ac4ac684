"""Files of other tools that look like manifests: why they are not to be created.

A file is judged by its content: every document in it has a reason, or the file is a manifest. Reasons are few and certain:
patches of kustomize, its transformers, and the configurations of tools and components, whose groups no server has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from noxu.values import Json, Object

CRD: Final = "CustomResourceDefinition"
NO_OBJECT: Final = "it has neither an apiVersion nor a kind"
TEMPLATE: Final = "it is a template, and no YAML yet: it has {{ … }}"
_JSON_PATCH: Final = "it is a JSON patch"
_OF_EVERY_CRD: Final = ("group", "names", "scope", "versions")
_PATCH_OF_CRD: Final = f"it is a patch of a CRD: its spec has none of {', '.join(_OF_EVERY_CRD)}"
_CRD_WITHOUT_SPEC: Final = "it is a patch of a CRD: it has no spec"
_PATCH_OF_WORKLOAD: Final = "it is a patch of a {}: it has neither a selector nor an image"
_WORKLOADS: Final = ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")
_DIRECTIVE: Final = "it is a patch of kustomize: it has $patch"
_CRD_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})
_OPERATIONS: Final = frozenset({"add", "remove", "replace", "move", "copy", "test"})
_TEMPLATED: Final = re.compile(rb"\{\{.*?\}\}")
_TOOLS: Final = {
    "apiserver.config.k8s.io": "kube-apiserver",
    "audit.k8s.io": "kube-apiserver",
    "backstage.io": "Backstage",
    "builtin": "kustomize",
    "chainsaw.kyverno.io": "chainsaw",
    "client.authentication.k8s.io": "kubectl",
    "controller-runtime.sigs.k8s.io": "a controller's flags",
    "ctlptl.dev": "ctlptl",
    "k3d.io": "k3d",
    "kind.sigs.k8s.io": "kind",
    "kind.x-k8s.io": "kind",
    "krew.googlecontainertools.github.com": "krew",
    "kubeadm.k8s.io": "kubeadm",
    "kubecontrollermanager.config.k8s.io": "kube-controller-manager",
    "kubelet.config.k8s.io": "the kubelet",
    "kubeproxy.config.k8s.io": "kube-proxy",
    "kubescheduler.config.k8s.io": "kube-scheduler",
    "kustomize.config.k8s.io": "kustomize",
    "kuttl.dev": "kuttl",
    "pod-security.admission.config.k8s.io": "kube-apiserver",
    "scorecard.operatorframework.io": "operator-sdk's scorecard",
    "skaffold": "skaffold",
    "test.gatekeeper.sh": "gator",
}
"""Groups of files that no server has a kind of, because nobody has a CRD of them, and what reads the files."""
_KUBECONFIG: Final = ("v1", "Config")


def reason(values: Iterable[Json]) -> str:
    """Why none of a file's documents is to be created: the reason of the first one; "" if one of them may be an object."""
    values = list(values)
    if values and all(not _may_be_object(value) and not _is_json_patch(value) for value in values):
        return NO_OBJECT
    reasons = [_reason(value) for value in values]
    return reasons[0] if reasons and all(reasons) else ""


def is_template(text: bytes) -> bool:
    """Whether a text that cannot be decoded is a template of Helm, or of the like."""
    return _TEMPLATED.search(text) is not None


def _may_be_object(value: Json) -> bool:
    return isinstance(value, dict) and ("apiVersion" in value or "kind" in value)


def _reason(value: Json) -> str:
    if _is_json_patch(value):
        return _JSON_PATCH
    if not isinstance(value, dict):
        return ""
    api_version = str(value.get("apiVersion") or "")
    if tool := _TOOLS.get(api_version.partition("/")[0]):
        return f"it is for {tool}"
    if (api_version, value.get("kind")) == _KUBECONFIG:
        return "it is a kubeconfig"
    if isinstance(value.get("$patch"), str):
        return _DIRECTIVE
    if api_version.startswith("apps/") and value.get("kind") in _WORKLOADS:
        return _PATCH_OF_WORKLOAD.format(value["kind"]) if _is_patch_of_workload(value) else ""
    return _patch_of_crd(value) if value.get("kind") == CRD else ""


def _is_patch_of_workload(value: Object) -> bool:
    """Whether a workload lacks everything that it must have. One that says nothing, or is malformed, is no patch."""
    spec = value.get("spec")
    if not isinstance(spec, dict) or "selector" in spec or not spec:
        return False
    found: Json = spec
    for name in ("template", "spec", "containers"):
        found = found.get(name, {}) if isinstance(found, dict) else None
    if not isinstance(found, (dict, list)):
        return False
    return not any(isinstance(each, dict) and "image" in each for each in found)


def _patch_of_crd(value: Object) -> str:
    """Why a CRD is a patch. One whose `spec` is misspelt, or that says nothing, is none."""
    spec, metadata = value.get("spec"), value.get("metadata")
    if isinstance(spec, dict):
        return "" if any(field in spec for field in _OF_EVERY_CRD) else _PATCH_OF_CRD
    if spec is not None or not value.keys() <= _CRD_FIELDS:
        return ""
    return _CRD_WITHOUT_SPEC if isinstance(metadata, dict) and metadata.keys() - {"name"} else ""


def _is_json_patch(value: Json) -> bool:
    """Whether a value is a list of operations (RFC 6902)."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, dict) and each.get("op") in _OPERATIONS and "path" in each for each in value)
    )
