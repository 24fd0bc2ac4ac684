"""The one exception that becomes a response: `ApiError` carries a metav1.Status.

Constructors mirror k8s.io/apimachinery/pkg/api/errors in texts, reasons and details. `what` is a qualified name as
upstream prints it, `resource.group` or `Kind.group` (just the name in the core group).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from apiserver.api.field import NIL, FieldError
from apiserver.api.gotext import quote
from apiserver.api.types import Object

MAX_TOLD_ERRORS: Final = 10_000  # beyond it a 422 says how many more there are; upstream has no limit and takes minutes


class Qualified(NamedTuple):
    """A resource or a kind with its group, as error texts and details name it."""

    group: str
    name: str

    def __str__(self) -> str:
        return f"{self.name}.{self.group}" if self.group else self.name


class ApiError(Exception):
    """A request that failed, told as a Status.

    `code` is the HTTP code. `status` is the metav1.Status, or None where upstream answers in plain text: then the body
    is `text`. `retry_after` becomes a Retry-After header.
    """

    def __init__(
        self, code: int, message: str, reason: str = "", details: Object | None = None, *, text: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason
        self.details = details
        self.text = text
        self.metadata: Object = {}  # a list that expired carries a fresh continue token here
        self.retry_after: int | None = (details or {}).get("retryAfterSeconds")
        self.outcome = "Failure"  # an admission webhook may call it otherwise

    @property
    def status(self) -> Object:
        """The metav1.Status in declaration order; `reason` and `details` are left out when empty."""
        status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": self.metadata, "status": self.outcome}
        if self.message:
            status["message"] = self.message
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


def _details(what: Qualified | None, name: str = "", **more: object) -> Object:
    details: Object = {"name": name, "group": what.group if what else "", "kind": what.name if what else "", **more}
    return {k: v for k, v in details.items() if v}


def no_kind_registered(kind: str, api_version: str) -> str:
    """What upstream says of a kind that it does not know."""
    return f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'


def page_not_found() -> ApiError:
    """What is not served at all: Go's plain `404 page not found`, not a Status."""
    return ApiError(404, "the server could not find the requested resource", "NotFound", text="404 page not found\n")


def no_route() -> ApiError:
    """What a web service of upstream says of a path that it does not have."""
    return ApiError(404, "the server could not find the requested resource", "NotFound", {})


def no_route_with_method() -> ApiError:
    """What it says if it has the path, but not with this method."""
    return ApiError(405, "the server does not allow this method on the requested resource", "MethodNotAllowed", {})


def not_found(what: Qualified, name: str) -> ApiError:
    return ApiError(404, f"{what} {quote(name)} not found", "NotFound", _details(what, name))


def already_exists(what: Qualified, name: str) -> ApiError:
    return ApiError(409, f"{what} {quote(name)} already exists", "AlreadyExists", _details(what, name))


def generate_name_conflict(what: Qualified, name: str) -> ApiError:
    message = f"{what} {quote(name)} already exists, the server was not able to generate a unique name for the object"
    return ApiError(409, message, "AlreadyExists", _details(what, name, retryAfterSeconds=1))


def forbidden(what: Qualified, name: str, why: str) -> ApiError:
    subject = f"{what} {quote(name)}" if name else str(what)
    return ApiError(403, f"{subject} is forbidden: {why}", "Forbidden", _details(what, name))


def conflict(what: Qualified, name: str, why: str) -> ApiError:
    message = f"Operation cannot be fulfilled on {what} {quote(name)}: {why}"
    return ApiError(409, message, "Conflict", _details(what, name))


def modified(what: Qualified, name: str) -> ApiError:
    """The optimistic lock failed."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(what, name, why)


def expired(message: str) -> ApiError:
    return ApiError(410, message, "Expired")


def invalid(what: Qualified, name: str, errors: Sequence[FieldError]) -> ApiError:
    """422. Each error is a cause; in the message texts that repeat are told once."""
    causes = [{"reason": e.reason, "message": e.body, "field": e.field or NIL} for e in errors[:MAX_TOLD_ERRORS]]
    message = f"{what} {quote(name)} is invalid"
    if errors:
        message += ": " + aggregate(map(str, errors[:MAX_TOLD_ERRORS]), more=len(errors) - MAX_TOLD_ERRORS)
    return ApiError(422, message, "Invalid", _details(what, name, causes=causes))


def aggregate(texts: Iterable[str], *, more: int = 0) -> str:
    """Upstream's utilerrors.Aggregate: one text bare, several as `[a, b]`, each once."""
    unique = list(dict.fromkeys(texts))
    if more > 0:
        unique.append(f"and {more} more errors")
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def bad_request(message: str) -> ApiError:
    return ApiError(400, message, "BadRequest")


def too_many_requests(message: str, retry_after: int) -> ApiError:
    return ApiError(429, message, "TooManyRequests", {"retryAfterSeconds": retry_after})


def service_unavailable(message: str) -> ApiError:
    return ApiError(503, message, "ServiceUnavailable")


def method_not_allowed(what: Qualified, action: str) -> ApiError:
    message = f'{action} is not supported on resources of kind "{what}"'
    return ApiError(405, message, "MethodNotAllowed", _details(what))


def internal_error(message: str) -> ApiError:
    details = {"causes": [{"message": message}]}
    return ApiError(500, f"Internal error occurred: {message}", "InternalError", details)


def plain_error(message: str, code: int = 500) -> ApiError:
    """An error that upstream passes on as it is: no reason, no details."""
    return ApiError(code, message)


def timeout(message: str, retry_after: int) -> ApiError:
    return ApiError(504, f"Timeout: {message}", "Timeout", {"retryAfterSeconds": retry_after} if retry_after else {})


def too_large(message: str) -> ApiError:
    return ApiError(413, f"Request entity too large: {message}", "RequestEntityTooLarge")


def not_acceptable(accepted: Iterable[str]) -> ApiError:
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return ApiError(406, message, "NotAcceptable")


def unsupported_media_type(accepted: Iterable[str]) -> ApiError:
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return ApiError(415, message, "UnsupportedMediaType")


def unprocessable() -> ApiError:
    """422 without words: what upstream answers when a JSON patch does not apply."""
    return ApiError(422, "the server rejected our request due to an error in our request", "Invalid", {})
