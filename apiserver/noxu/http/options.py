"""Query parameters as options: CreateOptions, UpdateOptions, PatchOptions, DeleteOptions, ListOptions.

Upstream first converts the parameters (an invalid number is a 400 with strconv's message), then validates the options (422,
with their kind in group meta.k8s.io). A parameter that upstream knows and we do not support is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from noxu.api import errors, field, meta, selectors
from noxu.api.errors import Qualified
from noxu.api.field import FieldError
from noxu.go.text import parse_int, parse_uint, quote
from noxu.go.time import SECOND, parse_duration
from noxu.http.request import Query, first
from noxu.registry.deletion import CORRUPT_TOO, DeleteBody, dry_run_errors
from noxu.registry.draft import Options
from noxu.registry.reader import Selection, Window, decode_token
from noxu.registry.resource import Resource
from noxu.values import Object

MAX_DURATION: Final = 1024  # characters; upstream adds up as many numbers as a URL can have
_FIELD_VALIDATION: Final = ("", "Ignore", "Strict", "Warn")


def _invalid(kind: str, wrong: list[FieldError]) -> None:
    if wrong:
        raise errors.invalid(Qualified("meta.k8s.io", kind), "", wrong)


# -- conversion of single parameters (apimachinery's Convert_Slice_string_To_…) ---------------------------------------


def boolean(query: Query, name: str) -> bool | None:
    """The value of a parameter: false for `false` and `0`, true for any other text, also an empty one; None if absent."""
    return None if name not in query else first(query, name).lower() not in ("false", "0")


def integer(query: Query, name: str) -> int | None:
    if name not in query:
        return None
    try:
        return parse_int(first(query, name))
    except ValueError as error:
        raise errors.bad_request(str(error)) from None


def request_timeout(query: Query, longest: float) -> float:
    """The seconds that a request may take: its parameter `timeout` (`5s`), at most `longest`. Raises ApiError."""
    text = first(query, "timeout")
    if not text:
        return longest
    if len(text) > MAX_DURATION:
        raise errors.bad_request(
            f"invalid timeout specified in the request URL - time: invalid duration of more than {MAX_DURATION} characters"
        )
    try:
        seconds = parse_duration(text) / SECOND
    except ValueError as error:
        raise errors.bad_request(f"invalid timeout specified in the request URL - {error}") from None
    return seconds if 0 < seconds < longest else longest


# -- writes -----------------------------------------------------------------------------------------------------------


def write_options(query: Query, kind: str, user_agent: str, *, apply: bool = False) -> Options:
    """`kind` is CreateOptions, UpdateOptions or PatchOptions. Raises ApiError."""
    if not query and not apply:
        return Options(field_manager=manager_from_user_agent(user_agent))
    manager, validation, dry_run = (
        first(query, "fieldManager"),
        first(query, "fieldValidation"),
        query.get("dryRun", []),
    )
    force = boolean(query, "force") if kind == "PatchOptions" else None
    wrong: list[FieldError] = []
    if apply and not manager:
        wrong.append(field.required("fieldManager", "is required for apply patch"))
    if force is not None and not apply:
        wrong.append(field.forbidden("force", "may not be specified for non-apply patch"))
    wrong += meta.validate_field_manager(manager, "fieldManager") + dry_run_errors(dry_run)
    if validation not in _FIELD_VALIDATION:
        wrong.append(field.not_supported("fieldValidation", validation, list(_FIELD_VALIDATION)))
    _invalid(kind, wrong)
    return Options(
        dry_run=bool(dry_run),
        field_manager=manager or manager_from_user_agent(user_agent),
        field_validation=validation or "Warn",  # type: ignore[arg-type]  # checked above
        force=bool(force),
    )


def as_sent(query: Query) -> Object:
    """CreateOptions, UpdateOptions or PatchOptions as an object, with the fields that the query has, except `force`."""
    if not query:
        return {}
    sent: Object = {"dryRun": query["dryRun"]} if query.get("dryRun") else {}
    return sent | {name: first(query, name) for name in ("fieldManager", "fieldValidation") if first(query, name)}


def manager_from_user_agent(user_agent: str) -> str:
    """The default field manager: the printable characters of the user agent up to the first slash, at most MAX_MANAGER bytes."""
    prefix = user_agent.partition("/")[0]
    # nearly all: the loop below goes rune by rune
    if prefix.isascii() and prefix.isprintable() and len(prefix) <= meta.MAX_MANAGER:
        return prefix or "unknown"
    kept = ""
    for char in prefix:
        if not char.isprintable():
            continue
        # the limit is in bytes, and no rune is cut
        if len((kept + char).encode(errors="surrogateescape")) > meta.MAX_MANAGER:
            break
        kept += char
    return kept or "unknown"


def delete_body_from_query(query: Query) -> DeleteBody:
    """DeleteOptions in a query, where `uid` and `resourceVersion` are preconditions. Raises ApiError."""
    return DeleteBody(
        query.get("dryRun", []),
        first(query, "propagationPolicy") if "propagationPolicy" in query else None,
        boolean(query, "orphanDependents"),
        integer(query, "gracePeriodSeconds"),
        first(query, "uid") or None,  # an empty one is no precondition
        first(query, "resourceVersion") or None,
        boolean(query, CORRUPT_TOO),
    )


def delete_body_as_sent(body: DeleteBody) -> Object:
    """DeleteOptions from a query, as an object."""
    sent: Object = {"gracePeriodSeconds": body.grace, "orphanDependents": body.orphan}
    sent |= {"propagationPolicy": body.propagation, "dryRun": body.dry_run or None, CORRUPT_TOO: body.corrupt_too}
    sent["preconditions"] = _without_none({"uid": body.uid, "resourceVersion": body.resource_version}) or None
    return _without_none(sent)


def _without_none(value: Object) -> Object:
    return {name: item for name, item in value.items() if item is not None}


# -- lists and watches ------------------------------------------------------------------------------------------------


class ListOptions(NamedTuple):
    """ListOptions of a list or a watch, validated except for the resourceVersion."""

    selection: Selection
    resource_version: str = ""
    match: str = ""
    limit: int = 0
    token: str = ""
    timeout: int | None = None
    bookmarks: bool = False
    initial_events: bool | None = None


def list_options(resource: Resource, namespace: str | None, name: str, query: Query, *, watch: bool) -> ListOptions:
    """The options of a list or a watch. `namespace` None: all namespaces. `name`: of a watch of one object. Raises ApiError."""
    if not query and not watch and not name:
        return ListOptions(Selection(resource, namespace))  # what most informers ask first
    timeout, limit = integer(query, "timeoutSeconds"), integer(query, "limit") or 0  # in upstream's order
    # Go takes the first of several values
    value_of = {parameter: values[0] for parameter, values in query.items() if values}.get
    labels_text, fields_text = value_of("labelSelector", ""), value_of("fieldSelector", "")
    for selector, text in (("labelSelector", labels_text), ("fieldSelector", fields_text)):
        if len(text) > selectors.MAX_LENGTH:
            raise errors.bad_request(f"{selector}: too long: may not be more than {selectors.MAX_LENGTH} characters")
    try:
        labels = selectors.parse_labels(labels_text) if labels_text else None
        fields = selectors.parse_fields(fields_text) if fields_text else None
    except ValueError as error:
        raise errors.bad_request(str(error)) from None
    options = ListOptions(
        Selection(
            resource,
            namespace,
            None if labels is None or labels.empty else labels,
            None if fields is None or fields.empty else fields,
        ),
        value_of("resourceVersion", ""),
        value_of("resourceVersionMatch", ""),
        max(limit, 0),
        value_of("continue", ""),
        timeout,
        bool(boolean(query, "allowWatchBookmarks")),
        boolean(query, "sendInitialEvents"),
    )
    if watch and options.initial_events is None and not options.match and options.resource_version in ("", "0"):
        # a watch from no revision begins with the state
        options = options._replace(initial_events=True, match="NotOlderThan")
    _invalid("ListOptions", _watch_errors(options) if watch else _list_errors(options))
    if fields is not None:
        _check_fields(resource, fields)
    if name:
        options = _named(options, name, fields)
    return options


def _list_errors(options: ListOptions) -> list[FieldError]:
    path, match = "resourceVersionMatch", options.match
    wrong: list[FieldError] = []
    if match:
        if not options.resource_version:
            wrong.append(field.forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if options.token:
            wrong.append(field.forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
        if match not in ("Exact", "NotOlderThan"):
            wrong.append(field.not_supported(path, field.as_json(match), ["Exact", "NotOlderThan", ""]))
        if match == "Exact" and options.resource_version == "0":
            wrong.append(field.forbidden(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if options.initial_events is not None:
        wrong.append(field.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return wrong


def _watch_errors(options: ListOptions) -> list[FieldError]:
    path, match = "resourceVersionMatch", options.match
    wrong: list[FieldError] = []
    if options.initial_events is not None and match != "NotOlderThan":
        text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        wrong.append(field.forbidden(path, text))
    if match:
        if options.initial_events is None:
            text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            wrong.append(field.forbidden(path, text))
        if match != "NotOlderThan":
            wrong.append(field.not_supported(path, field.as_json(match), ["NotOlderThan"]))
        if options.token:
            wrong.append(field.forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
    return wrong


def _check_fields(resource: Resource, selector: selectors.FieldSelector) -> None:
    supported = {*resource.metadata_labels, *resource.selectable_fields}
    for term in selector.terms:
        if term.field not in supported:
            raise errors.bad_request(resource.codec.unknown_field_label(term.field))


def _named(options: ListOptions, name: str, fields: selectors.FieldSelector | None) -> ListOptions:
    """The options of a watch of one object: its name becomes the field selector. Raises ApiError."""
    if fields is None or fields.empty:
        exact = selectors.parse_fields(f"metadata.name={name}")
        return options._replace(selection=options.selection._replace(fields=exact))
    if fields.exact("metadata.name") != name:
        raise errors.bad_request("fieldSelector metadata.name doesn't match requested name")
    return options


def parse_revision(text: str, refuse: Callable[[str], errors.ApiError]) -> int:
    """A resourceVersion as a revision; "" is 0. `refuse` creates the error, which differs between lists and gets."""
    if not text:
        return 0
    try:
        return parse_uint(text)
    except ValueError as error:
        raise refuse(f"resourceVersion: Invalid value: {quote(text)}: {error}") from None


def window(options: ListOptions, *, paged: bool = False) -> Window:
    """The state and the page that a list requests. Raises ApiError.

    `paged`: the server lists in pages anyway, to delete the objects. A page is exactly at its resourceVersion, unless the
    list can have a single object only (upstream's ShouldDelegateList).
    """
    version = options.resource_version
    if options.token:
        decode_token(options.token, options.selection)  # refuses a token of another collection
        if version not in ("", "0"):
            raise errors.bad_request("specifying resource version is not allowed when using continue")
        return Window(None, limit=0 if version == "0" else options.limit, token=options.token)
    revision = parse_revision(version, lambda text: errors.bad_request(f"invalid resource version: {text}"))
    if version == "0":
        return Window(None, limit=options.limit)
    is_page = revision > 0 and (options.limit > 0 or paged) and not options.match
    is_exact = options.match == "Exact"
    if not (is_exact or is_page):
        return Window(revision, limit=options.limit)
    is_single = options.selection.single is not None
    return Window(revision, is_exact or not is_single, options.limit, waits=not is_single)
