"""What is known of definitions that were loaded before."""

from __future__ import annotations

from typing import NamedTuple

from noxu.crd.unchanged import Unchanged
from noxu.crd.valid_specs import ValidSpecs


class KnownDefinitions(NamedTuple):
    """The specs that are valid, and the replacements that change nothing. Both are added to."""

    valid_specs: ValidSpecs
    unchanged: Unchanged
