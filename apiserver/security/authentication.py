"""Authentication: from the headers of a request to its user.

Without an authenticator every client is anonymous. `http.filters.Authenticate` calls it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from noxu.apiserver.registry.access import User


class Authenticator(Protocol):
    """Identifies users."""

    def authenticate(self, headers: Mapping[str, str]) -> User:
        """The user of a request. Raises ApiError Unauthorized."""
        ...
