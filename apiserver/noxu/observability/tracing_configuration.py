"""The file of --tracing-config-file: a TracingConfiguration of apiserver.config.k8s.io.

    apiVersion: apiserver.config.k8s.io/v1
    kind: TracingConfiguration
    endpoint: localhost:4318           # without one, what OTEL_EXPORTER_OTLP_ENDPOINT says
    samplingRatePerMillion: 1000000    # without one, what OTEL_TRACES_SAMPLER says

It is decoded strictly. Upstream: component-base/tracing/api/v1 (ValidateTracingConfiguration), and in k8s.io/apiserver
pkg/server/options/tracing.go. Upstream exports over gRPC, so an endpoint is a target of grpc-go there; this server exports over
HTTP, so it is a host and a port here, `dns:///HOST:PORT` as well, or the URL of an OTLP/HTTP endpoint.
"""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from noxu.api import codec, field
from noxu.api.errors import aggregate, no_kind_registered
from noxu.api.field import FieldError
from noxu.go.structs import INT32, STRING, Field, Presence, Struct, decode
from noxu.values import Object

KIND: Final = "TracingConfiguration"
GROUP: Final = "apiserver.config.k8s.io"
API_VERSIONS: Final = tuple(f"{GROUP}/{version}" for version in ("v1", "v1beta1", "v1alpha1"))
MILLION: Final = 1_000_000
_PATH: Final = "/v1/traces"  # of OTLP/HTTP
_CONFIGURATION: Final = Struct(KIND).define(
    Field("kind", STRING),
    Field("apiVersion", STRING),
    Field("endpoint", STRING, write=Presence.POINTER),
    Field("samplingRatePerMillion", INT32, write=Presence.POINTER),
)


class TracingConfiguration(NamedTuple):
    """`endpoint`: the URL to which spans are sent; "": what the environment says. `rate`: the part of the traces that are
    sampled of those that begin here, from 0 to 1; None: what the environment says."""

    endpoint: str = ""
    rate: float | None = None


def read(file: FilePath) -> TracingConfiguration:
    """Raises ValueError with upstream's message."""
    try:
        text = file.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ValueError(f'unable to read tracing configuration from "{file}": open {file}: {reason}') from None
    try:
        return load(text)
    except ValueError as error:
        raise ValueError(f"{error}: from file {file}") from None


def load(text: bytes) -> TracingConfiguration:
    """The configuration in YAML or JSON. Raises ValueError."""
    beginning = "unable to decode tracing configuration data"
    try:
        document = codec.decode_yaml(text)
    except ValueError as error:
        raise ValueError(f"{beginning}: {error}") from None
    value: Object = document.value
    if not isinstance(value, dict):
        raise ValueError(f"{beginning}: a {KIND} is an object")
    kind, api_version = str(value.get("kind") or ""), str(value.get("apiVersion") or "")
    if kind != KIND or api_version not in API_VERSIONS:
        raise ValueError(f"{beginning}: {no_kind_registered(kind, api_version)}")
    decoded = decode(_CONFIGURATION, value)
    if decoded.error:
        raise ValueError(f"{beginning}: {decoded.error}")
    complaints = [*document.strict, *(f'unknown field "{path}"' for path in decoded.unknown)]
    if complaints:
        raise ValueError(f"{beginning}: {codec.strict_decoding_error(complaints)}")
    endpoint: str = decoded.value.get("endpoint") or ""
    rate: int | None = decoded.value.get("samplingRatePerMillion")
    if wrong := [*_rate_errors(rate), *_endpoint_errors(endpoint)]:
        raise ValueError(f"invalid tracing configuration: {aggregate(map(str, wrong))}")
    return TracingConfiguration(url_of(endpoint) if endpoint else "", None if rate is None else rate / MILLION)


def _rate_errors(rate: int | None) -> list[FieldError]:
    path = "samplingRatePerMillion"
    if rate is not None and rate < 0:
        return [field.invalid(path, rate, "sampling rate must be positive")]
    if rate is not None and rate > MILLION:
        return [field.invalid(path, rate, "sampling rate per million must be less than or equal to one million")]
    return []


def _endpoint_errors(endpoint: str) -> list[FieldError]:
    if not endpoint:
        return []
    try:
        url = urlsplit(endpoint if "//" in endpoint else f"dns://{endpoint}")
        scheme, has_host = url.scheme, bool(urlsplit(url_of(endpoint)).port or urlsplit(url_of(endpoint)).hostname)
    except ValueError as error:
        return [field.invalid("endpoint", endpoint, str(error))]
    if scheme not in ("dns", "http", "https"):
        detail = f"unsupported scheme: {scheme}.  Options are none, dns, http, or https"
        return [field.invalid("endpoint", endpoint, detail)]
    return [] if has_host else [field.invalid("endpoint", endpoint, "it names no host")]


def url_of(endpoint: str) -> str:
    """The URL of an endpoint: `localhost:4318`, `dns:///localhost:4318`, `http://localhost:4318`, or a whole one."""
    address = (
        endpoint
        if endpoint.startswith(("http://", "https://"))
        else f"http://{endpoint.removeprefix('dns://').lstrip('/')}"
    )
    url = urlsplit(address)
    return address if url.path.strip("/") else f"{url.scheme}://{url.netloc}{_PATH}"
