"""Authorization: whether a user may make a request.

Without an authorizer every user may do everything. `http.filters.Authorize` calls it.
"""

from __future__ import annotations

from typing import Protocol

from noxu.apiserver.registry.draft import User


class Attributes(Protocol):
    """The request (upstream's RequestInfo). For paths of no resource everything is empty except the path."""

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
    """Decides about requests."""

    def authorize(self, user: User, attributes: Attributes, path: str) -> None:
        """Return if the user may make the request. Raises ApiError Forbidden."""
        ...
