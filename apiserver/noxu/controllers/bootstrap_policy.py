"""The roles and bindings that every cluster has, as data (plugin/pkg/auth/authorizer/rbac/bootstrappolicy).

A rule is a line `VERBS RESOURCES GROUPS [NAMES]`, or `VERBS PATHS`; lists are separated by commas. `core` is the core group,
`r`, `w` and `rw` are the verbs that read, that write, and both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from noxu.values import Object

GROUP: Final = "rbac.authorization.k8s.io"
AUTOUPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"
_LABEL: Final = "kubernetes.io/bootstrapping"
_DEFAULTS: Final = "rbac-defaults"
_AGGREGATE: Final = "rbac.authorization.k8s.io/aggregate-to-"
_CONTROLLER: Final = "system:controller:"

_READ: Final = ("get", "list", "watch")
_WRITE: Final = ("create", "delete", "deletecollection", "patch", "update")
_VERBS: Final = {"r": _READ, "w": _WRITE, "rw": (*_READ, *_WRITE)}
_EVENTS: Final = "create,patch,update events core,events.k8s.io"

AGGREGATED: Final = {"admin": "", "edit": "admin", "view": "edit"}
"""Aggregated roles, and the role to which each is aggregated itself."""

CLUSTER_ROLES: Final[dict[str, tuple[str, ...]]] = {
    "cluster-admin": ("* * *", "* /*"),
    "system:discovery": (
        "get /livez,/readyz,/healthz,/version,/version/,/openapi,/openapi/*,/api,/api/*,/apis,/apis/*",
    ),
    "system:monitoring": (
        "get /healthz,/healthz/*,/livez,/livez/*,/metrics,/metrics/slis,/readyz,/readyz/*",
        "get nodes/metrics core",
        "get /flagz",
        "get /statusz",
    ),
    "system:basic-user": (
        "create selfsubjectaccessreviews,selfsubjectrulesreviews authorization.k8s.io",
        "create selfsubjectreviews authentication.k8s.io",
    ),
    "system:public-info-viewer": ("get /livez,/readyz,/healthz,/version,/version/",),
    "system:aggregate-to-admin": (
        "create localsubjectaccessreviews authorization.k8s.io",
        "rw roles,rolebindings rbac.authorization.k8s.io",
    ),
    "system:aggregate-to-edit": (
        "r pods/attach,pods/proxy,pods/exec,pods/portforward,secrets,services/proxy core",
        "impersonate serviceaccounts core",
        "w pods,pods/attach,pods/proxy,pods/exec,pods/portforward core",
        "create pods/eviction core",
        "w replicationcontrollers,replicationcontrollers/scale,serviceaccounts,services,services/proxy,"
        "persistentvolumeclaims,configmaps,secrets,events core",
        "create serviceaccounts/token core",
        "w statefulsets,statefulsets/scale,daemonsets,deployments,deployments/scale,deployments/rollback,replicasets,"
        "replicasets/scale apps",
        "w horizontalpodautoscalers autoscaling",
        "w jobs,cronjobs batch",
        "w daemonsets,deployments,deployments/scale,deployments/rollback,ingresses,replicasets,replicasets/scale,"
        "replicationcontrollers/scale,networkpolicies extensions",
        "w poddisruptionbudgets policy",
        "w networkpolicies,ingresses networking.k8s.io",
        "rw leases coordination.k8s.io",
        "w events events.k8s.io",
        "w resourceclaims,resourceclaimtemplates resource.k8s.io",
    ),
    "system:aggregate-to-view": (
        "r pods,replicationcontrollers,replicationcontrollers/scale,serviceaccounts,services,services/status,endpoints,"
        "persistentvolumeclaims,persistentvolumeclaims/status,configmaps core",
        "r limitranges,resourcequotas,bindings,events,pods/status,resourcequotas/status,namespaces/status,"
        "replicationcontrollers/status,pods/log core",
        "r namespaces core",
        "r endpointslices discovery.k8s.io",
        "r controllerrevisions,statefulsets,statefulsets/status,statefulsets/scale,daemonsets,daemonsets/status,deployments,"
        "deployments/status,deployments/scale,replicasets,replicasets/status,replicasets/scale apps",
        "r horizontalpodautoscalers,horizontalpodautoscalers/status autoscaling",
        "r jobs,cronjobs,cronjobs/status,jobs/status batch",
        "r daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,ingresses,ingresses/status,"
        "replicasets,replicasets/scale,replicasets/status,replicationcontrollers/scale,networkpolicies extensions",
        "r poddisruptionbudgets,poddisruptionbudgets/status policy",
        "r networkpolicies,ingresses,ingresses/status networking.k8s.io",
        "r events events.k8s.io",
        "r resourceclaims,resourceclaims/status,resourceclaimtemplates resource.k8s.io",
    ),
    "system:heapster": ("r events,pods,nodes,namespaces core", "r deployments extensions"),
    "system:node": (
        "create tokenreviews authentication.k8s.io",
        "create subjectaccessreviews,localsubjectaccessreviews authorization.k8s.io",
        "r services core",
        "create,get,list,watch nodes core",
        "update,patch nodes/status core",
        "update,patch nodes core",
        _EVENTS,
        "r pods core",
        "create,delete pods core",
        "update,patch pods/status core",
        "create pods/eviction core",
        "r secrets,configmaps core",
        "get persistentvolumeclaims,persistentvolumes core",
        "get endpoints core",
        "create,get,list,watch certificatesigningrequests certificates.k8s.io",
        "create,delete,get,patch,update leases coordination.k8s.io",
        "get volumeattachments storage.k8s.io",
        "get,patch,update persistentvolumeclaims/status core",
        "create serviceaccounts/token core",
        "r csidrivers storage.k8s.io",
        "create,delete,get,patch,update csinodes storage.k8s.io",
        "r runtimeclasses node.k8s.io",
        "get resourceclaims resource.k8s.io",
        "deletecollection resourceslices resource.k8s.io",
        "create,get,list,watch,update,patch,delete resourceslices resource.k8s.io",
        "r clustertrustbundles certificates.k8s.io",
        "get serviceaccounts core",
        "create,get,list,watch podcertificaterequests certificates.k8s.io",
    ),
    "system:node-problem-detector": ("get nodes core", "patch nodes/status core", _EVENTS),
    "system:kubelet-api-admin": (
        "r nodes core",
        "proxy nodes core",
        "* nodes/proxy,nodes/metrics,nodes/stats,nodes/log,nodes/configz,nodes/healthz,nodes/pods core",
    ),
    "system:node-bootstrapper": ("create,get,list,watch certificatesigningrequests certificates.k8s.io",),
    "system:auth-delegator": (
        "create tokenreviews authentication.k8s.io",
        "create subjectaccessreviews authorization.k8s.io",
    ),
    "system:kube-aggregator": ("r services,endpoints core",),
    "system:kube-controller-manager": (
        _EVENTS,
        "create leases coordination.k8s.io",
        "get,update leases coordination.k8s.io kube-controller-manager",
        "create secrets,serviceaccounts core",
        "delete secrets core",
        "get namespaces,secrets,serviceaccounts,configmaps core",
        "update secrets,serviceaccounts core",
        "create tokenreviews authentication.k8s.io",
        "create subjectaccessreviews authorization.k8s.io",
        "list,watch * *",
        "create serviceaccounts/token core",
    ),
    "system:kube-dns": ("list,watch endpoints,services core",),
    "system:persistent-volume-provisioner": (
        "create,delete,get,list,watch persistentvolumes core",
        "get,list,update,watch persistentvolumeclaims core",
        "r storageclasses storage.k8s.io",
        "watch events core",
        _EVENTS,
    ),
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient": (
        "create certificatesigningrequests/nodeclient certificates.k8s.io",
    ),
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": (
        "create certificatesigningrequests/selfnodeclient certificates.k8s.io",
    ),
    "system:volume-scheduler": (
        "get,list,patch,update,watch persistentvolumes core",
        "r storageclasses storage.k8s.io",
        "get,list,patch,update,watch persistentvolumeclaims core",
    ),
    "system:certificates.k8s.io:legacy-unknown-approver": (
        "approve signers certificates.k8s.io kubernetes.io/legacy-unknown",
    ),
    "system:certificates.k8s.io:kubelet-serving-approver": (
        "approve signers certificates.k8s.io kubernetes.io/kubelet-serving",
    ),
    "system:certificates.k8s.io:kube-apiserver-client-approver": (
        "approve signers certificates.k8s.io kubernetes.io/kube-apiserver-client",
    ),
    "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver": (
        "approve signers certificates.k8s.io kubernetes.io/kube-apiserver-client-kubelet",
    ),
    "system:service-account-issuer-discovery": (
        "get /.well-known/openid-configuration,/.well-known/openid-configuration/,/openid/v1/jwks,/openid/v1/jwks/",
    ),
    "system:node-proxier": (
        "list,watch services,endpoints core",
        "r nodes core",
        _EVENTS,
        "list,watch endpointslices discovery.k8s.io",
        "list,watch servicecidrs networking.k8s.io",
    ),
    "system:kube-scheduler": (
        _EVENTS,
        "create leases coordination.k8s.io",
        "get,list,update,watch leases coordination.k8s.io kube-scheduler",
        "create leasecandidates coordination.k8s.io",
        "delete,deletecollection,get,list,patch,update,watch leasecandidates coordination.k8s.io",
        "r nodes core",
        "delete,get,list,watch pods core",
        "create pods/binding,bindings core",
        "patch,update pods/status core",
        "r services,replicationcontrollers core",
        "r replicasets apps,extensions",
        "r statefulsets apps",
        "r poddisruptionbudgets policy",
        "r persistentvolumeclaims,persistentvolumes core",
        "create tokenreviews authentication.k8s.io",
        "create subjectaccessreviews authorization.k8s.io",
        "r csinodes storage.k8s.io",
        "r namespaces core",
        "r csidrivers storage.k8s.io",
        "r csistoragecapacities storage.k8s.io",
        "r volumeattachments storage.k8s.io",
        "r deviceclasses resource.k8s.io",
        "patch,update resourceclaims/status resource.k8s.io",
        "get,list,patch,update,watch resourceclaims resource.k8s.io",
        "r resourceslices resource.k8s.io",
    ),
    "system:cluster-trust-bundle-discovery": ("r clustertrustbundles certificates.k8s.io",),
}

CONTROLLER_ROLES: Final[dict[str, tuple[str, ...]]] = {
    "attachdetach-controller": (
        "list,watch persistentvolumes,persistentvolumeclaims core",
        "r nodes core",
        "patch,update nodes/status core",
        "list,watch pods core",
        _EVENTS,
        "create,delete,get,list,watch volumeattachments storage.k8s.io",
        "r csidrivers storage.k8s.io",
        "r csinodes storage.k8s.io",
    ),
    "clusterrole-aggregation-controller": (
        "escalate,get,list,patch,update,watch clusterroles rbac.authorization.k8s.io",
    ),
    "cronjob-controller": (
        "get,list,update,watch cronjobs batch",
        "create,delete,get,list,patch,update,watch jobs batch",
        "update cronjobs/status batch",
        "update cronjobs/finalizers batch",
        "delete,list pods core",
        _EVENTS,
    ),
    "daemon-set-controller": (
        "r daemonsets apps,extensions",
        "update daemonsets/status apps,extensions",
        "update daemonsets/finalizers apps,extensions",
        "list,watch nodes core",
        "create,delete,list,patch,watch pods core",
        "create pods/binding core",
        "create,delete,get,list,patch,update,watch controllerrevisions apps",
        _EVENTS,
    ),
    "deployment-controller": (
        "get,list,update,watch deployments apps,extensions",
        "update deployments/status apps,extensions",
        "update deployments/finalizers apps,extensions",
        "create,delete,get,list,patch,update,watch replicasets apps,extensions",
        "get,list,update,watch pods core",
        _EVENTS,
    ),
    "disruption-controller": (
        "r deployments apps,extensions",
        "r replicasets apps,extensions",
        "r replicationcontrollers core",
        "r poddisruptionbudgets policy",
        "r statefulsets apps",
        "update poddisruptionbudgets/status policy",
        "patch,update pods/status core",
        "get */scale *",
        _EVENTS,
    ),
    "endpoint-controller": (
        "r services,pods core",
        "create,delete,get,list,update endpoints core",
        "create endpoints/restricted core",
        _EVENTS,
    ),
    "endpointslice-controller": (
        "r services,pods,nodes core",
        "update services/finalizers core",
        "create,delete,get,list,update endpointslices discovery.k8s.io",
        _EVENTS,
    ),
    "endpointslicemirroring-controller": (
        "r services,endpoints core",
        "update services/finalizers core",
        "update endpoints/finalizers core",
        "create,delete,get,list,update endpointslices discovery.k8s.io",
        _EVENTS,
    ),
    "expand-controller": (
        "get,list,patch,update,watch persistentvolumes core",
        "patch,update persistentvolumeclaims/status core",
        "r persistentvolumeclaims core",
        "r storageclasses storage.k8s.io",
        "get services,endpoints core",
        "get secrets core",
        _EVENTS,
    ),
    "ephemeral-volume-controller": (
        "r pods core",
        "update pods/finalizers core",
        "create,get,list,watch persistentvolumeclaims core",
        _EVENTS,
    ),
    "resource-claim-controller": (
        "r pods core",
        "update pods/finalizers core",
        "create,delete,get,list,watch resourceclaims resource.k8s.io",
        "patch,update resourceclaims,resourceclaims/status resource.k8s.io",
        "patch,update pods/status core",
        _EVENTS,
    ),
    "device-taint-eviction-controller": (
        "delete,get,list,watch pods core",
        "patch,update pods/status core",
        "r resourceclaims resource.k8s.io",
        "r resourceslices resource.k8s.io",
        "r deviceclasses resource.k8s.io",
        _EVENTS,
    ),
    "generic-garbage-collector": ("delete,get,list,patch,update,watch * *", _EVENTS),
    "horizontal-pod-autoscaler": (
        "r horizontalpodautoscalers autoscaling",
        "update horizontalpodautoscalers/status autoscaling",
        "get,update */scale *",
        "list pods core",
        "list pods metrics.k8s.io",
        "get,list * custom.metrics.k8s.io",
        "get,list * external.metrics.k8s.io",
        _EVENTS,
    ),
    "job-controller": (
        "get,list,patch,update,watch jobs batch",
        "update jobs/status batch",
        "update jobs/finalizers batch",
        "create,delete,list,patch,watch pods core",
        _EVENTS,
    ),
    "namespace-controller": (
        "delete,get,list,watch namespaces core",
        "update namespaces/finalize,namespaces/status core",
        "delete,deletecollection,get,list * *",
    ),
    "node-controller": (
        "delete,get,list,patch,update nodes core",
        "patch,update nodes/status core",
        "patch,update pods/status core",
        "delete,get,list pods core",
        _EVENTS,
    ),
    "persistent-volume-binder": (
        "create,delete,get,list,update,watch persistentvolumes core",
        "update persistentvolumes/status core",
        "get,list,update,watch persistentvolumeclaims core",
        "update persistentvolumeclaims/status core",
        "create,delete,get,list,watch pods core",
        "r storageclasses storage.k8s.io",
        "create,delete,get,update endpoints core",
        "create,delete,get services core",
        "get secrets core",
        "get,list nodes core",
        "watch events core",
        _EVENTS,
    ),
    "pod-garbage-collector": ("delete,list,watch pods core", "get,list nodes core", "patch pods/status core"),
    "replicaset-controller": (
        "get,list,update,watch replicasets apps,extensions",
        "update replicasets/status apps,extensions",
        "update replicasets/finalizers apps,extensions",
        "create,delete,list,patch,watch pods core",
        _EVENTS,
    ),
    "replication-controller": (
        "get,list,update,watch replicationcontrollers core",
        "update replicationcontrollers/status core",
        "update replicationcontrollers/finalizers core",
        "create,delete,list,patch,watch pods core",
        _EVENTS,
    ),
    "resourcequota-controller": ("list,watch * *", "update resourcequotas/status core", _EVENTS),
    "route-controller": ("list,watch nodes core", "patch nodes/status core", _EVENTS),
    "service-account-controller": ("create serviceaccounts core", _EVENTS),
    "service-controller": (
        "r services core",
        "patch,update services/status core",
        "list,watch nodes core",
        _EVENTS,
    ),
    "service-cidrs-controller": (
        "get,list,patch,update,watch servicecidrs networking.k8s.io",
        "patch,update servicecidrs/finalizers networking.k8s.io",
        "patch,update servicecidrs/status networking.k8s.io",
        "r ipaddresses networking.k8s.io",
        _EVENTS,
    ),
    "statefulset-controller": (
        "list,watch pods core",
        "r statefulsets apps",
        "update statefulsets/status apps",
        "update statefulsets/finalizers apps",
        "create,delete,get,patch,update pods core",
        "create,delete,get,list,patch,update,watch controllerrevisions apps",
        "create,get persistentvolumeclaims core",
        _EVENTS,
        "delete,update persistentvolumeclaims core",
    ),
    "ttl-controller": ("list,patch,update,watch nodes core", _EVENTS),
    "certificate-controller": (
        "delete,get,list,watch certificatesigningrequests certificates.k8s.io",
        "update certificatesigningrequests/status,certificatesigningrequests/approval certificates.k8s.io",
        "approve signers certificates.k8s.io kubernetes.io/kube-apiserver-client-kubelet",
        "sign signers certificates.k8s.io kubernetes.io/legacy-unknown,kubernetes.io/kube-apiserver-client,"
        "kubernetes.io/kube-apiserver-client-kubelet,kubernetes.io/kubelet-serving",
        "create subjectaccessreviews authorization.k8s.io",
        _EVENTS,
    ),
    "pvc-protection-controller": (
        "get,list,update,watch persistentvolumeclaims core",
        "r pods core",
        _EVENTS,
    ),
    "pv-protection-controller": ("get,list,update,watch persistentvolumes core", _EVENTS),
    "volumeattributesclass-protection-controller": (
        "r persistentvolumeclaims core",
        "r persistentvolumes core",
        "get,list,update,watch volumeattributesclasses storage.k8s.io",
        _EVENTS,
    ),
    "selinux-warning-controller": (
        "r persistentvolumeclaims,persistentvolumes,pods core",
        "r csidrivers storage.k8s.io",
        _EVENTS,
    ),
    "ttl-after-finished-controller": ("delete,get,list,watch jobs batch", _EVENTS),
    "root-ca-cert-publisher": ("create,update configmaps core", _EVENTS),
    "kube-apiserver-serving-clustertrustbundle-publisher": (
        "attest signers certificates.k8s.io kubernetes.io/kube-apiserver-serving",
        "create,delete,list,update,watch clustertrustbundles certificates.k8s.io",
        _EVENTS,
    ),
    "podcertificaterequestcleaner": ("delete,get,list,watch podcertificaterequests certificates.k8s.io",),
    "validatingadmissionpolicy-status-controller": (
        "r validatingadmissionpolicies admissionregistration.k8s.io",
        "get,patch,update validatingadmissionpolicies/status admissionregistration.k8s.io",
        _EVENTS,
    ),
    "legacy-service-account-token-cleaner": (
        "get configmaps core kube-apiserver-legacy-service-account-token-tracking",
        "delete,patch secrets core",
    ),
    "storage-version-migrator-controller": (
        "create,list,patch * *",
        "update storageversionmigrations/status storagemigration.k8s.io",
    ),
}
"""By the names of the controllers' service accounts in kube-system."""

ROLES: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("kube-system", "extension-apiserver-authentication-reader"): (
        "r configmaps core extension-apiserver-authentication",
    ),
    ("kube-system", "system:controller:bootstrap-signer"): ("r secrets core",),
    ("kube-system", "system:controller:cloud-provider"): ("create,get,list,watch configmaps core",),
    ("kube-system", "system:controller:token-cleaner"): ("delete,get,list,watch secrets core", _EVENTS),
    ("kube-system", "system::leader-locking-kube-controller-manager"): (
        "watch configmaps core",
        "get,update configmaps core kube-controller-manager",
    ),
    ("kube-system", "system::leader-locking-kube-scheduler"): (
        "watch configmaps core",
        "get,update configmaps core kube-scheduler",
    ),
    ("kube-public", "system:controller:bootstrap-signer"): (
        "r configmaps core",
        "update configmaps core cluster-info",
        _EVENTS,
    ),
}
"""By namespace and name."""

_CLUSTER_BINDINGS: Final[dict[str, tuple[str, ...]]] = {
    "cluster-admin": ("Group system:masters",),
    "system:monitoring": ("Group system:monitoring",),
    "system:discovery": ("Group system:authenticated",),
    "system:basic-user": ("Group system:authenticated",),
    "system:public-info-viewer": ("Group system:authenticated", "Group system:unauthenticated"),
    "system:node-proxier": ("User system:kube-proxy",),
    "system:kube-controller-manager": ("User system:kube-controller-manager",),
    "system:kube-dns": ("ServiceAccount kube-dns",),
    "system:kube-scheduler": ("User system:kube-scheduler",),
    "system:volume-scheduler": ("User system:kube-scheduler",),
    "system:node": (),
    "system:service-account-issuer-discovery": ("Group system:serviceaccounts",),
    "system:cluster-trust-bundle-discovery": ("Group system:serviceaccounts",),
}
"""By the name of the binding and of its role. Service accounts are those of kube-system."""

_BINDINGS: Final[dict[tuple[str, str], tuple[str, tuple[str, ...]]]] = {
    ("kube-system", "system::extension-apiserver-authentication-reader"): (
        "extension-apiserver-authentication-reader",
        ("User system:kube-controller-manager", "User system:kube-scheduler"),
    ),
    ("kube-system", "system::leader-locking-kube-controller-manager"): (
        "system::leader-locking-kube-controller-manager",
        ("User system:kube-controller-manager", "ServiceAccount kube-controller-manager"),
    ),
    ("kube-system", "system::leader-locking-kube-scheduler"): (
        "system::leader-locking-kube-scheduler",
        ("User system:kube-scheduler", "ServiceAccount kube-scheduler"),
    ),
    ("kube-system", "system:controller:bootstrap-signer"): (
        "system:controller:bootstrap-signer",
        ("ServiceAccount bootstrap-signer",),
    ),
    ("kube-system", "system:controller:cloud-provider"): (
        "system:controller:cloud-provider",
        ("ServiceAccount cloud-provider",),
    ),
    ("kube-system", "system:controller:token-cleaner"): (
        "system:controller:token-cleaner",
        ("ServiceAccount token-cleaner",),
    ),
    ("kube-public", "system:controller:bootstrap-signer"): (
        "system:controller:bootstrap-signer",
        ("ServiceAccount bootstrap-signer",),
    ),
}
"""By namespace and name: a role and its subjects."""


def manifests() -> Iterator[tuple[str, Object]]:
    """The plural and the manifest of each object, with the fields in the order of declaration."""
    for name, to in AGGREGATED.items():
        yield "clusterroles", _aggregated(name, to)
    for name, rules in CLUSTER_ROLES.items():
        labels = {name.removeprefix("system:"): "true"} if name.startswith("system:aggregate-to-") else {}
        yield "clusterroles", _role("ClusterRole", _metadata(name, labels=labels), rules)
    for name, rules in CONTROLLER_ROLES.items():
        yield "clusterroles", _role("ClusterRole", _metadata(f"{_CONTROLLER}{name}"), rules)
    for (namespace, name), rules in ROLES.items():
        yield "roles", _role("Role", _metadata(name, namespace), rules)
    for name, subjects in _CLUSTER_BINDINGS.items():
        yield "clusterrolebindings", _binding("ClusterRole", name, _metadata(name), subjects)
    for name in CONTROLLER_ROLES:
        role = f"{_CONTROLLER}{name}"
        yield "clusterrolebindings", _binding("ClusterRole", role, _metadata(role), (f"ServiceAccount {name}",))
    for (namespace, name), (role, subjects) in _BINDINGS.items():
        yield "rolebindings", _binding("Role", role, _metadata(name, namespace), subjects)


def _metadata(name: str, namespace: str = "", labels: Object | None = None) -> Object:
    aggregate = {f"rbac.authorization.k8s.io/{label}": value for label, value in (labels or {}).items()}
    metadata: Object = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return metadata | {"labels": {_LABEL: _DEFAULTS} | aggregate, "annotations": {AUTOUPDATE: "true"}}


def _aggregated(name: str, to: str) -> Object:
    """An aggregated role. Its rules are filled in by a controller, if one runs."""
    metadata = _metadata(name, labels={f"aggregate-to-{to}": "true"} if to else None)
    selector = {"matchLabels": {f"{_AGGREGATE}{name}": "true"}}
    return _typed("ClusterRole", metadata) | {"rules": None, "aggregationRule": {"clusterRoleSelectors": [selector]}}


def _typed(kind: str, metadata: Object) -> Object:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata}


def _role(kind: str, metadata: Object, rules: tuple[str, ...]) -> Object:
    return _typed(kind, metadata) | {"rules": [_rule(text) for text in rules]}


def _rule(text: str) -> Object:
    verbs, what, *rest = text.split(" ")
    rule: Object = {"verbs": sorted(_VERBS.get(verbs) or verbs.split(","))}
    if what.startswith("/"):
        return rule | {"nonResourceURLs": ["*"] if what == "/*" else sorted(what.split(","))}
    rule["apiGroups"] = sorted("" if group == "core" else group for group in rest[0].split(","))
    rule["resources"] = sorted(what.split(","))
    if len(rest) > 1:
        rule["resourceNames"] = sorted(rest[1].split(","))
    return rule


def _binding(kind: str, role: str, metadata: Object, subjects: tuple[str, ...]) -> Object:
    reference = {"apiGroup": GROUP, "kind": kind, "name": role}
    binding = _typed(f"{kind}Binding", metadata)
    if subjects:
        binding["subjects"] = [_subject(*text.split(" ")) for text in subjects]
    return binding | {"roleRef": reference}


def _subject(kind: str, name: str) -> Object:
    if kind == "ServiceAccount":
        return {"kind": kind, "name": name, "namespace": "kube-system"}
    return {"kind": kind, "apiGroup": GROUP, "name": name}
