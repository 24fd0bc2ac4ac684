"""Content negotiation: Accept, Content-Type, Accept-Encoding, the parameter `pretty`, and Warning headers.

Upstream's pkg/endpoints/handlers/negotiation with goautoneg, Go's mime.ParseMediaType, responsewriters'
compression and pkg/endpoints/filters/warning.go. Header values in, decisions out. Of a header
that is repeated, upstream reads the first.

Accept is a list of clauses, considered from the highest `q` to the lowest; a clause that cannot be satisfied is skipped.
Surprising rules:

- `as`, `v` and `g` request a conversion; one of them alone requests one that does not exist. Parameters that are not
  known (charset, …) change nothing;
- `q=0` does not exclude anything, it comes last. No wildcard comes before a full type of the same `q`;
- everything is compared case-sensitively;
- in front of built-in kinds is a router (go-restful) with its own rules for Accept: `application/*` matches nothing;
- errors are written in the requested format if it can represent a Status, else as indented JSON;
- with the feature gate CBORServingAndStorage there is CBOR, too, but not of tables, discovery documents of custom
  resources, and errors of requests for no resource. A watch that accepts `application/cbor` gets `application/cbor-seq`.
"""

from __future__ import annotations

import math
import re
import struct
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

from noxu.api.errors import ApiError, not_acceptable, unsupported_media_type
from noxu.expressions import expression
from noxu.tables.table import GROUP, VERSIONS, Conversion

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
CBOR: Final = "application/cbor"
CBOR_SEQUENCE: Final = "application/cbor-seq"
MEDIA_TYPES: Final = (JSON, YAML, PROTOBUF)
MEDIA_TYPES_WITH_CBOR: Final = (*MEDIA_TYPES, CBOR)
STREAM_MEDIA_TYPES: Final = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
STREAM_MEDIA_TYPES_WITH_CBOR: Final = (*STREAM_MEDIA_TYPES, CBOR_SEQUENCE)

GZIP_THRESHOLD: Final = 128 * 1024  # a body must be larger than this
MAX_WARNING_RUNES: Final = 4 * 1024
MAX_TRUNCATED_WARNING_RUNES: Final = 256
MAX_NEGOTIATED: Final = 16 * 1024
"""Characters of an Accept or a Content-Type that is read; clients send some hundred. Upstream limits the whole head only."""
MAX_CACHED: Final = 256  # cached headers; a client sends the same few all the time
MAX_CACHED_BYTES: Final = 512  # of a header that is cached


class Accepted(NamedTuple):
    """The representation to answer with. `content_type` is `media_type`, in some cases with parameters."""

    media_type: str
    convert: Conversion | None = None
    pretty: bool = False
    content_type: str = JSON


PLAIN: Final = Accepted(JSON)
"""What can be answered with stored bytes unchanged."""

Target = tuple[str, str, str]
"""Group, version and kind that a client requests instead of the object."""


@dataclass(frozen=True, slots=True, eq=False)
class Representations:
    """The representations of an endpoint: `offers` has the media types of each target, under None those of the object."""

    offers: Mapping[Target | None, frozenset[str]]
    server_version: str = ""
    """The value of the parameter `sv` that is accepted."""
    representations: tuple[str, ...] = ()
    """The media types that the router in front of the endpoint accepts; empty without a router."""
    media_types: tuple[str, ...] = MEDIA_TYPES
    """The media types that exist, in the order of preference and of messages."""

    def allows(self, media_type: str, target: Target | None, parameters: Mapping[str, str]) -> bool:
        stream, version = parameters.get("stream"), parameters.get("sv")
        if stream and (stream != "watch" or media_type == YAML):
            return False
        if version and version != self.server_version:
            return False
        return media_type in self.offers.get(target, ())


_ANY: Final = frozenset(MEDIA_TYPES)
_TEXTS: Final = frozenset({JSON, YAML})
_CONVERSIONS: Final[Mapping[Target | None, frozenset[str]]] = {
    (GROUP, version, kind): media_types
    for version in VERSIONS
    for kind, media_types in (("Table", _TEXTS), ("PartialObjectMetadata", _ANY), ("PartialObjectMetadataList", _ANY))
}
_AGGREGATED_DISCOVERY: Final = ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")

CUSTOM_RESOURCE: Final = Representations({None: _TEXTS, **_CONVERSIONS}, server_version="v1")
"""Custom resources and their subresources; only their metadata exists as protobuf."""
BUILT_IN: Final = Representations({None: _ANY, **_CONVERSIONS}, "v1", MEDIA_TYPES)
DEFINITION_STATUS: Final = Representations(
    {target: types for target, types in BUILT_IN.offers.items() if target is None or target[2] != "Table"},
    "v1",
    MEDIA_TYPES,
)
"""/status of CustomResourceDefinitions, which has no tables."""
BUILT_IN_LIST: Final = Representations({None: _ANY, **_CONVERSIONS}, "v1", MEDIA_TYPES + STREAM_MEDIA_TYPES)
"""GET of a collection, watches included."""
DOCUMENT: Final = Representations({None: _ANY})
"""Discovery documents of custom resources, and every error."""
BUILT_IN_DOCUMENT: Final = Representations({None: _ANY}, representations=MEDIA_TYPES)
"""/apis, and the discovery documents of built-in groups."""
AGGREGATED_DISCOVERY: Final = Representations({_AGGREGATED_DISCOVERY: _ANY})


@lru_cache(maxsize=16)
def with_cbor(endpoint: Representations) -> Representations:
    """The endpoint with the feature gate CBORServingAndStorage: everything but tables is offered as CBOR, too."""
    offers = {
        target: media_types if target is not None and target[2] == "Table" else media_types | {CBOR}
        for target, media_types in endpoint.offers.items()
    }
    return replace(
        endpoint,
        offers=offers,
        representations=_representations_with_cbor(endpoint.representations),
        media_types=MEDIA_TYPES_WITH_CBOR,
    )


@lru_cache(maxsize=16)
def routed_with_cbor(endpoint: Representations) -> Representations:
    """The endpoint where the feature gate makes the router accept CBOR, but the handler behind it has none (/apis)."""
    return replace(endpoint, representations=_representations_with_cbor(endpoint.representations))


def _representations_with_cbor(representations: tuple[str, ...]) -> tuple[str, ...]:
    if not representations:
        return ()
    streams = STREAM_MEDIA_TYPES_WITH_CBOR if len(representations) > len(MEDIA_TYPES) else ()
    return MEDIA_TYPES_WITH_CBOR + streams


# -- Accept -----------------------------------------------------------------------------------------------------------


def negotiate(accept: str, endpoint: Representations, *, pretty: str = "", user_agent: str = "") -> Accepted:
    """The representation to answer with. `pretty` is the query parameter. Raises ApiError 406, 431."""
    is_short = len(accept) + len(pretty) + len(user_agent) <= MAX_CACHED_BYTES
    return (negotiate_short if is_short else negotiate_short.__wrapped__)(accept, endpoint, pretty, user_agent)


@lru_cache(maxsize=MAX_CACHED)
def negotiate_short(accept: str, endpoint: Representations, pretty: str, user_agent: str) -> Accepted:
    """Like `negotiate`, for headers of at most MAX_CACHED_BYTES together. Raises ApiError 406.

    The answers are kept: 2.4 to 6.3 µs of the 45 of a GET (`benchmarks.http`, `get`).
    """
    if endpoint.representations:
        require_representation(accept, endpoint.representations)
    accepted = _negotiate(accept, endpoint)
    if accepted is None:
        raise not_acceptable(endpoint.media_types)
    return _with_pretty(accepted, pretty, user_agent)


def as_stream(accepted: Accepted, *, cbor: bool = False) -> Accepted:
    """The representation of a watch. YAML cannot be streamed. `cbor`: the feature gate. Raises ApiError 406."""
    if accepted.media_type == YAML:
        raise not_acceptable(STREAM_MEDIA_TYPES_WITH_CBOR if cbor else STREAM_MEDIA_TYPES)
    if accepted.media_type == CBOR:
        accepted = accepted._replace(content_type=CBOR_SEQUENCE)  # a stream is a sequence of documents
    if accepted.media_type == PROTOBUF:
        accepted = accepted._replace(content_type=f"{PROTOBUF};stream=watch")
    return accepted._replace(pretty=False)


def require_representation(accept: str, representations: Sequence[str]) -> None:
    """go-restful's check before a built-in endpoint: a clause must name one of `representations` or `*/*`.

    `application/*` is not recognized. Raises ApiError 406, 431.
    """
    _check_length("Accept", accept)
    if accept and not _names_one(accept, (*representations, "*/*")):
        available = ", ".join(representations)
        raise ApiError(406, f"406: Not Acceptable\n\nAvailable representations: {available}", "NotAcceptable", {})


def _names_one(header: str, media_types: Sequence[str]) -> bool:
    return any(clause.partition(";")[0].strip(" ") in media_types for clause in header.split(","))


def _check_length(name: str, header: str) -> None:
    """Raises ApiError 431."""
    if len(header) > MAX_NEGOTIATED:
        text = f"{name} is too long: may not be more than {MAX_NEGOTIATED} characters"
        raise ApiError(431, text, "RequestHeaderFieldsTooLarge")


def negotiate_error(accept: str, *, pretty: str = "", user_agent: str = "", cbor: bool = False) -> Accepted:
    """The representation of a Status: the requested one, or indented JSON if that is not possible."""
    accept = accept if len(accept) <= MAX_NEGOTIATED else ""
    accepted = _negotiate(accept, with_cbor(DOCUMENT) if cbor else DOCUMENT)
    return Accepted(JSON, pretty=True) if accepted is None else _with_pretty(accepted, pretty, user_agent)


def negotiate_aggregated_discovery(accept: str, *, cbor: bool = False) -> Accepted | None:
    """The representation of an APIGroupDiscoveryList; None if the client does not accept aggregated discovery.

    A clause that requests it wins over one that does not, regardless of `q`.
    """
    endpoint = with_cbor(AGGREGATED_DISCOVERY) if cbor else AGGREGATED_DISCOVERY  # made once, see `lru_cache`
    accepted = _negotiate(accept, endpoint) if accept else None
    if accepted is None:
        return None
    group, version, kind = _AGGREGATED_DISCOVERY
    return Accepted(accepted.media_type, content_type=f"{accepted.media_type};g={group};v={version};as={kind}")


def _negotiate(accept: str, endpoint: Representations) -> Accepted | None:
    """The first media type that a clause requests and the endpoint has."""
    if not accept:
        return Accepted(JSON)
    for clause in parse_accept(accept):
        target = clause.target
        for media_type in endpoint.media_types:
            if clause.matches(media_type) and endpoint.allows(media_type, target, clause.parameters):
                convert = Conversion(target[2], target[1]) if target else None
                return Accepted(media_type, convert, clause.parameters.get("pretty") == "1", media_type)
    return None


def _with_pretty(accepted: Accepted, query: str, user_agent: str) -> Accepted:
    pretty = accepted.media_type == JSON and (accepted.pretty or is_pretty(query, user_agent))
    return accepted if accepted.pretty == pretty else accepted._replace(pretty=pretty)


def is_pretty(query: str, user_agent: str) -> bool:
    """Whether to indent JSON: by the query parameter, else for command lines and browsers."""
    if query:
        return query in ("1", "t", "T", "true", "TRUE", "True")
    return user_agent.startswith(("curl", "Wget", "Mozilla/5.0"))


class Clause(NamedTuple):
    """One clause of an Accept header. `parameters` without `q`."""

    type: str
    subtype: str
    quality: float
    parameters: dict[str, str]

    @property
    def target(self) -> Target | None:
        get = self.parameters.get
        return (get("g", ""), get("v", ""), get("as", "")) if self.parameters.keys() & {"g", "v", "as"} else None

    def matches(self, media_type: str) -> bool:
        kind, _, subtype = media_type.partition("/")
        if self.type == kind:
            return self.subtype in (subtype, "*")
        return self.type == self.subtype == "*"

    def comes_before(self, other: Clause) -> bool:
        """Not a consistent order: of two clauses with different `q`, each may come before the other."""
        return (
            self.quality > other.quality
            or (self.type != "*" and other.type == "*")
            or (self.subtype != "*" and other.subtype == "*")
        )


def parse_accept(header: str) -> list[Clause]:
    """The clauses of an Accept header in the order of preference, without malformed ones. Raises ApiError 431."""
    _check_length("Accept", header)
    clauses = [clause for part in header.split(",") if (clause := _clause(part.strip(" ")))]
    if len(clauses) > 12:  # Go uses another algorithm then; a consistent order will do
        return sorted(clauses, key=lambda c: (-c.quality, c.type == "*", c.subtype == "*"))
    for end in range(1, len(clauses)):  # Go's insertion sort, because `comes_before` is not consistent
        at = end
        while at and clauses[at].comes_before(clauses[at - 1]):
            # a swap, as Go does: equal clauses keep their order
            clauses[at - 1], clauses[at] = clauses[at], clauses[at - 1]
            at -= 1
    return clauses


def _clause(part: str) -> Clause | None:
    media_type, *parameters = part.split(";")
    kind, _, rest = media_type.partition("/")
    subtype, _, more = rest.partition("/")
    kind, subtype = kind.strip(" "), subtype.strip(" ")  # spaces only, as goautoneg
    if not rest and kind == "*":
        subtype = "*"
    elif not rest or more:
        return None
    quality = 1.0
    kept: dict[str, str] = {}  # the last of two equal names wins, as in goautoneg
    for parameter in parameters:
        name, _, rest = parameter.partition("=")
        value, _, more = rest.partition("=")
        if not rest or more:
            continue
        if name.strip(" ") == "q":
            quality = _quality(value)
        else:
            kept[name.strip(" ")] = value.strip(" ")
    return Clause(kind, subtype, quality, kept)


_DECIMAL: Final = expression(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z", re.ASCII)


def _quality(text: str) -> float:
    """Go's strconv.ParseFloat(text, 32), 0 for what it does not parse."""
    if not _DECIMAL.match(text):
        return 0.0
    try:
        value: float = struct.unpack("f", struct.pack("f", float(text)))[0]
    except OverflowError:
        value = math.copysign(math.inf, float(text))
    return value


# -- Content-Type -----------------------------------------------------------------------------------------------------


def request_format(content_type: str, accepted: Sequence[str] = MEDIA_TYPES) -> str:
    """The media type of a request's body, JSON by default. Raises ApiError 415."""
    if not content_type or content_type == JSON:
        return JSON
    _check_length("Content-Type", content_type)
    media_type = parse_media_type(content_type)
    if media_type not in accepted:
        raise unsupported_media_type(accepted)
    return media_type


def patch_format(content_type: str, accepted: Sequence[str], *, built_in: bool = False) -> str:
    """The type of a patch: the Content-Type up to the first semicolon, case-sensitively.

    Raises ApiError 415, for built-in kinds with go-restful's message; 431.
    """
    _check_length("Content-Type", content_type)
    if built_in and not _names_one(content_type, accepted):
        raise ApiError(415, "415: Unsupported Media Type", "UnsupportedMediaType", {})
    media_type, _, _ = content_type.partition(";")  # no trimming: `json-patch+json ;` is another type
    if media_type not in accepted:
        raise unsupported_media_type(accepted)
    return media_type


_WORD: Final = r"[!#$%&'*+\-.^_`|{}~0-9A-Za-z]+"  # RFC 2045's token
_SPECIAL: Final = r"[()<>@,;:\\\"/\[\]?=]"  # what a backslash escapes in a quoted text; elsewhere it is itself
_TYPE: Final = expression(rf"{_WORD}(/{_WORD})?\Z")
_PARAMETER: Final = expression(
    rf'\s*;\s*({_WORD})\s*=\s*(?:({_WORD})|"((?:[^"\\\r\n]|\\{_SPECIAL}|\\(?!{_SPECIAL}))*)")'
)
_ESCAPED: Final = expression(rf"\\({_SPECIAL})")


def parse_media_type(header: str) -> str:
    """The media type of a Content-Type, in lower case; "" where Go's mime.ParseMediaType gives an error."""
    base, _, _ = header.partition(";")
    media_type = base.strip().lower()
    if not _TYPE.match(media_type):
        return ""
    at, end = len(base), len(header.rstrip())
    seen: dict[str, str] = {}
    while at < end:
        match = _PARAMETER.match(header, at)
        if match is None:
            return media_type if header[at:].strip() == ";" else ""
        value = match[2] or _ESCAPED.sub(r"\1", match[3])
        if seen.setdefault(match[1].lower(), value) != value:  # Go allows a parameter twice with one value
            return ""
        at = match.end()
    return media_type


# -- Accept-Encoding --------------------------------------------------------------------------------------------------


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether the header has the bare word `gzip`; neither `gzip;q=1` nor `*` will do."""
    return "gzip" in accept_encoding and _GZIP.search(accept_encoding) is not None


_GZIP: Final = expression(r"(?:^|,)\s*+gzip\s*+(?:,|\Z)")


def compresses(accept_encoding: str, size: int) -> bool:
    """Whether a body of `size` bytes is compressed (with gzip at level 1, like upstream's). Watches are not."""
    return size > GZIP_THRESHOLD and accepts_gzip(accept_encoding)


# -- Warning ----------------------------------------------------------------------------------------------------------


def warning_header(text: str) -> str | None:
    """The value of a Warning header; None for a text with control characters, which headers cannot contain."""
    if not text.isprintable() and any(unicodedata.category(char) in ("Cc", "Cs") for char in text):
        return None
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'


def warning_headers(texts: Iterable[str]) -> list[str]:
    """The values of a response's Warning headers: each text once, in order.

    If they exceed MAX_WARNING_RUNES, each is truncated, and those beyond the limit are left out.
    """
    unique = [text for text in dict.fromkeys(texts) if text]
    headers: list[str] = []
    written = 0
    for position, text in enumerate(unique):
        header = warning_header(text)
        if header is None:  # it cannot be sent, and the others can
            continue
        written += len(text)
        if written > MAX_WARNING_RUNES:
            return _truncated(unique, position)  # all of them anew, each cut
        headers.append(header)
    return headers


def _truncated(texts: list[str], position: int) -> list[str]:
    """The headers if the text at `position` does not fit: all up to it, and more until the limit is reached."""
    headers: list[str] = []
    written = 0
    for at, text in enumerate(texts):
        if at > position and written >= MAX_WARNING_RUNES:
            break
        cut = text[:MAX_TRUNCATED_WARNING_RUNES]
        if header := warning_header(cut):
            headers.append(header)
            written += len(cut)
    return headers
