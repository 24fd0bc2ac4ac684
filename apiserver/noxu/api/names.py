"""The syntax of names: DNS labels and subdomains, label keys and values, path segments.

Every rule returns error messages, an empty list for a valid name. The messages are those of k8s.io/apimachinery
(util/validation, api/validate/content, api/validation). Lengths are counted in bytes of UTF-8.

Host names in URLs and Host headers: `is_loopback` accepts those that certainly mean this machine. Plain HTTP is allowed
to loopback only, and a web page may imitate a request from this machine (DNS rebinding). So the answer depends on the
text alone, never on a name server, and malformed text is not loopback.

Patterns of names, such as `web-*` and `shop/db-*`: `is_like`, and `is_named_like` for objects.

Labels are kept as one text, which has a quarter of the memory of a dict, and in which selectors search as fast:

    {"app": "db", "tier": ""}    "\\0app=db\\0tier=\\0"
    {}                           ""

    app=db     "\\0app=db\\0" is in the text
    app!=web   "\\0app=web\\0" is not
    tier       "\\0tier=" is

Neither names nor values of labels contain NUL or `=` (Kubernetes' syntax of labels), so a search finds nothing else.
Three sorts of labels are not packed: with these characters, which other programs may store; with values that are not
text; and long ones, in which a search takes longer than in a dict.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from noxu.api import errors
from noxu.expressions import expression
from noxu.go.text import quote

NameRule: TypeAlias = Callable[
    [str, bool], list[str]
]  # (name, whether it is the prefix of a name to be generated) → messages

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_KEY})?"

LABEL: Final = expression(_LABEL)
"""A label, however long: one has 63 characters at most."""
SUBDOMAIN: Final = expression(rf"(?=.{{1,253}}\Z){_SUBDOMAIN}")
"""The fast path of `subdomain_name`: a match is a subdomain; None says nothing."""

_is_subdomain: Final = expression(_SUBDOMAIN)
_is_label_1035: Final = expression(_LABEL_1035)
_is_key: Final = expression(_KEY)
_is_value: Final = expression(_VALUE)
_is_qualified: Final = expression(rf"(?:{_SUBDOMAIN}/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?")

_PARTS: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)


def _expected(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


_NOT_A_LABEL: Final = _expected(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_NOT_A_SUBDOMAIN: Final = _expected(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_NOT_A_1035_LABEL: Final = _expected(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
_NOT_A_KEY: Final = _expected(_PARTS, _KEY, "MyName", "my.name", "123-abc")
_NOT_A_VALUE: Final = _expected(
    f"a valid label must be an empty string or {_PARTS.removeprefix('must ')}", _VALUE, "MyValue", "my_value", "12345"
)


def _longer_than(limit: int, text: str) -> bool:
    return len(text) > limit or (not text.isascii() and len(text.encode("utf-8", "surrogatepass")) > limit)


def dns1123_label(value: str) -> list[str]:
    """A DNS label as in RFC 1123."""
    errors = ["must be no more than 63 characters"] if _longer_than(63, value) else []
    if not LABEL.fullmatch(value):
        errors.append("must not contain dots" if _is_subdomain.fullmatch(value) else _NOT_A_LABEL)
    return errors


def dns1123_subdomain(value: str, *, unit: str = "characters") -> list[str]:
    """A DNS subdomain as in RFC 1123. Upstream calls the unit characters, and bytes in the prefix of a label key."""
    errors = [f"must be no more than 253 {unit}"] if _longer_than(253, value) else []
    if not _is_subdomain.fullmatch(value):
        errors.append(_NOT_A_SUBDOMAIN)
    return errors


def dns1035_label(value: str) -> list[str]:
    """A DNS label as in RFC 1035, which begins with a letter."""
    errors = ["must be no more than 63 characters"] if _longer_than(63, value) else []
    if not _is_label_1035.fullmatch(value):
        errors.append(_NOT_A_1035_LABEL)
    return errors


@lru_cache(maxsize=4096)
def _qualifies(value: str) -> bool:
    """Cached: the same keys are checked again and again."""
    return _is_qualified.fullmatch(value) is not None


def is_qualified_name(value: str) -> bool:
    """The fast path of `qualified_name`: whether a name is certainly valid."""
    return len(value) <= 253 and _qualifies(value)


def qualified_name(value: str) -> list[str]:
    """A label key, annotation key or finalizer: `name` or `prefix/name`."""
    if is_qualified_name(value):
        return []
    prefix, slash, name = value.partition("/")
    if not slash:
        prefix, name = "", prefix
    elif "/" in name:
        return [
            f"a valid label key {_NOT_A_KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    errors = []
    if slash and not prefix:
        errors.append("prefix part must be non-empty")
    elif slash:
        errors += [f"prefix part {error}" for error in dns1123_subdomain(prefix, unit="bytes")]
    if not name:
        errors.append("name part must be non-empty")
    elif _longer_than(63, name):
        errors.append("name part must be no more than 63 bytes")
    if not _is_key.fullmatch(name):
        errors.append(f"name part {_NOT_A_KEY}")
    return errors


def label_value(value: str) -> list[str]:
    """The value of a label."""
    if len(value) <= 63 and _is_value.fullmatch(value):
        return []
    errors = ["must be no more than 63 bytes"] if _longer_than(63, value) else []
    if not _is_value.fullmatch(value):
        errors.append(_NOT_A_VALUE)
    return errors


MAX_KNOWN_LABELS: Final = 1024
_known_labels: Final[set[tuple[str, str]]] = set()
"""Labels that are valid: the same ones are checked again and again."""


def are_labels(labels: dict[str, str]) -> bool:
    """Whether the names and the values of labels are certainly valid."""
    if _known_labels.issuperset(labels.items()):
        return True
    for name, value in labels.items():
        if not is_qualified_name(name) or len(value) > 63 or not _is_value.fullmatch(value):
            return False
        if len(_known_labels) >= MAX_KNOWN_LABELS:
            _known_labels.clear()
        _known_labels.add((name, value))
    return True


def path_segment_name(name: str, prefix: bool = False) -> list[str]:
    """A name that may be a segment of a URL path. A prefix may be `.` or `..`: the suffix can make it valid."""
    if name in (".", "..") and not prefix:
        return [f"may not be '{name}'"]
    if "/" not in name and "%" not in name:
        return []
    return [f"may not contain '{illegal}'" for illegal in "/%" if illegal in name]


def subdomain_name(name: str, prefix: bool = False) -> list[str]:
    """The rule for names of custom resources."""
    return dns1123_subdomain(_mask_trailing_dash(name) if prefix else name)


def caseless_subdomain_name(name: str, prefix: bool = False) -> list[str]:
    """The rule for names of CSI drivers, in any case."""
    return subdomain_name(name.lower(), prefix)


def label_name(name: str, prefix: bool = False) -> list[str]:
    """The rule for names of namespaces."""
    return dns1123_label(_mask_trailing_dash(name) if prefix else name)


def label_1035_name(name: str, prefix: bool = False) -> list[str]:
    """The rule for names of services."""
    return dns1035_label(_mask_trailing_dash(name) if prefix else name)


def _mask_trailing_dash(name: str) -> str:
    """A prefix may end with a dash. Upstream replaces the last two bytes by one, and checks the length afterwards:

    `my-` becomes `ma`.
    """
    return f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") and name.isascii() else name


_AUTHORITY: Final = expression(r"(?:\[([^\[\]]*:[^\[\]]*)\]|([^:\[\]]*))(?::([0-9]*))?")
_MAX_NAME: Final = 253  # characters of a DNS name
_PORTS: Final = {"http": "80", "https": "443"}
_HOST_NAME: Final = expression(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")


def split_host(authority: str) -> str:
    """The host of `host`, `host:port`, `[address]` or `[address]:port`, without brackets and in lower case.

    Anything else is returned whole, in lower case: a bare IPv6 address, and malformed text such as `[::1]evil.com` or
    `[localhost]`, which therefore never equals a known host.
    """
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        return authority.lower()
    address, name, _ = match.groups()
    return (name if address is None else address).lower()


def is_origin_of(origin: str, scheme: str, authority: str) -> bool:
    """Whether a header Origin names the scheme, the host and the port of an authority (RFC 6454, 4).

    A port that is not given is that of the scheme: `http://localhost` is the origin of `localhost:80`. The opaque origin `null`,
    several origins and malformed text are never equal to one.
    """
    origin_scheme, separator, place = origin.partition("://")
    return (
        bool(separator)
        and origin_scheme.lower() == scheme
        and _place(scheme, place) == _place(scheme, authority) != ("", "")
    )


def _place(scheme: str, authority: str) -> tuple[str, str]:
    """The host and the port of an authority, empty if it has no host or is malformed."""
    match = _AUTHORITY.fullmatch(authority)
    host = split_host(authority) if match is not None else ""
    return (host, (match[3] or "").lstrip("0") or _PORTS[scheme]) if match is not None and host else ("", "")


@lru_cache(maxsize=64)
def is_loopback(authority: str) -> bool:
    """Whether a host, with or without port, is this machine.

    These are `localhost`, names below it (RFC 6761) and literal addresses in 127.0.0.0/8, `::1` and the IPv4-mapped
    form of the former, `::ffff:127.0.0.1`. Other spellings of an address (`127.1`, `::1%eth0`) do not count.
    """
    host = split_host(authority)
    if len(host) > _MAX_NAME:
        return False
    if host == "localhost" or (host.endswith(".localhost") and _HOST_NAME.fullmatch(host) is not None):
        return True
    if "%" in host:  # an IPv6 zone
        return False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def check_path_name(name: str) -> None:
    """Check the name in a path before its object is read (upstream's NamespaceKeyFunc). Raises ApiError."""
    complaints = path_segment_name(name)
    if complaints:
        raise errors.bad_request(f"Name parameter invalid: {quote(name)}: {';'.join(complaints)}")


def is_named_like(pattern: str, namespace: str, name: str) -> bool:
    """Whether a pattern of a name, or of NAMESPACE/NAME, is that of an object."""
    return is_like(pattern, f"{namespace}/{name}" if "/" in pattern else name)


def is_like(pattern: str, text: str) -> bool:
    """Whether a text is as a pattern has it, in which * stands for any text."""
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


MAX_PACKED: Final = 500  # characters

Labels: TypeAlias = Mapping[str, str] | str
"""Packed labels, or others."""


def pack(labels: dict[str, str]) -> dict[str, str] | str:
    """Labels as one text; unchanged if they cannot be packed."""
    if not labels:
        return ""
    try:
        text = "\0".join(map("=".join, labels.items()))
    except TypeError:
        return labels
    number = len(labels)
    if text.count("=") != number or text.count("\0") != number - 1 or len(text) > MAX_PACKED:
        return labels
    return f"\0{text}\0"


def unpack(packed: dict[str, str] | str) -> dict[str, str]:
    """The labels that were packed, in their order."""
    if not isinstance(packed, str):
        return packed
    return dict([label.split("=") for label in packed[1:-1].split("\0")]) if packed else {}


def text_of(name: str, value: str | None = None) -> str:
    """What packed labels contain if they have this label, of any value if None."""
    return f"\0{name}=" if value is None else f"\0{name}={value}\0"


def value_after(before: str, packed: str) -> str | None:
    """The value of the label that begins with the text `before` (`text_of`), None if there is none of this name."""
    at = packed.find(before)
    if at < 0:
        return None
    at += len(before)
    return packed[at : packed.index("\0", at)]
