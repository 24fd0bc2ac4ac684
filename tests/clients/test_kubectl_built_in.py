"""kubectl with built-in kinds, whose bodies it sends as protobuf."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Session = Callable[..., None]

BUILT_IN: dict[str, str] = {
    "namespaces": """
        $ kubectl create namespace @ns-x
        namespace/@ns-x created
        $ kubectl create namespace @ns-x
        Error from server (AlreadyExists): namespaces "@ns-x" already exists
        [1]
        $ kubectl get ns @ns-x --show-labels
        NAME…STATUS   AGE…LABELS
        @ns-x…Active…kubernetes.io/metadata.name=@ns-x
        $ kubectl describe ns @ns-x
        Name:         @ns-x
        Labels:       kubernetes.io/metadata.name=@ns-x
        Annotations:  <none>
        Status:       Active
        …
        $ kubectl create configmap c -n @ns-x --from-literal a=b
        configmap/c created
        $ printf '{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{}}' | kubectl create -n @ns-x -f -
        widget.example.com/w created
        $ kubectl delete ns @ns-x
        namespace "@ns-x" deleted
        $ kubectl get wd,cm -n @ns-x
        No resources found in @ns-x namespace.
        $ kubectl delete ns default
        Error from server (Forbidden): namespaces "default" is forbidden: this namespace may not be deleted
        [1]
    """,
    "config maps": """
        $ kubectl create configmap c --from-literal a=b --from-literal empty=
        configmap/c created
        $ kubectl get cm c
        NAME   DATA   AGE
        c      2      …
        $ kubectl patch cm c -p '{"data":{"c":"d","a":null}}'
        configmap/c patched
        $ kubectl patch cm c --type json -p '[{"op":"add","path":"/data/e","value":"f"}]'
        configmap/c patched
        $ kubectl get cm c -o 'jsonpath={.data}'
        {"c":"d","e":"f","empty":""}
        $ kubectl describe cm c
        Name:         c
        Namespace:    @ns
        …
        c:
        ----
        d
        …
        $ kubectl create configmap c --from-literal a=z --dry-run=client -o yaml | kubectl apply -f -
        Warning: resource configmaps/c is missing the kubectl.kubernetes.io/last-applied-configuration annotation which is required by kubectl apply. kubectl apply should only be used on resources created declaratively by either kubectl create --save-config or kubectl apply. The missing annotation will be patched automatically.
        configmap/c configured
        $ kubectl create configmap c --from-literal a=y --dry-run=client -o yaml | kubectl apply --server-side --force-conflicts -f -
        configmap/c serverside-applied
        $ kubectl get cm c -o 'jsonpath={.data}'
        {"a":"y","c":"d","e":"f","empty":""}
        $ kubectl delete cm c
        configmap "c" deleted…
    """,
    "secrets": """
        $ kubectl create secret generic s --from-literal a=b
        secret/s created
        $ kubectl get secret s
        NAME   TYPE     DATA   AGE
        s      Opaque   1      …
        $ kubectl get secret s -o 'jsonpath={.data.a}' | base64 -d
        b
        $ kubectl patch secret s -p '{"stringData":{"c":"d"}}'
        secret/s patched
        $ kubectl get secret s -o 'jsonpath={.data.a} {.data.c}'
        Yg== ZA==
        $ kubectl patch secret s -p '{"type":"other"}'
        The Secret "s" is invalid: type: Invalid value: "other": field is immutable
        [1]
    """,
    "services": """
        $ kubectl create service clusterip web --tcp 80:8080
        service/web created
        $ kubectl get svc
        NAME   TYPE        CLUSTER-IP…
        web    ClusterIP   10.0.0.…
        $ kubectl patch svc web -p '{"spec":{"ports":[{"port":81,"name":"b"},{"port":80,"name":"a"}]}}'
        service/web patched
        $ kubectl get svc web -o 'jsonpath={.spec.ports[*].port} {.spec.ports[*].targetPort}'
        81 80 81 8080
        $ kubectl cluster-info | head -1
        …Kubernetes control plane…http://127.0.0.1:…
    """,
    "service accounts": """
        $ kubectl create serviceaccount robot
        serviceaccount/robot created
        $ kubectl create token robot --duration 1h
        ey….….…
        $ kubectl get sa robot -o name
        serviceaccount/robot
    """,
    "authorization": """
        $ kubectl auth can-i create widgets
        yes
        $ kubectl auth can-i get configmaps --subresource status -n @ns
        yes
        $ kubectl auth can-i --list
        Resources   Non-Resource URLs   Resource Names   Verbs
        *.*         []                  []               [*]
                    [*]                 []               [*]
        $ kubectl auth whoami -o 'jsonpath={.status.userInfo.username}'
        system:anonymous
    """,
    "several kinds from one file": """
        $ kubectl create configmap c --from-literal a=b --dry-run=client -o yaml >all.yaml
        $ printf -- '---\\napiVersion: v1\\nkind: List\\nitems:\\n- {apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 1}}\\n' >>all.yaml
        $ kubectl apply -f all.yaml
        configmap/c created
        widget.example.com/w created
        $ kubectl diff -f all.yaml
        $ kubectl get -f all.yaml -o name
        configmap/c
        widget.example.com/w
        $ kubectl delete -f all.yaml
        configmap "c" deleted…
        widget.example.com "w" deleted…
    """,
    "kustomize": """
        $ printf 'resources: [w.yaml]\\nnamePrefix: my-\\nconfigMapGenerator: [{name: c, literals: [a=b]}]\\n' >kustomization.yaml
        $ printf '{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {}}' >w.yaml
        $ kubectl apply -k .
        configmap/my-c-… created
        widget.example.com/my-w created
        $ kubectl delete -k .
        configmap "my-c-…" deleted…
        widget.example.com "my-w" deleted…
    """,
    "kinds that are not served": """
        $ kubectl get podmetrics
        error: the server doesn't have a resource type "podmetrics"
        [1]
    """,
    "tables of workloads": """
        $ kubectl create deployment d --image i
        deployment.apps/d created
        $ kubectl get deployment d
        NAME   READY   UP-TO-DATE   AVAILABLE   AGE
        d      0/1     0            0           …
        $ kubectl get deployment d -o wide
        NAME   READY   UP-TO-DATE   AVAILABLE   AGE…CONTAINERS   IMAGES   SELECTOR
        d      0/1     0            0           …i            i        app=d
        $ kubectl create job j --image i
        job.batch/j created
        $ kubectl get jobs
        NAME   STATUS    COMPLETIONS   DURATION   AGE
        j      Running   0/1                      …
        $ kubectl create cronjob c --image i --schedule '0 3 * * *'
        cronjob.batch/c created
        $ kubectl get cj
        NAME   SCHEDULE    TIMEZONE   SUSPEND   ACTIVE   LAST SCHEDULE   AGE
        c      0 3 * * *   <none>     False     0        <none>          …
        $ printf -- '---\\n{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {serviceName: s, replicas: 2, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}' | kubectl create -f -
        statefulset.apps/s created
        $ kubectl get sts
        NAME   READY   AGE
        s      0/2     …
        $ printf -- '---\\n{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: ds}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {nodeSelector: {os: linux}, containers: [{name: c, image: i}]}}}}' | kubectl create -f -
        daemonset.apps/ds created
        $ kubectl get ds
        NAME   DESIRED   CURRENT   READY   UP-TO-DATE   AVAILABLE   NODE SELECTOR   AGE
        ds     0         0         0       0            0           os=linux        …
        $ kubectl create pdb p --min-available 1 --selector a=b
        poddisruptionbudget.policy/p created
        $ kubectl get pdb
        NAME   MIN AVAILABLE   MAX UNAVAILABLE   ALLOWED DISRUPTIONS   AGE
        p      1               N/A               0                     …
    """,
    "tables of pods": """
        $ kubectl run p --image i --restart Never
        pod/p created
        $ kubectl get pods
        NAME   READY   STATUS    RESTARTS   AGE
        p      0/1     Pending   0          …
        $ kubectl patch pod p --subresource status --type merge -p '{"status":{"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}]}}'
        pod/p patched
        $ kubectl get pods -o wide
        NAME   READY   STATUS    RESTARTS   AGE…IP         NODE     NOMINATED NODE   READINESS GATES
        p      0/1     Running   0          …10.0.0.1   <none>   <none>           <none>
        $ kubectl get pods --field-selector status.phase=Running,spec.nodeName= -o name
        pod/p
        $ kubectl get pods --field-selector status.phase!=Running
        No resources found in @ns namespace.
        $ kubectl get pods --field-selector spec.volumes=x
        …field label not supported: spec.volumes
        [1]
    """,
    "tables of other kinds": """
        $ kubectl create ingress i --class c --rule 'a.example.com/=web:80'
        ingress.networking.k8s.io/i created
        $ kubectl get ing
        NAME   CLASS   HOSTS           ADDRESS   PORTS   AGE
        i      c       a.example.com             80      …
        $ kubectl create quota q --hard pods=3
        resourcequota/q created
        $ kubectl get quota
        NAME   …REQUEST …LIMIT…
        q      …
        $ kubectl create role r --verb get --resource pods
        role.rbac.authorization.k8s.io/r created
        $ kubectl get roles
        NAME   CREATED AT
        r      20…Z
        $ kubectl create rolebinding rb --role r --user u --serviceaccount @ns:robot
        rolebinding.rbac.authorization.k8s.io/rb created
        $ kubectl get rolebindings -o wide
        NAME   ROLE     AGE…USERS   GROUPS   SERVICEACCOUNTS
        rb     Role/r   …u                @ns/robot
        $ printf -- '---\\n{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: fast}}' | kubectl create -f -
        persistentvolumeclaim/c created
        $ kubectl get pvc
        NAME   STATUS    VOLUME   CAPACITY   ACCESS MODES   STORAGECLASS   VOLUMEATTRIBUTESCLASS   AGE
        c      Pending                                      fast           <unset>                 …
        $ printf -- '---\\n{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: np}, spec: {podSelector: {matchLabels: {a: b}}}}' | kubectl create -f -
        networkpolicy.networking.k8s.io/np created
        $ kubectl get netpol
        NAME   POD-SELECTOR   AGE
        np     a=b            …
        $ printf -- '---\\n{apiVersion: v1, kind: Node, metadata: {name: @ns-n, labels: {node-role.kubernetes.io/worker: ""}}, spec: {unschedulable: true}}' | kubectl create -f -
        node/@ns-n created
        $ kubectl get node @ns-n --no-headers
        @ns-n…Unknown,SchedulingDisabled   worker…
        $ kubectl get nodes --field-selector metadata.namespace=x
        …field label not supported: metadata.namespace
        [1]
        $ kubectl delete node @ns-n
        node "@ns-n" deleted
        $ kubectl get componentstatuses
        Warning: v1 ComponentStatus is deprecated in v1.19+
        No resources found
    """,
    "explanations": """
        $ kubectl explain deployment.spec.strategy
        GROUP:      apps
        KIND:       Deployment
        VERSION:    v1
        …
        FIELD: strategy <DeploymentStrategy>
        …
          rollingUpdate	<RollingUpdateDeployment>
            The limits of a rolling update. Only with type RollingUpdate.
        …
          type	<string>
          enum: Recreate, RollingUpdate
            RollingUpdate replaces pods bit by bit; Recreate removes all of them first.
            Default: RollingUpdate.
        …
        $ kubectl explain pod.spec.restartPolicy
        …
        FIELD: restartPolicy <string>
        ENUM:
            Always
            Never
            OnFailure
        …
    """,
    "workloads are stored": """
        $ kubectl create deployment d --image i
        deployment.apps/d created
        $ kubectl scale deployment d --replicas 3
        deployment.apps/d scaled
        $ kubectl get deployment d -o jsonpath={.spec.replicas},{.spec.strategy.type},{.metadata.generation}
        3,RollingUpdate,2
        $ kubectl get pods
        No resources found in … namespace.
    """,
    "deployments": """
        $ printf '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"app":"d"}},"template":{"metadata":{"labels":{"app":"d"}},"spec":{"containers":[{"name":"i","image":"i"}]}}}}' >d.yaml
        $ kubectl apply -f d.yaml
        deployment.apps/d created
        $ kubectl apply -f d.yaml
        deployment.apps/d unchanged
        $ kubectl get deployment d -o jsonpath={.metadata.generation}
        1
        $ kubectl set image deployment/d i=i:2
        deployment.apps/d image updated
        $ kubectl rollout restart deployment d
        deployment.apps/d restarted
        $ kubectl get deployment d -o jsonpath={.metadata.generation}
        3
        $ kubectl patch deployment d --type merge -p '{"spec":{"strategy":{"type":"Recreate"}}}'
        The Deployment "d" is invalid: spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'
        [1]
        $ kubectl patch deployment d --type merge -p '{"spec":{"selector":{"matchLabels":{"app":"e"}}}}'
        The Deployment "d" is invalid:…
        * spec.template.metadata.labels: Invalid value: {"app":"d"}: `selector` does not match template `labels`
        * spec.selector: Invalid value: {"matchLabels":{"app":"e"}}: field is immutable
        [1]
    """,
    "jobs": """
        $ kubectl create job j --image i -- echo
        job.batch/j created
        $ kubectl get job j -o jsonpath={.spec.template.metadata.labels.job-name},{.spec.completions}
        j,1
        $ kubectl create cronjob c --image i --schedule '*/5 * * * *' -- echo
        cronjob.batch/c created
        $ kubectl create job k --from cronjob/c
        job.batch/k created
        $ kubectl create cronjob d --image i --schedule 'every day' -- echo
        error: failed to create cronjob: CronJob.batch "d" is invalid: spec.schedule: Invalid value: "every day": expected exactly 5 fields, found 2: [every day]
        [1]
    """,
    "pods": """
        $ kubectl run p --image i --port 80
        pod/p created
        $ kubectl get pod p -o jsonpath={.status.phase},{.status.qosClass},{.spec.restartPolicy}
        Pending,BestEffort,Always
        $ kubectl debug p --image b --profile general -c e
        $ kubectl get pod p -o jsonpath={.spec.ephemeralContainers[0].name},{.metadata.generation}
        e,2
        $ kubectl label pod p a=b
        pod/p labeled
        $ kubectl annotate pod p a=b
        pod/p annotated
        $ kubectl run P --image i 2>&1 | cut -d: -f1-2
        The Pod "P" is invalid:…
        * metadata.name: Invalid value
        * spec.containers[0].name: Invalid value
    """,
    "connections to pods": """
        $ printf 'apiVersion: v1\\nkind: Pod\\nmetadata: {name: p}\\nspec: {containers: [{name: a, image: i}, {name: b, image: i}]}\\n' >p.yaml
        $ kubectl create -f p.yaml
        pod/p created
        $ kubectl logs p -c b
        $ kubectl exec p -c a -- ls
        …pod p does not have a host assigned
        [1]
        $ kubectl exec p -c x -- ls
        …container x is not valid for pod p…
        [1]
        $ kubectl create -f - <<E
        > {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "@ns-n"}}
        > E
        node/@ns-n created
        $ kubectl patch node @ns-n --subresource status -p '{"status":{"addresses":[{"type":"InternalIP","address":"127.0.0.1"}]}}'
        node/@ns-n patched
        $ printf '{"apiVersion":"v1","kind":"Binding","metadata":{"name":"p"},"target":{"kind":"Node","name":"@ns-n"}}' | kubectl create --raw /api/v1/namespaces/@ns/pods/p/binding -f -
        {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}
        $ kubectl logs p -c b
        Error from server (InternalError): Internal error occurred: error dialing backend: there is no kubelet: pods are stored, not run
        [1]
        $ kubectl exec p -c a -- ls
        …error dialing backend: there is no kubelet: pods are stored, not run
        [1]
        $ kubectl patch pod p --subresource status -p '{"status":{"phase":"Running"}}'
        pod/p patched
        $ kubectl port-forward p 0:80
        …there is no kubelet: pods are stored, not run
        [1]
        $ kubectl debug p --image i -c d --profile general --quiet
        $ kubectl get pod p -o 'jsonpath={.spec.ephemeralContainers[*].name}'
        d
        $ kubectl delete pod p --wait=false
        pod "p" deleted…
        $ kubectl get pod p -o 'jsonpath={.metadata.deletionGracePeriodSeconds}'
        30
        $ kubectl delete pod p --now --wait=false
        pod "p" deleted…
        $ kubectl get pod p -o 'jsonpath={.metadata.deletionGracePeriodSeconds}'
        1
        $ kubectl delete pod p --grace-period 0 --force
        Warning: …
        pod "p" force deleted…
        $ kubectl delete node @ns-n
        node "@ns-n" deleted
    """,
    "nodes are drained": """
        $ printf 'apiVersion: v1\\nkind: Node\\nmetadata: {name: @ns-n}\\n---\\n{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {app: a}}, spec: {nodeName: @ns-n, terminationGracePeriodSeconds: 0, containers: [{name: c, image: i}]}}\\n---\\n{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b}, spec: {minAvailable: 1, selector: {matchLabels: {app: a}}}}' >all.yaml
        $ kubectl create -f all.yaml
        node/@ns-n created
        pod/p created
        poddisruptionbudget.policy/b created
        $ kubectl cordon @ns-n
        node/@ns-n cordoned
        $ kubectl patch pod p --subresource status -p '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}'
        pod/p patched
        $ kubectl patch pdb b --subresource status --type merge -p '{"status":{"observedGeneration":1,"disruptionsAllowed":0,"currentHealthy":1,"desiredHealthy":1,"expectedPods":1}}'
        poddisruptionbudget.policy/b patched
        $ kubectl drain @ns-n --force --timeout 1s
        …
        error when evicting pods/"p" -n "@ns" (will retry after 5s): Cannot evict pod as it would violate the pod's disruption budget.
        …
        [1]
        $ kubectl patch pdb b --subresource status --type merge -p '{"status":{"disruptionsAllowed":1}}'
        poddisruptionbudget.policy/b patched
        $ kubectl drain @ns-n --force
        …
        evicting pod @ns/p
        pod/p evicted
        node/@ns-n drained
        $ kubectl get pods
        No resources found in @ns namespace.
        $ kubectl get pdb b -o 'jsonpath={.status.disruptionsAllowed}'
        0
        $ kubectl delete node @ns-n
        node "@ns-n" deleted
    """,
}


@pytest.mark.parametrize("text", BUILT_IN.values(), ids=BUILT_IN)
def test_the_session_prints_the_expected_output(session: Session, text: str) -> None:
    session(text)
