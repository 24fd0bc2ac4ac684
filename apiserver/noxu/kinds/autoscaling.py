"""autoscaling/v1: Scale, the body of every /scale subresource."""

from __future__ import annotations

from typing import Final

from noxu.kinds.facts import struct

SCALE: Final = struct("autoscaling/v1.Scale")
