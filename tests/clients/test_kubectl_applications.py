"""kubectl's commands that create and change workloads, roles, policies and nodes, and manifests of applications.

No controller runs the workloads, so each session shows what an API server alone answers.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

Session = Callable[..., None]

COMMANDS: dict[str, str] = {
    "every kind that has a generator is created": """
        $ kubectl create deployment web --image nginx --replicas 2 --port 80
        deployment.apps/web created
        $ kubectl create job once --image busybox -- echo hi
        job.batch/once created
        $ kubectl create cronjob often --image busybox --schedule '*/5 * * * *' -- echo hi
        cronjob.batch/often created
        $ kubectl create job now --from cronjob/often
        job.batch/now created
        $ kubectl get job now -o 'jsonpath={.metadata.ownerReferences[0].name} {.spec.template.spec.containers[0].command}'
        often ["echo","hi"]
        $ kubectl create quota small --hard cpu=1,memory=1G,pods=2
        resourcequota/small created
        $ kubectl create ingress front --class nginx --rule 'example.com/*=web:80,tls=certificate'
        ingress.networking.k8s.io/front created
        $ kubectl create pdb least --selector app=web --min-available 1
        poddisruptionbudget.policy/least created
        $ kubectl create pdb most --selector app=web --max-unavailable 20%
        poddisruptionbudget.policy/most created
        $ kubectl create priorityclass @ns --value 1000 --description important
        priorityclass.scheduling.k8s.io/@ns created
        $ kubectl delete priorityclass @ns
        priorityclass.scheduling.k8s.io "@ns" deleted
    """,
    "services of every type": """
        $ kubectl create service nodeport ports --tcp 80:8080
        service/ports created
        $ kubectl create service loadbalancer balanced --tcp 80:8080
        service/balanced created
        $ kubectl create service externalname outside --external-name example.com
        service/outside created
        $ kubectl create service clusterip headless --clusterip None
        service/headless created
        $ kubectl get svc -o 'jsonpath={range .items[*]}{.metadata.name} {.spec.type} {.spec.ports[*].targetPort}{"\\n"}{end}'
        balanced LoadBalancer 8080
        headless ClusterIP
        outside ExternalName
        ports NodePort 8080
        $ kubectl create deployment web --image nginx --port 80
        deployment.apps/web created
        $ kubectl expose deployment web --target-port 8080
        service/web exposed
        $ kubectl get svc web -o 'jsonpath={.spec.selector} {.spec.ports}'
        {"app":"web"} [{"port":80,"protocol":"TCP","targetPort":8080}]
        $ kubectl set selector service web tier=front
        service/web selector updated
        $ kubectl get svc web -o 'jsonpath={.spec.selector}'
        {"tier":"front"}
    """,
    "roles and their bindings": """
        $ kubectl create role reader --verb get,list --resource pods,deployments.apps
        role.rbac.authorization.k8s.io/reader created
        $ kubectl create role other --verb use --resource gadgets
        error: can not perform 'use' on 'gadgets' in group ''
        [1]
        $ kubectl create rolebinding reader --role reader --user alice --serviceaccount @ns:robot
        rolebinding.rbac.authorization.k8s.io/reader created
        $ kubectl set subject rolebinding reader --group staff
        rolebinding.rbac.authorization.k8s.io/reader subjects updated
        $ kubectl describe rolebinding reader
        Name:         reader
        …
        Role:
          Kind:  Role
          Name:  reader
        Subjects:
          Kind            Name   Namespace
          ----            ----   ---------
          User            alice
          ServiceAccount  robot  @ns
          Group           staff
        $ kubectl create clusterrole @ns --verb get --resource nodes --non-resource-url /healthz
        clusterrole.rbac.authorization.k8s.io/@ns created
        $ kubectl create clusterrole @ns --verb get --resource nodes
        …(AlreadyExists): clusterroles.rbac.authorization.k8s.io "@ns" already exists
        [1]
        $ kubectl create clusterrolebinding @ns --clusterrole @ns --group staff
        clusterrolebinding.rbac.authorization.k8s.io/@ns created
        $ kubectl describe clusterrole @ns
        Name:         @ns
        Labels:       <none>
        Annotations:  <none>
        PolicyRule:
          Resources  Non-Resource URLs  Resource Names  Verbs
          ---------  -----------------  --------------  -----
                     [/healthz]         []              [get]
          nodes      []                 []              [get]
        $ kubectl delete clusterrole,clusterrolebinding @ns
        clusterrole.rbac.authorization.k8s.io "@ns" deleted
        clusterrolebinding.rbac.authorization.k8s.io "@ns" deleted
    """,
    "secrets for TLS and registries": """
        $ openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out certificate.pem -subj /CN=web 2>/dev/null
        $ kubectl create secret tls certificate --cert certificate.pem --key key.pem
        secret/certificate created
        $ kubectl create secret docker-registry registry --docker-username alice --docker-password secret
        secret/registry created
        $ kubectl get secret certificate registry -o 'jsonpath={.items[*].type}'
        kubernetes.io/tls kubernetes.io/dockerconfigjson
        $ kubectl create secret generic wrong --type kubernetes.io/tls --from-literal tls.crt=x
        error: failed to create secret Secret "wrong" is invalid: data[tls.key]: Required value
        [1]
    """,
    "rollouts without a controller": """
        $ kubectl create deployment web --image nginx
        deployment.apps/web created
        $ kubectl rollout status deployment web --watch=false
        Waiting for deployment spec update to be observed...
        $ kubectl rollout history deployment web
        deployment.apps/web
        No rollout history found.
        $ kubectl rollout restart deployment web
        deployment.apps/web restarted
        $ kubectl rollout undo deployment web
        error: no rollout history found for deployment "web"
        [1]
        $ kubectl rollout pause deployment web
        deployment.apps/web paused
        $ kubectl rollout pause deployment web
        error: deployments.apps "web" is already paused
        [1]
        $ kubectl rollout resume deployment web
        deployment.apps/web resumed
        $ kubectl get deployment web -o 'jsonpath={.metadata.generation} {.spec.paused}'
        4
    """,
    "the template of a deployment is changed": """
        $ kubectl create deployment web --image nginx:1
        deployment.apps/web created
        $ kubectl set image deployment/web nginx=nginx:2
        deployment.apps/web image updated
        $ kubectl set env deployment/web COLOUR=red
        deployment.apps/web env updated
        $ kubectl set resources deployment web --limits cpu=500m,memory=1Gi
        deployment.apps/web resource requirements updated
        $ kubectl set serviceaccount deployment web robot
        deployment.apps/web serviceaccount updated
        $ kubectl describe deployment web
        Name:                   web
        Namespace:              @ns
        CreationTimestamp:      …
        Labels:                 app=web
        Annotations:            <none>
        Selector:               app=web
        Replicas:               1 desired | 0 updated | 0 total | 0 available | 0 unavailable
        StrategyType:           RollingUpdate
        MinReadySeconds:        0
        RollingUpdateStrategy:  25% max unavailable, 25% max surge
        Pod Template:
          Labels:           app=web
          Service Account:  robot
          Containers:
           nginx:
            Image:      nginx:2
            Port:       <none>
            Host Port:  <none>
            Limits:
              cpu:     500m
              memory:  1Gi
            Environment:
              COLOUR:      red
            Mounts:        <none>
          Volumes:         <none>
          Node-Selectors:  <none>
          Tolerations:     <none>
        Events:            <none>
    """,
    # kubectl 1.32 sends autoscaling/v1, 1.37 autoscaling/v2.
    "a deployment is scaled automatically": """
        $ kubectl create deployment web --image nginx
        deployment.apps/web created
        $ kubectl autoscale deployment web --min 1 --max 5 --cpu-percent 80 2>/dev/null
        horizontalpodautoscaler.autoscaling/web autoscaled
        $ kubectl get horizontalpodautoscalers.v1.autoscaling web -o 'jsonpath={.spec.maxReplicas} {.spec.targetCPUUtilizationPercentage}'
        5 80
        $ kubectl get horizontalpodautoscalers.v2.autoscaling web -o 'jsonpath={.spec.scaleTargetRef.name} {.spec.metrics[0].resource.target}'
        web {"averageUtilization":80,"type":"Utilization"}
        $ kubectl get hpa web
        NAME   REFERENCE        TARGETS…MINPODS   MAXPODS   REPLICAS   AGE
        web    Deployment/web   …80%…1         5         0          …
    """,
    "nodes": """
        $ printf '{"apiVersion":"v1","kind":"Node","metadata":{"name":"@ns"}}' | kubectl create -f -
        node/@ns created
        $ kubectl cordon @ns
        node/@ns cordoned
        $ kubectl uncordon @ns
        node/@ns uncordoned
        $ kubectl taint nodes @ns dedicated=web:NoSchedule
        node/@ns tainted
        $ kubectl taint nodes @ns dedicated=web:NoSchedule
        error: node @ns already has dedicated taint(s) with same effect(s) and --overwrite is false
        [1]
        $ kubectl label node @ns node-role.kubernetes.io/worker=
        node/@ns labeled
        $ kubectl describe node @ns
        Name:               @ns
        Roles:              worker
        Labels:             node-role.kubernetes.io/worker=
        …
        Unschedulable:      false
        …
        $ kubectl get node @ns -o 'jsonpath={.spec.taints[?(@.key=="dedicated")].effect}'
        NoSchedule
        $ kubectl taint nodes @ns dedicated-
        node/@ns untainted
        $ kubectl drain @ns --ignore-daemonsets
        node/@ns cordoned
        node/@ns drained
        $ kubectl get node @ns -o 'jsonpath={.spec.unschedulable}'
        true
        $ kubectl delete node @ns
        node "@ns" deleted
    """,
    "pods": """
        $ kubectl run one --image nginx --labels app=web
        pod/one created
        $ kubectl run two --image nginx --expose --port 80 | sort
        pod/two created
        service/two created
        $ kubectl get pods,svc -o name
        pod/one
        pod/two
        service/two
        $ kubectl describe pod one
        Name:…one
        …
        Status:…Pending
        …
        QoS Class:…BestEffort
        …
        $ kubectl wait pod one --for 'jsonpath={.status.phase}=Pending'
        pod/one condition met
        $ kubectl top pod
        error: Metrics API not available
        [1]
    """,
    "everything of a namespace": """
        $ kubectl create deployment web --image nginx
        deployment.apps/web created
        $ kubectl create job once --image busybox
        job.batch/once created
        $ kubectl create service clusterip web --tcp 80
        service/web created
        $ kubectl create configmap c
        configmap/c created
        $ kubectl get all -o name
        service/web
        deployment.apps/web
        job.batch/once
        $ kubectl delete all --all
        service "web" deleted…
        deployment.apps "web" deleted…
        job.batch "once" deleted…
        $ kubectl get all
        No resources found in @ns namespace.
    """,
}

MANIFEST = """
    apiVersion: v1
    kind: ServiceAccount
    metadata: {name: app}
    ---
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: app}
    data: {key: value}
    ---
    apiVersion: v1
    kind: Secret
    metadata: {name: app}
    data: {password: c2VjcmV0}
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: Role
    metadata: {name: app}
    rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: RoleBinding
    metadata: {name: app}
    roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: app}
    subjects: [{kind: ServiceAccount, name: app, namespace: "@ns"}]
    ---
    apiVersion: v1
    kind: Service
    metadata: {name: app}
    spec: {selector: {app: app}, ports: [{port: 80, targetPort: 8080}]}
    ---
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: app}
    spec:
      selector: {matchLabels: {app: app}}
      template:
        metadata: {labels: {app: app}}
        spec:
          serviceAccountName: app
          containers:
          - name: app
            image: registry.example.com/app:1
            ports: [{containerPort: 8080}]
            env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
            resources: {requests: {cpu: 500m, memory: 64Mi}}
    ---
    apiVersion: policy/v1
    kind: PodDisruptionBudget
    metadata: {name: app}
    spec: {minAvailable: 1, selector: {matchLabels: {app: app}}}
    ---
    apiVersion: autoscaling/v2
    kind: HorizontalPodAutoscaler
    metadata: {name: app}
    spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: app}, maxReplicas: 3}
    ---
    apiVersion: networking.k8s.io/v1
    kind: Ingress
    metadata: {name: app}
    spec: {defaultBackend: {service: {name: app, port: {number: 80}}}}
    ---
    apiVersion: batch/v1
    kind: CronJob
    metadata: {name: app}
    spec:
      schedule: "0 3 * * *"
      jobTemplate:
        spec:
          template:
            spec: {restartPolicy: OnFailure, containers: [{name: app, image: "registry.example.com/app:1"}]}
"""

APPLY: dict[str, str] = {
    # The client compares a budget's selector as a whole, and therefore always sends a patch.
    "in the client": """
        $ kubectl apply -f app.yaml
        serviceaccount/app created
        configmap/app created
        secret/app created
        role.rbac.authorization.k8s.io/app created
        rolebinding.rbac.authorization.k8s.io/app created
        service/app created
        deployment.apps/app created
        poddisruptionbudget.policy/app created
        horizontalpodautoscaler.autoscaling/app created
        ingress.networking.k8s.io/app created
        cronjob.batch/app created
        $ kubectl get -f app.yaml -o 'jsonpath={.items[*].metadata.resourceVersion}' >before
        $ kubectl apply -f app.yaml | grep -v unchanged
        poddisruptionbudget.policy/app configured
        $ kubectl get -f app.yaml -o 'jsonpath={.items[*].metadata.resourceVersion}' | diff before -
        $ kubectl diff -f app.yaml
        $ sed -i 's/app:1/app:2/' app.yaml
        $ kubectl diff -f app.yaml | grep '^[-+] '
        -  generation: 1
        +  generation: 2
        -        image: registry.example.com/app:1
        +        image: registry.example.com/app:2
        -  generation: 1
        +  generation: 2
        -          - image: registry.example.com/app:1
        +          - image: registry.example.com/app:2
        $ kubectl apply -f app.yaml | grep -v unchanged
        deployment.apps/app configured
        poddisruptionbudget.policy/app configured
        cronjob.batch/app configured
        $ kubectl delete -f app.yaml | wc -l | tr -d ' '
        11
    """,
    "by the server": """
        $ kubectl apply --server-side -f app.yaml | grep -c serverside-applied
        11
        $ kubectl get -f app.yaml -o 'jsonpath={.items[*].metadata.resourceVersion}' >before
        $ kubectl apply --server-side -f app.yaml | grep -c serverside-applied
        11
        $ kubectl get -f app.yaml -o 'jsonpath={.items[*].metadata.resourceVersion}' | diff before -
        $ kubectl diff --server-side -f app.yaml
        $ kubectl scale deployment app --replicas 3
        deployment.apps/app scaled
        $ sed 's/app:1/app:2/' app.yaml | kubectl apply --server-side -f - --field-manager other 2>&1 | grep -e '^- ' -e conflict:
        - .spec.template.spec.containers[name="app"].image
        - .spec.template.spec.containers[name="app"].env[name="POD"].valueFrom.fieldRef
        Apply failed with 1 conflict: conflict with "kubectl": .spec.jobTemplate.spec.template.spec.containers[name="app"].image
        $ kubectl get deployment app -o 'jsonpath={.spec.replicas} {.spec.template.spec.containers[0].image}'
        3 registry.example.com/app:1
        $ kubectl delete -f app.yaml | wc -l | tr -d ' '
        11
    """,
    # The server compares fieldRef as a whole, and it has set its apiVersion: upstream has the same conflict.
    "first in the client, then by the server": """
        $ kubectl apply -f app.yaml | grep -c created
        11
        $ kubectl apply --server-side -f app.yaml 2>&1 | head -12 | grep -v serverside-applied
        …Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: .spec.template.spec.containers[name="app"].env[name="POD"].valueFrom.fieldRef
        …
        $ kubectl apply --server-side --force-conflicts -f app.yaml | grep -c serverside-applied
        11
        $ kubectl get deployment app --show-managed-fields -o 'jsonpath={.metadata.managedFields[*].manager}'
        kubectl-last-applied kubectl
    """,
}


@pytest.mark.parametrize("text", COMMANDS.values(), ids=COMMANDS)
def test_the_session_prints_the_expected_output(session: Session, text: str) -> None:
    session(text)


@pytest.mark.parametrize("text", APPLY.values(), ids=APPLY)
def test_a_manifest_of_eleven_kinds_is_applied(session: Session, text: str) -> None:
    session(text, app=MANIFEST)
