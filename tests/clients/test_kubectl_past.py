"""kubectl reads the past: `kubectl --server $URL/_noxu/at/REVISION get …`, with the definitions of then."""

from __future__ import annotations

from collections.abc import Callable

Session = Callable[..., None]

OBJECTS = """
    apiVersion: apiextensions.k8s.io/v1
    kind: CustomResourceDefinition
    metadata: {name: gadgets-@ns.@ns.example.com}
    spec:
      group: @ns.example.com
      scope: Namespaced
      names: {plural: gadgets-@ns, singular: gadget-@ns, kind: Gadget, shortNames: [gd-@ns]}
      versions:
      - name: v1
        served: true
        storage: true
        additionalPrinterColumns:
        - {name: Size, type: integer, jsonPath: .spec.size}
        - {name: Colour, type: string, jsonPath: .spec.colour, priority: 1}
        schema:
          openAPIV3Schema:
            description: A gadget of the past.
            type: object
            properties:
              spec: {type: object, properties: {size: {type: integer}, colour: {type: string, default: red}}}
    ---
    apiVersion: @ns.example.com/v1
    kind: Gadget
    metadata: {name: a, namespace: @ns}
    spec: {size: 2}
"""
PAST = """#!/bin/sh
exec kubectl --server "$(kubectl config view -o 'jsonpath={.clusters[0].cluster.server}')/_noxu/at/$(cat revision)" "$@"
"""
SESSION = """
    $ cp past.yaml past; chmod +x past; kubectl get gd-@ns a -o 'jsonpath={.metadata.resourceVersion}' > revision
    $ kubectl patch gd-@ns a --type merge -p '{"spec": {"size": 3, "colour": "blue"}}'
    gadget.@ns.example.com/a patched
    $ kubectl patch crd gadgets-@ns.@ns.example.com --type json -p '[
    >   {"op": "replace", "path": "/spec/names/shortNames", "value": ["gg-@ns"]},
    >   {"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/colour"},
    >   {"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/description", "value": "A gadget of today."},
    >   {"op": "remove", "path": "/spec/versions/0/additionalPrinterColumns/1"}]'
    customresourcedefinition.apiextensions.k8s.io/gadgets-@ns.@ns.example.com patched
    $ kubectl delete configmap kube-root-ca.crt --ignore-not-found > /dev/null
    $ kubectl get gadgets-@ns -o wide
    NAME   SIZE
    a      3
    $ ./past get gadgets-@ns -o wide
    NAME   SIZE   COLOUR
    a      2      red
    $ ./past get gd-@ns/a
    NAME   SIZE
    a      2
    $ ./past get gd-@ns a -o yaml
    apiVersion: @ns.example.com/v1
    kind: Gadget
    metadata:
      creationTimestamp: …
      generation: 1
      name: a
      namespace: @ns
      resourceVersion: …
      uid: …
    spec:
      colour: red
      size: 2
    $ ./past describe gd-@ns a
    Name:         a
    Namespace:    @ns
    …
    Spec:
      Colour:  red
      Size:    2
    Events:    <none>
    $ ./past explain gadgets-@ns | grep -A1 DESCRIPTION
    DESCRIPTION:
        A gadget of the past.
    $ ./past explain gadgets-@ns.spec.colour | grep FIELD
    FIELD: colour <string>
    $ ./past api-resources --api-group @ns.example.com
    NAME…SHORTNAMES…APIVERSION…NAMESPACED   KIND
    gadgets-@ns   gd-@ns…@ns.example.com/v1   true         Gadget
    $ ./past delete gd-@ns a
    Error from server (MethodNotAllowed): …the past does not change: /_noxu/at/ has no method DELETE, only GET and HEAD
    [1]
    $ ./past get gd-@ns --watch-only
    Error from server (MethodNotAllowed): nothing happens in the past: list …
    [1]
    $ kubectl delete crd gadgets-@ns.@ns.example.com
    customresourcedefinition.apiextensions.k8s.io "gadgets-@ns.@ns.example.com" deleted
    $ ./past get gd-@ns
    NAME   SIZE
    a      2
    $ kubectl get gadgets-@ns
    Error from server (NotFound): …
    [1]
"""


def test_kubectl_reads_the_past(session: Session) -> None:
    session(SESSION, OBJECTS, past=PAST)
