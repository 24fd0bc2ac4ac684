"""The JSON border: what comes off the wire and goes back onto it.

Objects stay plain dicts all the way through the pipeline; `Any` is used for JSON values and nowhere else.
Integers are int64, everything else numeric is a float (as upstream's sigs.k8s.io/json decodes them).
"""

from __future__ import annotations

from typing import Any, TypeAlias

Json: TypeAlias = Any
Object: TypeAlias = dict[str, Json]

MAX_INT64 = 2**63 - 1
MIN_INT64 = -(2**63)
