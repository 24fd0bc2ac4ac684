"""Errors as Status objects: codes, reasons, messages and details of k8s.io/apimachinery's api/errors."""

from __future__ import annotations

import pytest

from noxu.api import errors, field
from noxu.api.errors import MAX_REPORTED_ERRORS, MAX_REPORTED_TEXT, ApiError, Qualified, aggregate
from noxu.values import Object
from tests.rows import rows

WIDGETS = Qualified("example.com", "widgets")
PODS = Qualified("", "pods")
DETAILS = {"name": "a", "group": "example.com", "kind": "widgets"}
TRY_AGAIN = "the object has been modified; please apply your changes to the latest version and try again"

ERRORS: list[tuple[str, ApiError, int, str, str, Object | None]] = [
    ("not found", errors.not_found(WIDGETS, "a"), 404, "NotFound", 'widgets.example.com "a" not found', DETAILS),
    ("not found in the core group", errors.not_found(PODS, "a"), 404, "NotFound", 'pods "a" not found', {"name": "a", "kind": "pods"}),
    ("already exists", errors.already_exists(WIDGETS, "a"), 409, "AlreadyExists", 'widgets.example.com "a" already exists', DETAILS),
    ("conflict", errors.conflict(WIDGETS, "a", "why"), 409, "Conflict", 'Operation cannot be fulfilled on widgets.example.com "a": why', DETAILS),
    ("modified", errors.modified(WIDGETS, "a"), 409, "Conflict", f'Operation cannot be fulfilled on widgets.example.com "a": {TRY_AGAIN}', DETAILS),
    ("forbidden", errors.forbidden(WIDGETS, "a", "why"), 403, "Forbidden", 'widgets.example.com "a" is forbidden: why', DETAILS),
    ("forbidden without a name", errors.forbidden(PODS, "", "why"), 403, "Forbidden", "pods is forbidden: why", {"kind": "pods"}),
    ("expired", errors.expired("too old"), 410, "Expired", "too old", None),
    ("bad request", errors.bad_request("bad"), 400, "BadRequest", "bad", None),
    ("method not allowed", errors.method_not_allowed(WIDGETS, "patch"), 405, "MethodNotAllowed", 'patch is not supported on resources of kind "widgets.example.com"', {"group": "example.com", "kind": "widgets"}),
    ("internal", errors.internal_error("bug"), 500, "InternalError", "Internal error occurred: bug", {"causes": [{"message": "bug"}]}),
    ("plain", errors.plain_error("text"), 500, "", "text", None),
    ("timeout", errors.timeout("slow", 3), 504, "Timeout", "Timeout: slow", {"retryAfterSeconds": 3}),
    ("timeout without a hint", errors.timeout("slow", 0), 504, "Timeout", "Timeout: slow", {}),
    ("too large", errors.too_large("limit"), 413, "RequestEntityTooLarge", "Request entity too large: limit", None),
    ("not acceptable", errors.not_acceptable(["a/b", "c/d"]), 406, "NotAcceptable", "only the following media types are accepted: a/b, c/d", None),
    ("unsupported media type", errors.unsupported_media_type(["a/b"]), 415, "UnsupportedMediaType", "the body of the request was in an unknown format - accepted media types include: a/b", None),
]  # fmt: skip


@rows(("error", "code", "reason", "message", "details"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_an_error_as_a_status(error: ApiError, code: int, reason: str, message: str, details: Object | None) -> None:
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    status |= {"reason": reason} if reason else {}
    status |= {"details": details} if details is not None else {}
    assert error.status == {**status, "code": code}
    assert list(error.status) == [*status, "code"]
    assert (error.code, str(error), error.text) == (code, message, None)


def test_a_retry_after_header_says_when_to_retry() -> None:
    assert errors.timeout("slow", 3).retry_after == 3
    assert errors.generate_name_conflict(WIDGETS, "a").retry_after == 1
    assert errors.bad_request("x").retry_after is None


def test_a_path_that_is_not_served_is_plain_text() -> None:
    assert errors.page_not_found().text == "404 page not found\n"


def test_field_errors_are_causes() -> None:
    error = errors.invalid(
        WIDGETS, "a", [field.required("spec.x"), field.invalid("", 1, "no"), field.required("spec.x")]
    )
    assert error.message == 'widgets.example.com "a" is invalid: [spec.x: Required value, <nil>: Invalid value: 1: no]'
    assert error.details == {
        **DETAILS,
        "causes": [
            {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.x"},
            {"reason": "FieldValueInvalid", "message": "Invalid value: 1: no", "field": "<nil>"},
            {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.x"},
        ],
    }


def test_of_too_many_field_errors_the_rest_is_counted() -> None:
    found = [field.required(f"f{n}") for n in range(MAX_REPORTED_ERRORS + 5)]
    error = errors.invalid(WIDGETS, "a", found)
    assert error.details is not None
    assert len(error.details["causes"]) == MAX_REPORTED_ERRORS
    assert error.message.endswith(", and 5 more errors]")


def test_the_text_of_field_errors_is_limited() -> None:
    found = [field.invalid("f", "x" * 10_000, "no") for _ in range(100)]
    error = errors.invalid(WIDGETS, "a", found)
    assert error.details is not None
    assert len(error.details["causes"]) == MAX_REPORTED_TEXT // 10_000
    assert error.message.endswith(", and 87 more errors]")


def test_a_long_field_error_is_shortened() -> None:
    error = errors.invalid(WIDGETS, "a", [field.invalid("f", "x" * 1_000_000, "no")])
    assert len(error.message) < MAX_REPORTED_TEXT + 200
    assert error.message.endswith("more characters)")
    assert error.causes[0]["field"] == "f"


def test_aggregates_are_limited() -> None:
    many = aggregate(f"error {n}" for n in range(MAX_REPORTED_ERRORS + 3))
    assert many.endswith(f"error {MAX_REPORTED_ERRORS - 1}, and 3 more errors]")
    long = aggregate(f"{n}" + "x" * 10_000 for n in range(100))
    assert len(long) < MAX_REPORTED_TEXT + 200
    assert long.endswith(" more errors]")
    assert aggregate(["a", "b"] * MAX_REPORTED_ERRORS) == "[a, b]"
    assert aggregate(["x" * 1_000_000]).endswith("more characters)")


@pytest.mark.parametrize(
    ("texts", "more", "message"),
    [(["a"], 0, "a"), (["a", "b"], 0, "[a, b]"), (["a", "a"], 0, "a"), (["a"], 2, "[a, and 2 more errors]")],
)
def test_aggregates(texts: list[str], more: int, message: str) -> None:
    assert aggregate(texts, more=more) == message
