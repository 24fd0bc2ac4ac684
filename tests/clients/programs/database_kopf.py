"""An operator as they are written with kopf: for each Database it creates a headless Service, a PodDisruptionBudget and a StatefulSet.

Its status says whether all of them are ready. `database_kopf.py KUBECONFIG NAMESPACE`
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final

import kopf
import kubernetes

LABEL: Final = "database"
DATABASES: Final = ("example.com", "v1", "databases")
NAMESPACE: Final = sys.argv[2]

os.environ["KUBECONFIG"] = sys.argv[1]
kopf.on.login()(kopf.login_with_kubeconfig)
api = kubernetes.config.new_client_from_config(sys.argv[1])
apps, core, policy, discovery, custom = (
    kubernetes.client.AppsV1Api(api),
    kubernetes.client.CoreV1Api(api),
    kubernetes.client.PolicyV1Api(api),
    kubernetes.client.DiscoveryV1Api(api),
    kubernetes.client.CustomObjectsApi(api),
)


@kopf.on.create(*DATABASES)
def create(name: str, spec: kopf.Spec, body: kopf.Body, **_: Any) -> None:
    labels = {LABEL: name}
    container = {"name": "db", "image": "postgres", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    service = {"clusterIP": "None", "selector": labels, "ports": [{"name": "sql", "port": 5432}]}
    stateful = {
        "replicas": spec["replicas"],
        "serviceName": name,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    budget = {"minAvailable": spec["replicas"] - 1, "selector": {"matchLabels": labels}}
    specs = (
        (core.create_namespaced_service, service),
        (policy.create_namespaced_pod_disruption_budget, budget),
        (apps.create_namespaced_stateful_set, stateful),
    )
    for send, wanted in specs:
        value = {"metadata": {"name": name, "labels": labels}, "spec": wanted}
        kopf.append_owner_reference(value, body)
        try:
            send(NAMESPACE, value)
        except kubernetes.client.ApiException as error:
            if error.status != 409:
                raise


@kopf.on.event("apps", "v1", "statefulsets", labels={LABEL: kopf.PRESENT})
@kopf.on.event("policy", "v1", "poddisruptionbudgets", labels={LABEL: kopf.PRESENT})
@kopf.on.event("discovery.k8s.io", "v1", "endpointslices", labels={LABEL: kopf.PRESENT})
def look(labels: kopf.Labels, **_: Any) -> None:
    name = labels[LABEL]
    try:
        database = custom.get_namespaced_custom_object("example.com", "v1", NAMESPACE, "databases", name)
        status = {"ready": ready(name, database["spec"]["replicas"])}
        custom.patch_namespaced_custom_object_status(
            "example.com", "v1", NAMESPACE, "databases", name, {"status": status}
        )
    except kubernetes.client.ApiException as error:
        if error.status != 404:  # something is not there any more, or not yet
            raise


def ready(name: str, replicas: int) -> bool:
    stateful = apps.read_namespaced_stateful_set(name, NAMESPACE).status
    budget = policy.read_namespaced_pod_disruption_budget(name, NAMESPACE).status
    slices = discovery.list_namespaced_endpoint_slice(NAMESPACE, label_selector=f"{LABEL}={name}").items
    reachable = [each for found in slices for each in found.endpoints or () if each.conditions.ready]
    return stateful.ready_replicas == replicas and budget.disruptions_allowed == 1 and len(reachable) == replicas


kopf.run(standalone=True, namespaces=[NAMESPACE])
