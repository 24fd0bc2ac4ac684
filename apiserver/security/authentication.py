"""Who asks: from a request's headers to a user.

Without an authenticator every client is anonymous.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from noxu.apiserver.registry.draft import User


class Authenticator(Protocol):
    def authenticate(self, headers: Mapping[str, str]) -> User:
        """Raises ApiError Unauthorized."""
        ...
