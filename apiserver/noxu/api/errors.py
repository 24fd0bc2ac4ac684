"""The one exception that becomes a response: `ApiError` carries a metav1.Status.

Constructors mirror k8s.io/apimachinery/pkg/api/errors in messages, reasons and details. `resource` is a qualified name as
upstream prints it: `resource.group` or `Kind.group`, only the name in the core group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from noxu.api.field import NIL, FieldError
from noxu.go.text import quote
from noxu.values import Object

MAX_REPORTED_ERRORS: Final = 1000
"""The number of errors in an answer; further ones are only counted.

Upstream has no limit, and takes minutes for a hundred thousand.
"""
MAX_REPORTED_TEXT: Final = 128 * 1024
"""Characters of all errors in an answer."""


class Qualified(NamedTuple):
    """A resource or a kind with its group, as messages and details name it."""

    group: str
    name: str

    def __str__(self) -> str:
        return f"{self.name}.{self.group}" if self.group else self.name


class ApiError(Exception):
    """A request that failed.

    `code` is the HTTP code, `reason` a word such as NotFound, `message` a sentence, `causes` the errors of an invalid object,
    `status` the whole metav1.Status. If a function in the place of a webhook has raised an exception, that is `__cause__`.
    Where upstream answers in plain text, `text` is the body instead. `retry_after` (seconds) becomes a Retry-After header.
    """

    __module__ = "noxu"  # where it is public: tracebacks show that name

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
        self.outcome = "Failure"  # an admission webhook may set another `status`

    @property
    def causes(self) -> list[Object]:
        """The errors of an invalid object, each with `field`, `reason` and `message`; [] if there are none."""
        return list((self.details or {}).get("causes") or ())

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


def _details(resource: Qualified | None, name: str = "", **more: object) -> Object:
    details: Object = {
        "name": name,
        "group": resource.group if resource else "",
        "kind": resource.name if resource else "",
        **more,
    }
    return {k: v for k, v in details.items() if v}


def no_kind_registered(kind: str, api_version: str) -> str:
    """Upstream's message about a kind that it does not know."""
    group, _, version = api_version.rpartition("/")
    where = f'the internal version of group "{group}"' if version == "__internal" else f'version "{api_version}"'
    return f'no kind "{kind}" is registered for {where} in scheme "pkg/runtime/scheme.go:111"'


def page_not_found() -> ApiError:
    """404 for a path that is not served at all: Go's plain `404 page not found`, not a Status."""
    return ApiError(404, "the server could not find the requested resource", "NotFound", text="404 page not found\n")


def no_route() -> ApiError:
    """404 for an unknown path below a served prefix."""
    return ApiError(404, "the server could not find the requested resource", "NotFound", {})


def no_route_with_method() -> ApiError:
    """405 for a known path with another method."""
    return ApiError(405, "the server does not allow this method on the requested resource", "MethodNotAllowed", {})


def not_found(resource: Qualified, name: str) -> ApiError:
    return ApiError(404, f"{resource} {quote(name)} not found", "NotFound", _details(resource, name))


def already_exists(resource: Qualified, name: str) -> ApiError:
    return ApiError(409, f"{resource} {quote(name)} already exists", "AlreadyExists", _details(resource, name))


def generate_name_conflict(resource: Qualified, name: str) -> ApiError:
    message = (
        f"{resource} {quote(name)} already exists, the server was not able to generate a unique name for the object"
    )
    return ApiError(409, message, "AlreadyExists", _details(resource, name, retryAfterSeconds=1))


def forbidden(resource: Qualified, name: str, why: str) -> ApiError:
    if not resource.name:
        return ApiError(403, f"forbidden: {why}", "Forbidden", _details(resource, name))
    subject = f"{resource} {quote(name)}" if name else str(resource)
    return ApiError(403, f"{subject} is forbidden: {why}", "Forbidden", _details(resource, name))


def conflict(resource: Qualified, name: str, why: str) -> ApiError:
    message = f"Operation cannot be fulfilled on {resource} {quote(name)}: {why}"
    return ApiError(409, message, "Conflict", _details(resource, name))


def modified(resource: Qualified, name: str) -> ApiError:
    """The optimistic lock failed."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def expired(message: str) -> ApiError:
    return ApiError(410, message, "Expired")


def invalid(resource: Qualified, name: str, errors: Sequence[FieldError]) -> ApiError:
    """422. Each error is a cause; the message has equal texts once. The errors beyond the limits are only counted."""
    causes: list[Object] = []
    texts: list[str] = []
    room = MAX_REPORTED_TEXT
    for error in errors[:MAX_REPORTED_ERRORS]:
        field, body = shortened(error.field or NIL), shortened(error.body)
        room -= len(field) + len(body)
        if room < 0 and causes:
            break
        causes.append({"reason": error.reason, "message": body, "field": field})
        texts.append(f"{field}: {body}")
    message = f"{resource} {quote(name)} is invalid"
    if errors:
        message += ": " + _listed(texts, len(errors) - len(causes))
    return ApiError(422, message, "Invalid", _details(resource, name, causes=causes))


def shortened(text: str) -> str:
    """A text of at most MAX_REPORTED_TEXT characters, and what was left out."""
    if len(text) <= MAX_REPORTED_TEXT:
        return text
    return f"{text[:MAX_REPORTED_TEXT]}… ({len(text) - MAX_REPORTED_TEXT} more characters)"


def aggregate(texts: Iterable[str], *, more: int = 0) -> str:
    """Upstream's utilerrors.Aggregate: `a` for one text, `[a, b]` for several; equal texts once.

    `more`, and those beyond the limits of an answer, are only counted.
    """
    shown, rest = reported(dict.fromkeys(texts))
    return _listed(shown, more + rest)


def reported(texts: Iterable[str]) -> tuple[list[str], int]:
    """The texts that an answer lists, and the number of the others."""
    shown: list[str] = []
    room, rest = MAX_REPORTED_TEXT, 0
    for text in texts:
        if rest or len(shown) == MAX_REPORTED_ERRORS or (len(text) > room and shown):
            rest += 1
            continue
        room -= len(text)
        shown.append(shortened(text))
    return shown, rest


def _listed(texts: Iterable[str], more: int) -> str:
    unique = list(dict.fromkeys(texts))
    if more > 0:
        unique.append(f"and {more} more errors")
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def bad_request(message: str) -> ApiError:
    return ApiError(400, message, "BadRequest")


def method_not_allowed(resource: Qualified, action: str) -> ApiError:
    message = f'{action} is not supported on resources of kind "{resource}"'
    return ApiError(405, message, "MethodNotAllowed", _details(resource))


def internal_error(message: str) -> ApiError:
    details = {"causes": [{"message": message}]}
    return ApiError(500, f"Internal error occurred: {message}", "InternalError", details)


TOO_LARGE: Final = "etcdserver: request is too large"
"""etcd's error for an object that is too large to be stored."""
TOO_LARGE_TO_SEND: Final = (
    "rpc error: code = ResourceExhausted desc = trying to send message larger than max ({} vs. {})"
)
"""That of its client for one that it does not send; the sizes of the message and of the limit."""


def plain_error(message: str, code: int = 500) -> ApiError:
    """An error without reason and details, as upstream makes it from a plain Go error."""
    return ApiError(code, message)


def timeout(message: str, retry_after: int) -> ApiError:
    return ApiError(504, f"Timeout: {message}", "Timeout", {"retryAfterSeconds": retry_after} if retry_after else {})


def unavailable(message: str) -> ApiError:
    """503 for a group version of an API server that cannot be reached, with the message that clients have for it."""
    cause = [{"reason": "UnexpectedServerResponse", "message": message}]
    text = "the server is currently unable to handle the request"
    return ApiError(503, text, "ServiceUnavailable", {"causes": cause})


def too_large(message: str) -> ApiError:
    return ApiError(413, f"Request entity too large: {message}", "RequestEntityTooLarge")


def not_acceptable(accepted: Iterable[str]) -> ApiError:
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return ApiError(406, message, "NotAcceptable")


def unsupported_media_type(accepted: Iterable[str]) -> ApiError:
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return ApiError(415, message, "UnsupportedMediaType")


def unprocessable() -> ApiError:
    """422 for a JSON patch that does not apply: upstream gives no details."""
    return ApiError(422, "the server rejected our request due to an error in our request", "Invalid", {})
