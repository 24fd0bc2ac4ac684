"""Does a stored object still validate, and what of it can nobody see any more?

When a CRD's schema changes, what is stored stays as it is. A read prunes it and fills in defaults, so what the schema no
longer describes is hidden until the next write drops it for good; and nothing validates it before it is written, when
ratcheting may excuse it. The question is answered as if the object, as it is read, were new: by the version that it is
stored in, or by the storage version if that one is gone.
"""

from __future__ import annotations

from typing import NamedTuple

from apiserver.api.field import FieldError, Path
from apiserver.api.types import Object
from apiserver.registry import pipeline
from apiserver.registry.custom import shape
from apiserver.registry.pipeline import Draft
from apiserver.registry.resource import Resource, Versions


class Verdict(NamedTuple):
    """Nothing in `errors`: it validates. `hidden` are the paths that pruning takes out when it is read."""

    resource: Resource
    errors: list[FieldError]
    hidden: list[Path]


def judge(stored: Object, versions: Versions) -> Verdict:
    """Judge a stored custom resource, which is read in place."""
    resource = versions.of(stored)
    stored["apiVersion"] = resource.api_version
    hidden = shape(resource, stored, drop_malformed=True)
    pipeline.read(resource, stored)
    draft = Draft(resource, "CREATE", stored)
    resource.behaviour.validate(draft)
    return Verdict(resource, draft.errors, hidden)
