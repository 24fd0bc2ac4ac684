"""Whether a user may do what a request asks.

Without an authorizer every user may do everything.
"""

from __future__ import annotations

from typing import Protocol

from noxu.apiserver.registry.draft import User


class Attributes(Protocol):
    """What is asked (upstream's RequestInfo)."""

    @property
    def is_resource(self) -> bool: ...
    @property
    def verb(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def resource(self) -> str: ...
    @property
    def subresource(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...


class Authorizer(Protocol):
    def authorize(self, user: User, attributes: Attributes, path: str) -> None:
        """Raises ApiError Forbidden."""
        ...
