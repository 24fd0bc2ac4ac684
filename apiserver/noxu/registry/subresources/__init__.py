"""Subresources whose body is of another kind, and which act on the object instead of storing the body (rest.NamedCreater).

The body is decoded, defaulted and admitted like an object that is created. `ACTIONS` has what happens then, by the kind of
the body.
"""

from __future__ import annotations

from typing import Final

from noxu.registry.draft import Act
from noxu.registry.subresources import binding, eviction

ACTIONS: Final[dict[str, Act]] = {
    "Binding": Act(binding.check, binding.bind),
    "Eviction": Act(eviction.check, eviction.evict),
}
