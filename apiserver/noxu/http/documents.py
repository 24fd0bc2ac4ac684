"""Documents besides objects: discovery, OpenID, health, version and the list of paths. OpenAPI is in `openapi`.

OpenID (pkg/routes/openidmetadata.go, pkg/serviceaccount/openidmetadata.go): other programs verify tokens of service accounts
by these documents. They exist if the issuer is an https URL, as OpenID Connect requires. They name this server as the place
of the keys, unless another one is configured.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final
from weakref import ref

from noxu.api import codec, errors
from noxu.clock import SYSTEM_CLOCK
from noxu.discovery import groups
from noxu.http import negotiation, responses
from noxu.http.answer import NOT_CACHED, Answer, Headers, text_answer
from noxu.http.request import Query, first
from noxu.observability import health
from noxu.registry.offload import offload
from noxu.registry.served_resources import ServedResources
from noxu.releases import NEWEST
from noxu.values import Object

if TYPE_CHECKING:
    from noxu.http.openapi import OpenAPI


import logging

from noxu.security.keys import PublicKey
from noxu.security.tokens import Tokens

MAX_MADE: Final = 8  # aggregated documents, in different representations, that are cached
_PER_RESOURCE: Final = 16  # bytes for the limit of the loop

Scrape = Callable[[str], Awaitable[Answer]]
"""Answers with metrics, in a format that is accepted (the header Accept)."""


class Documents:
    """The documents of one server. `served_resources` returns the current served resources; documents made from an older one are made again.

    `address` is the server's `host:port`, `own_version` returns the version of this program, `cbor` is the feature gate
    CBORServingAndStorage, `release` that of Kubernetes whose version the server tells.
    """

    def __init__(
        self,
        served_resources: Callable[[], ServedResources],
        address: str,
        own_version: Callable[[], str],
        checks: health.Checks,
        now: Callable[[], datetime] = SYSTEM_CLOCK.now,
        *,
        cbor: bool = False,
        release: int = NEWEST,
    ) -> None:
        self._served_resources = served_resources
        self.address = address
        self.own_version = own_version
        self._checks = checks
        self._single_checks = {
            f"/{at}/{name}": check for at in health.ENDPOINTS for name, check in checks.of(at).items()
        }
        self._now = now
        self._cbor = cbor
        self.release = release
        self.health_results = health.HealthResults()
        self.notes: Callable[[], Sequence[str]] = tuple
        """What people should know who look at the health of the server."""
        self.metrics: dict[str, Scrape] = {}
        """By path."""
        self.openid: Mapping[str, Callable[[], Answer]] = {}
        """By path."""
        self._openapi: OpenAPI | None = None
        self._made_from: ref[ServedResources] | None = None  # which does not keep deleted definitions alive
        self._made: dict[object, tuple[bytes, str]] = {}

    def at(self, served_resources: ServedResources) -> Documents:
        """The documents of discovery and OpenAPI that this server would have with other resources."""
        return Documents(
            lambda: served_resources,
            self.address,
            self.own_version,
            self._checks,
            self._now,
            cbor=self._cbor,
            release=self.release,
        )

    async def answer(self, path: str, query: Query, headers: Mapping[str, str]) -> Answer:
        """The document at a path. Raises ApiError."""
        if not path.startswith("/"):
            return self._paths(404)  # the targets of OPTIONS and CONNECT, which need not be paths
        trimmed = path.rstrip("/") or "/"
        if (check := self._single_checks.get(trimmed)) is not None:
            reason = await check()  # the reason is shown here only, not in the report
            return text_answer(f"internal server error: {reason}\n", 500) if reason else text_answer("ok")
        parts = trimmed.split("/")[1:]
        if parts[0] in health.ENDPOINTS:
            return self._paths(404) if len(parts) > 1 else await self._health(parts[0], query)
        if path in self.metrics:
            return await self.metrics[path](headers.get("Accept", ""))
        if (document := self.openid.get(trimmed)) is not None:
            return document()
        if trimmed == "/version":
            negotiation.require_representation(headers.get("Accept", ""), [negotiation.JSON])
            return Answer(codec.pretty(health.version(self.own_version(), self.release), sort_keys=False))
        if parts[0] in ("api", "apis"):
            return await self._discovery(parts, query, headers)
        if parts[0] == "openapi":
            return await self._published().answer(parts, query, headers)
        return self._paths(200 if trimmed == "/" else 404)

    # -- discovery

    async def _discovery(self, parts: list[str], query: Query, headers: Mapping[str, str]) -> Answer:
        served_resources, accept = self._served_resources(), headers.get("Accept", "")
        if len(parts) == 1:
            aggregated = negotiation.negotiate_aggregated_discovery(accept, cbor=self._cbor)
            if aggregated is not None:
                return await self._aggregated(served_resources, parts[0] == "api", aggregated, headers)
        endpoint = _endpoint(served_resources, parts, cbor=self._cbor)
        accepted = negotiation.negotiate(accept, endpoint, pretty=first(query, "pretty"))

        def encoded() -> bytes | None:
            document = self._plain(served_resources, parts)
            return None if document is None else responses.encode(document, accepted)

        body = await offload(_weight(served_resources), encoded)
        if body is None:
            raise errors.page_not_found()
        return Answer(body, 200, accepted.content_type)

    def _plain(self, served_resources: ServedResources, parts: list[str]) -> Object | None:
        match parts:
            case ["api"]:
                return groups.api_versions(self.address)
            case ["apis"]:
                return groups.group_list(served_resources, self.address)
            case ["api", version]:
                return groups.resource_list(served_resources, "", version)
            case ["apis", group]:
                return groups.group(served_resources, group)
            case ["apis", group, version]:
                return groups.resource_list(served_resources, group, version)
        return None

    async def _aggregated(
        self, served_resources: ServedResources, core: bool, accepted: negotiation.Accepted, headers: Mapping[str, str]
    ) -> Answer:
        body, tag = await self._cached(served_resources, accepted, core=core)
        extra: Headers = (("ETag", tag), ("Vary", "Accept"), ("Cache-Control", "public"))
        if headers.get("If-None-Match") == tag:  # clients keep discovery documents with their tags
            return Answer(b"", 304, accepted.content_type, extra)
        return Answer(body, 200, accepted.content_type, extra)

    async def _cached(
        self, served_resources: ServedResources, accepted: negotiation.Accepted, *, core: bool
    ) -> tuple[bytes, str]:
        """The aggregated document in a representation with its ETag, cached until the served resources change."""
        if self._made_from is None or served_resources is not self._made_from():
            self._made_from, self._made = ref(served_resources), {}  # what was made from older ones goes with it
        key, documents = (core, accepted), self._made
        if key not in documents:
            if len(documents) == MAX_MADE:
                documents.clear()  # clients send few representations, so their order is not kept

            def make() -> tuple[bytes, str]:
                document = groups.aggregated(served_resources, core=core)
                return responses.encode(document, accepted), groups.etag(document)

            # of these resources, also if there are newer ones by now
            made: tuple[bytes, str] | None = served_resources.documents.get(key)
            if made is None:
                made = await offload(_weight(served_resources), make)
                served_resources.documents.add(key, made, len(made[0]))
            documents[key] = made
        return documents[key]

    # -- OpenAPI

    def _published(self) -> OpenAPI:
        """Created on first use, since most servers in tests serve no OpenAPI."""
        if self._openapi is None:
            from noxu.http.openapi import OpenAPI

            self._openapi = OpenAPI(  # kept: it has the documents
                self._served_resources, self._now, cbor=self._cbor, release=self.release
            )
        return self._openapi

    # -- health

    async def _health(self, endpoint: str, query: Query) -> Answer:
        report = await health.report(
            endpoint,
            self._checks.of(endpoint),
            verbose="verbose" in query,
            excluded=query.get("exclude", []),
            results=self.health_results,
            notes=self.notes(),
        )
        return text_answer(report.text, 200 if report.healthy else 500)

    def _paths(self, status: int) -> Answer:
        """The list of all paths."""
        served_resources = self._served_resources()
        paths = {"/", "/api", "/api/v1", "/apis", "/openapi/v2", "/openapi/v3", "/version"}
        paths |= self.metrics.keys()  # only what is served here, as upstream
        paths |= {f"/{endpoint}" for endpoint in health.ENDPOINTS} | self.openid.keys() | self._single_checks.keys()
        for group, versions in served_resources.groups.items():
            if group:
                paths |= {f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)}
        return Answer(codec.pretty({"paths": sorted(paths)}, sort_keys=False), status, headers=NOT_CACHED)


def _weight(served_resources: ServedResources) -> int:
    """The bytes of a document about all resources, about; one that takes 10 ms to make weighs as much as LOOP_LIMIT."""
    return len(served_resources.by_path) * _PER_RESOURCE


def _endpoint(served_resources: ServedResources, parts: list[str], *, cbor: bool) -> negotiation.Representations:
    """The representations of a discovery document. `cbor`: only the lists of a built-in version's resources have it."""
    match parts:
        case ["api" | "apis"]:
            endpoint = negotiation.BUILT_IN_DOCUMENT
            return negotiation.routed_with_cbor(endpoint) if cbor else endpoint
        case ["api", _]:
            is_list = True
        case ["apis", group, *rest] if group in served_resources.built_in_groups:
            is_list = len(rest) == 1
        case ["api", *_]:
            is_list = False
        case _:
            return negotiation.DOCUMENT
    endpoint = negotiation.BUILT_IN_DOCUMENT
    return negotiation.with_cbor(endpoint) if cbor and is_list else endpoint


# -- OpenID ------------------------------------------------------------------------------------------------------------


CONFIGURATION: Final = "/.well-known/openid-configuration"
KEYS: Final = "/openid/v1/jwks"
KEYS_TYPE: Final = "application/jwk-set+json"
_CACHED: Final[Headers] = (("Cache-Control", "public, max-age=3600"),)

log = logging.getLogger("noxu")


def openid_documents(tokens: Tokens, url: str, keys_uri: str = "") -> Mapping[str, Callable[[], Answer]]:
    """The documents by path. `url` is the server's, `keys_uri` the place of the keys, if it is another one."""
    issuer = tokens.issuers[0]
    if not issuer.startswith("https://"):
        return {}

    def configuration() -> Answer:
        algorithms = sorted({key.algorithms[0] for key in _keys(tokens)})
        body = {
            "issuer": issuer,
            "jwks_uri": keys_uri or f"{url}{KEYS}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": algorithms,
        }
        return Answer(codec.encode(body, sort_keys=False), headers=_CACHED)

    def keys() -> Answer:
        body = {"keys": [key.jwk() for key in _keys(tokens)]}
        return Answer(codec.encode(body, sort_keys=False), content_type=KEYS_TYPE, headers=_CACHED)

    return {CONFIGURATION: configuration, KEYS: keys}


def _keys(tokens: Tokens) -> tuple[PublicKey, ...]:
    """Raises ApiError."""
    try:
        return tokens.keys.public()
    except (OSError, ValueError) as error:
        log.error("the keys of service account tokens cannot be read: %s", error)  # noqa: TRY400 - not a bug
        raise errors.internal_error("the server has no keys, see its log") from None
