"""kubectl get, describe, explain and other commands that read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Session = Callable[..., None]

A_AND_B = """
    apiVersion: example.com/v1
    kind: Widget
    metadata: {name: a, namespace: @ns, labels: {tier: front}, annotations: {note: hello}}
    spec: {size: 2, colour: red, parts: [{name: x, count: 1}]}
    status: {size: 3}
    ---
    apiVersion: example.com/v1
    kind: Widget
    metadata: {name: b, namespace: @ns, labels: {tier: back}}
    spec: {colour: green}
"""


READING: dict[str, str] = {
    "a table": """
        $ kubectl get widgets
        NAME   SIZE
        a      2
        b      1
        $ kubectl get wd b --no-headers
        b     1
        $ kubectl get wd -o wide
        NAME   SIZE   COLOUR
        a      2      red
        b      1      green
        $ kubectl get wd --show-labels -L tier --show-kind
        NAME                   SIZE   TIER    LABELS
        widget.example.com/a   2      front   tier=front
        widget.example.com/b   1      back    tier=back
        $ kubectl get wd --sort-by .spec.size
        NAME   SIZE
        b      1
        a      2
    """,
    "all namespaces": """
        $ kubectl get wd -A --field-selector metadata.namespace=@ns
        NAMESPACE   NAME   SIZE
        @ns…a      2
        @ns…b      1
    """,
    "several kinds, and categories": """
        $ kubectl get wd/a ns/default
        NAME                   SIZE
        widget.example.com/a   2

        NAME                STATUS   AGE
        namespace/default   Active   …
        $ kubectl get all
        NAME                   SIZE
        widget.example.com/a   2
        widget.example.com/b   1
        $ kubectl get tools -o name
        widget.example.com/a
        widget.example.com/b
    """,
    "as YAML": """
        $ kubectl get wd a -o yaml
        apiVersion: example.com/v1
        kind: Widget
        metadata:
          annotations:
            note: hello
          creationTimestamp: "…Z"
          generation: 1
          labels:
            tier: front
          name: a
          namespace: @ns
          resourceVersion: "…"
          uid: …-…-…-…-…
        spec:
          colour: red
          parts:
          - count: 1
            name: x
          size: 2
    """,
    "as JSON with managed fields": """
        $ kubectl get wd b -o json --show-managed-fields
        {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {
        …
                "managedFields": [
                    {
                        "apiVersion": "example.com/v1",
                        "fieldsType": "FieldsV1",
                        "fieldsV1": {
                            "f:metadata": {
        …
                        "manager": "noxu",
                        "operation": "Update",
                        "time": "…Z"
                    }
                ],
        …
            "spec": {
                "colour": "green",
                "size": 1
            }
        }
    """,
    "other output formats": """
        $ kubectl get wd -o name
        widget.example.com/a
        widget.example.com/b
        $ kubectl get wd -o custom-columns=N:.metadata.name,S:.spec.size,P:.spec.parts[0].name
        N     S     P
        a     2     x
        b     1     <none>
        $ kubectl get wd -o 'jsonpath={range .items[*]}{.metadata.name}={.spec.size};{end}'
        a=2;b=1;
        $ kubectl get wd -o go-template='{{range .items}}{{.spec.colour}} {{end}}'
        red green
    """,
    "label selectors": """
        $ kubectl get wd -l tier=front -o name
        widget.example.com/a
        $ kubectl get wd -l 'tier in (back, none),!other' -o name
        widget.example.com/b
        $ kubectl get wd -l tier=none
        No resources found in @ns namespace.
    """,
    "field selectors": """
        $ kubectl get wd --field-selector spec.colour=green -o name
        widget.example.com/b
        $ kubectl get wd --field-selector metadata.name!=b -o name
        widget.example.com/a
        $ kubectl get wd --field-selector spec.size=2
        Error from server (BadRequest): Unable to find "example.com/v1, Resource=widgets" that match label selector "", field selector "spec.size=2": field label not supported: spec.size
        [1]
    """,
    "pages": """
        $ kubectl get wd --chunk-size 1 -o name
        widget.example.com/a
        widget.example.com/b
    """,
    "subresources": """
        $ kubectl patch wd a --subresource status --type merge -p '{"status":{"size":3,"selector":"x=y"}}'
        widget.example.com/a patched
        $ kubectl get wd a --subresource scale
        NAME   DESIRED   AVAILABLE   AGE
        a      2         3           …
        $ kubectl get wd a --subresource status -o 'jsonpath={.status}'
        {"selector":"x=y","size":3}
    """,
    "objects, kinds and namespaces that do not exist": """
        $ kubectl get wd c
        Error from server (NotFound): widgets.example.com "c" not found
        [1]
        $ kubectl get wd c --ignore-not-found
        $ kubectl get gears
        error: the server doesn't have a resource type "gears"
        [1]
        $ kubectl get wd a -n nowhere
        Error from server (NotFound): namespaces "nowhere" not found
        [1]
    """,
    "watch": """
        $ kubectl get wd -w >seen &
        > until grep -qs ^b seen; do sleep 0.05; done; kill $!; cat seen
        NAME   SIZE
        a      2
        b      1
        $ kubectl get wd --watch-only --output-watch-events >seen &
        > n=0; until grep -qs MODIFIED seen; do n=$((n+1)); kubectl annotate wd a x=$n --overwrite >/dev/null; done
        > kubectl delete wd b >/dev/null; until grep -qs DELETED seen; do sleep 0.05; done; kill $!; uniq seen
        EVENT      NAME   SIZE
        MODIFIED   a      2
        DELETED    b      1
    """,
    "describe": """
        $ kubectl describe wd a
        Name:         a
        Namespace:    @ns
        Labels:       tier=front
        Annotations:  note: hello
        API Version:  example.com/v1
        Kind:         Widget
        Metadata:
          Creation Timestamp:  …Z
          Generation:          1
          Resource Version:    …
          UID:                 …
        Spec:
          Colour:  red
          Parts:
            Count:  1
            Name:   x
          Size:     2
        Events:     <none>
        $ kubectl describe crd widgets.example.com
        Name:         widgets.example.com
        …
        Status:
        …
          Conditions:
            Last Transition Time:  …Z
            Message:               no conflicts found
            Reason:                NoConflicts
            Status:                True
            Type:                  NamesAccepted
            Last Transition Time:  …Z
            Message:               the initial names have been accepted
            Reason:                InitialNamesAccepted
            Status:                True
            Type:                  Established
          Stored Versions:
            v1
        Events:  <none>
    """,
    "describe lists events": """
        $ kubectl create -f - <<END
        > apiVersion: v1
        > kind: Event
        > metadata: {name: a.1, namespace: @ns}
        > involvedObject: {apiVersion: example.com/v1, kind: Widget, name: a, namespace: @ns, uid: $(kubectl get wd a -o 'jsonpath={.metadata.uid}')}
        > type: Normal
        > reason: Grown
        > message: it grew
        > count: 2
        > source: {component: gardener}
        > firstTimestamp: 2026-01-01T00:00:00Z
        > lastTimestamp: 2026-01-01T00:00:00Z
        > END
        event/a.1 created
        $ kubectl describe wd a
        …
        Events:
          Type    Reason  Age …From      Message
          ----    ------  ----…----      -------
          Normal  Grown   …gardener  it grew
        $ kubectl get events
        LAST SEEN   TYPE     REASON   OBJECT     MESSAGE
        …Normal   Grown    widget/a   it grew
        $ kubectl events --for widget.example.com/a
        LAST SEEN…TYPE     REASON   OBJECT     MESSAGE
        …Normal   Grown    Widget/a   it grew
        $ kubectl events --for widget.example.com/b
        No events found in @ns namespace.
    """,
    "explain": """
        $ kubectl explain widget
        GROUP:      example.com
        KIND:       Widget
        VERSION:    v1

        DESCRIPTION:
            A widget does something.

        FIELDS:
          apiVersion	<string>
        …
          spec	<Object>
            The desired state.

          status	<Object>
            <no description>
        $ kubectl explain wd.spec
        …
        FIELD: spec <Object>


        DESCRIPTION:
            The desired state.

        FIELDS:
          colour	<string>
          enum: red, green
            <no description>

          parts	<[]Object>
            <no description>

          size	<integer> -required-
            How large.
        $ kubectl explain wd.spec.parts.name
        …
        FIELD: name <string>
        …
        $ kubectl explain wd --recursive
        …
          metadata	<ObjectMeta>
        …
            labels	<map[string]string>
        …
          spec	<Object>
            colour	<string>
            enum: red, green
            parts	<[]Object>
              count	<integer>
              name	<string> -required-
            size	<integer> -required-
        …
        $ kubectl explain wd.spec.weight
        …
        error: field "weight" does not exist
        [1]
        $ kubectl explain wd.spec --api-version example.com/v1 --output plaintext-openapiv2
        KIND:     Widget
        VERSION:  example.com/v1

        RESOURCE: spec <Object>

        DESCRIPTION:
             The desired state.

        FIELDS:
           colour	<string>

           parts	<[]Object>

           size	<integer> -required-
             How large.
        $ kubectl explain crd.spec.names.plural
        …
        FIELD: plural <string>
        …
        $ kubectl explain configmap.data
        …
        FIELD: data <map[string]string>
        …
    """,
    "api-resources and api-versions": """
        $ kubectl api-resources --api-group example.com
        NAME      SHORTNAMES   APIVERSION       NAMESPACED   KIND
        widgets   wd           example.com/v1   true         Widget
        $ kubectl api-resources --categories tools -o wide
        NAME      SHORTNAMES   APIVERSION       NAMESPACED   KIND     VERBS                                                        CATEGORIES
        widgets   wd           example.com/v1   true         Widget   delete,deletecollection,get,list,patch,create,update,watch   all,tools
        $ kubectl api-resources --verbs list --namespaced -o name
        configmaps
        …
        widgets.example.com
        …
        $ kubectl api-versions
        …
        apiextensions.k8s.io/v1
        …
        example.com/v1
        …
        v1
    """,
    "version, health and raw paths": """
        $ kubectl version
        Client Version: v1.…
        …
        Server Version: v1.…
        …
        $ kubectl get --raw /healthz
        ok
        $ kubectl get --raw '/readyz?verbose'
        [+]ping ok
        …
        readyz check passed
        $ kubectl get --raw /apis/example.com
        {"kind":"APIGroup","apiVersion":"v1","name":"example.com",…}
    """,
}


@pytest.mark.parametrize("text", READING.values(), ids=READING)
def test_the_session_prints_the_expected_output(session: Session, text: str) -> None:
    session(text, A_AND_B)
