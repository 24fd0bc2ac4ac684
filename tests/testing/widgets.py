"""The kind Widget, for tests of the handle."""

from __future__ import annotations

from typing import Any

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, singular: widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations: [{rule: "!has(self.low) || self.low <= self.size"}]
            properties:
              size: {type: integer, default: 1, maximum: 5}
              low: {type: integer}
          status:
            type: object
            properties:
              size: {type: integer}
              ready: {type: boolean}
              conditions:
                type: array
                items: {type: object, properties: {type: {type: string}, status: {type: string}}}
  - name: v1alpha1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def size(value: dict[str, Any]) -> Any:
    return value["spec"]["size"]
