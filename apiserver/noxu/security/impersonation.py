"""Impersonation: a request as another user, if its own user may (KEP-5284; pkg/endpoints/filters/impersonation).

The headers `Impersonate-User`, `-Group`, `-Uid` and `-Extra-KEY` name the other one. The modes are asked in their order,
and the first that allows it decides:

    associated-node   a service account as the node on which its pod runs
    arbitrary-node    any node
    serviceaccount    a service account
    user-info         any other user, with groups, a uid and extra, but not in the group system:masters
    (legacy)          any user

The former four are constrained: their user needs the verb `impersonate-on:MODE:VERB` for the request itself, and
`impersonate:MODE` for each part of the other user. For the last one it needs `impersonate` for each part. If no mode
allows it, the refusal is that of the first one that applies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from multidict import MultiMapping

from noxu.api.errors import ApiError, aggregate, bad_request
from noxu.api.names import label_name, subdomain_name
from noxu.go.text import quote
from noxu.go.url import decoded, has_bad_escape
from noxu.kinds.networking import domain_prefixed_path
from noxu.registry.access import AccessAttributes, Authorize, Decision, User
from noxu.security.authorization import MASTERS, refusal
from noxu.security.claims import USER_PREFIX, account_groups
from noxu.security.credentials import AUTHENTICATED, UNAUTHENTICATED, valid_text

NODE_PREFIX: Final = "system:node:"
_EXTRA_PREFIX: Final = "impersonate-extra-"
_GROUP: Final = "authentication.k8s.io"
_NODE_NAME: Final = "authentication.kubernetes.io/node-name"
_NODE_KEYS: Final = "authentication.kubernetes.io/associated-node-keys"
MAX_PARTS: Final = 1000
"""Groups and values of extra of a user: each is authorized. Upstream limits the whole head only."""
_MANY: Final = 4
"""Groups or values of extra that a constrained mode asks for at once, by the name `*`."""

Extra = tuple[tuple[str, tuple[str, ...]], ...]


class Impersonation(NamedTuple):
    """`constraint` is the verb that has allowed it, "" in the legacy mode."""

    user: User
    constraint: str


class _Mode(NamedTuple):
    """`applies`: (the other user, the requesting one): whether the mode is for them."""

    name: str
    applies: Callable[[User, User], bool]


def wanted(headers: MultiMapping[str]) -> User | None:
    """The user that a request names, with the groups and extra as they were sent; None if it names none.

    Raises ApiError BadRequest if there are other headers, but no name.
    """
    name, uid = (valid_text(headers.get(header, "")) for header in ("Impersonate-User", "Impersonate-Uid"))
    groups = tuple(map(valid_text, headers.getall("Impersonate-Group", [])))
    extra = _extra(headers)
    if len(groups) + sum(len(values) for _, values in extra) > MAX_PARTS:
        raise bad_request(f"too many groups and values of extra to impersonate: may not be more than {MAX_PARTS}")
    if name:
        return User(name, uid, groups, extra)
    if uid or groups or extra:
        raise bad_request(f"requested {_go_text(uid, groups, extra)} without impersonating a user name")
    return None


def extra_key(encoded: str) -> str:
    """The key of extra that a header names: in lower case, then decoded; unchanged if it is malformed."""
    encoded = encoded.lower()
    return encoded if has_bad_escape(encoded) else decoded(encoded).decode(errors="replace")


def _extra(headers: MultiMapping[str]) -> Extra:
    extra: dict[str, list[str]] = {}
    for header, value in headers.items():
        if header.lower().startswith(_EXTRA_PREFIX):
            extra.setdefault(extra_key(valid_text(header)[len(_EXTRA_PREFIX) :]), []).append(valid_text(value))
    return tuple((key, tuple(values)) for key, values in sorted(extra.items()))


def _go_text(uid: str, groups: Sequence[str], extra: Extra) -> str:
    """A user without a name as Go's %#v prints it."""
    listed = f"[]string{{{', '.join(map(quote, groups))}}}" if groups else "[]string(nil)"
    values = ", ".join(f"{quote(key)}:[]string{{{', '.join(map(quote, values))}}}" for key, values in extra)
    mapped = f"map[string][]string{{{values}}}" if extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{quote(uid)}, Groups:{listed}, Extra:{mapped}}}'


# -- modes --------------------------------------------------------------------------------------------------------------


def impersonate(authorize: Authorize, asked: AccessAttributes, target: User) -> Impersonation:
    """The user of a request that names another one. `asked` is the request. Raises ApiError Forbidden."""
    first: ApiError | None = None
    for mode in _MODES:
        if not mode.applies(target, asked.user):
            continue
        try:
            return _in_mode(authorize, asked, target, mode.name)
        except ApiError as refused:
            first = first or refused
    try:
        return _checked(authorize, asked.user, target, "impersonate", constrained=False)
    except ApiError as refused:
        raise first or refused from None


def _in_mode(authorize: Authorize, asked: AccessAttributes, target: User, mode: str) -> Impersonation:
    """Raises ApiError."""
    requestor = asked.user
    if mode == "associated-node":  # upstream remembers the answer for all nodes, so the question is for all
        keys = tuple(sorted(key for key, _ in requestor.extra))
        requestor = requestor._replace(extra=((_NODE_KEYS, keys),))
    _require(authorize, asked._replace(user=requestor, verb=f"impersonate-on:{mode}:{asked.verb}"))
    return _checked(authorize, requestor, target, f"impersonate:{mode}", constrained=True)


def _checked(authorize: Authorize, requestor: User, target: User, verb: str, *, constrained: bool) -> Impersonation:
    """The other user, if every part of it is allowed. Raises ApiError."""
    group = _GROUP if constrained else ""
    groups = _check_name(authorize, AccessAttributes(requestor, verb, group, "v1", "users", name=target.name), target)
    own = AccessAttributes(requestor, verb, _GROUP, "v1")
    if target.uid:
        _require(authorize, own._replace(resource="uids", name=target.uid))
    _check_groups(authorize, own._replace(group=group, resource="groups"), target.groups, constrained=constrained)
    _check_extra(authorize, own._replace(resource="userextras"), dict(target.extra), constrained=constrained)
    own_group = UNAUTHENTICATED if target.name == "system:anonymous" else AUTHENTICATED
    if own_group not in groups and UNAUTHENTICATED not in groups:
        groups = (*groups, own_group)
    return Impersonation(target._replace(groups=groups), verb if constrained else "")


def _check_name(authorize: Authorize, asked: AccessAttributes, target: User) -> tuple[str, ...]:
    """The groups of the other user. Raises ApiError."""
    groups = target.groups
    if asked.group and (node := node_of(target.name)):
        all_nodes = asked.verb == "impersonate:associated-node"
        asked, groups = asked._replace(resource="nodes", name="*" if all_nodes else node), ("system:nodes",)
    elif account := account_of(target.name):
        namespace, name = account
        asked = asked._replace(resource="serviceaccounts", namespace=namespace, name=name)
        groups = groups or account_groups(namespace)
    _require(authorize, asked)
    return groups


def _check_groups(authorize: Authorize, asked: AccessAttributes, groups: Sequence[str], *, constrained: bool) -> None:
    """Raises ApiError."""
    if constrained and "" in groups:
        raise _refused(asked, "impersonating the empty string group is not allowed")
    if constrained and MASTERS in groups:
        raise _refused(asked._replace(name=MASTERS), "impersonating the system:masters group is not allowed")
    if constrained and len(groups) >= _MANY and authorize(asked._replace(name="*")).allowed:
        return
    for group in groups:
        _require(authorize, asked._replace(name=group))


def _check_extra(
    authorize: Authorize, asked: AccessAttributes, extra: Mapping[str, Sequence[str]], *, constrained: bool
) -> None:
    """Raises ApiError."""
    if constrained:
        for fault in _faults(extra):
            raise _refused(asked, fault)
        if sum(map(len, extra.values())) >= _MANY and authorize(asked._replace(subresource="*", name="*")).allowed:
            return
    for key, values in extra.items():
        for value in values:
            _require(authorize, asked._replace(subresource=key, name=value))


def _faults(extra: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """What constrained modes do not allow in extra."""
    for key, values in extra.items():
        if not key:
            yield "impersonating the empty string key in extra is not allowed"
        elif errors := list(map(str, domain_prefixed_path(key, "extra.key"))):
            yield f"impersonating an invalid key in extra is not allowed: {aggregate(errors)}"
        elif key != key.lower():
            yield f"impersonating a non-lowercase key in extra is not allowed: {quote(key)}"
        elif "" in values:
            yield "impersonating the empty string value in extra is not allowed"


def _require(authorize: Authorize, asked: AccessAttributes) -> None:
    """Raises ApiError Forbidden."""
    decision = authorize(asked)
    if not decision.allowed:
        raise _refused(asked, ": ".join(text for text in (decision.error, decision.reason) if text))


def _refused(asked: AccessAttributes, reason: str) -> ApiError:
    return refusal(asked, Decision(allowed=False, reason=reason))


# -- names --------------------------------------------------------------------------------------------------------------


def account_of(user: str) -> tuple[str, str] | None:
    """The namespace and name of the service account whose user this is (apiserver's serviceaccount.SplitUsername)."""
    namespace, separator, name = user.removeprefix(USER_PREFIX).partition(":")
    if not user.startswith(USER_PREFIX) or not separator or ":" in name:
        return None
    return None if label_name(namespace) or subdomain_name(name) else (namespace, name)


def node_of(user: str) -> str:
    """The name of the node whose user this is, "" if it is that of no node."""
    name = user.removeprefix(NODE_PREFIX)
    return name if user.startswith(NODE_PREFIX) and not subdomain_name(name) else ""


def _has_only_a_name(user: User) -> bool:
    return not (user.uid or user.groups or user.extra)


def _is_associated(target: User, requestor: User) -> bool:
    node = node_of(target.name)
    if not node or not _has_only_a_name(target) or account_of(requestor.name) is None:
        return False
    return dict(requestor.extra).get(_NODE_NAME) == (node,)


_MODES: Final = (
    _Mode("associated-node", _is_associated),
    _Mode("arbitrary-node", lambda target, _: _has_only_a_name(target) and bool(node_of(target.name))),
    _Mode("serviceaccount", lambda target, _: _has_only_a_name(target) and account_of(target.name) is not None),
    _Mode("user-info", lambda target, _: not node_of(target.name) and account_of(target.name) is None),
)
