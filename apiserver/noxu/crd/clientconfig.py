"""Validation of webhook client configurations, and of a CRD's conversion (apiserver/pkg/util/webhook)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from noxu.api.field import FieldError, Path, child, forbidden, index, invalid, not_supported, required
from noxu.api.names import dns1035_label, dns1123_subdomain, is_loopback
from noxu.go import base64 as go_base64
from noxu.go import url as go_url
from noxu.go import x509
from noxu.values import Object

REVIEW_VERSIONS: Final = ("v1", "v1beta1")
STRATEGIES: Final = ["None", "Webhook"]
_FORM: Final = "; desired format: https://host[/path]"


def conversion_errors(
    conversion: Object, path: Path, *, known_review_version: bool = True, readable_ca: bool = False
) -> Iterator[FieldError]:
    """The errors in `spec.conversion` of a decoded CRD; fields have the names of the internal type.

    `known_review_version` requires a review version that is supported, `readable_ca` a CA bundle with certificates.
    """
    strategy = conversion["strategy"]
    webhook = conversion.get("webhook") or {}
    config = webhook.get("clientConfig")
    versions = webhook.get("conversionReviewVersions")
    if not strategy:
        yield required(child(path, "strategy"))
    elif strategy not in STRATEGIES:
        yield not_supported(child(path, "strategy"), strategy, STRATEGIES)
    where, reviews = child(path, "webhookClientConfig"), child(path, "conversionReviewVersions")
    if strategy == "Webhook":
        if config is None:
            yield required(where, "required when strategy is set to Webhook")
        else:
            yield from _config_errors(config, where, readable_ca)
        yield from _review_version_errors(versions or [], reviews, known_review_version)
    else:
        why = "should not be set when strategy is not set to Webhook"
        if config is not None:
            yield forbidden(where, why)
        if versions:
            yield forbidden(reviews, why)


def _config_errors(config: Object, path: Path, readable_ca: bool) -> Iterator[FieldError]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from url_errors(url, child(path, "url"))
    elif service is not None:
        # upstream swaps the two: it reports a missing name as a missing namespace, and vice versa
        yield from service_errors(
            {**service, "name": service["namespace"], "namespace": service["name"]}, child(path, "service")
        )
    if config.get("caBundle") and readable_ca:
        yield from ca_bundle_errors(config["caBundle"], child(path, "caBundle"))


def _review_version_errors(versions: list[str], path: Path, must_be_known: bool) -> Iterator[FieldError]:
    if not versions:
        yield required(path)
        return
    seen = set()
    for n, version in enumerate(versions):
        if version in seen:
            yield invalid(index(path, n), version, "duplicate version")
            continue
        seen.add(version)
        for error in dns1035_label(version):
            yield invalid(index(path, n), version, error)
    if must_be_known and seen.isdisjoint(REVIEW_VERSIONS):
        yield invalid(path, versions, f"must include at least one of {', '.join(REVIEW_VERSIONS)}")


def url_errors(text: str, path: Path) -> Iterator[FieldError]:
    """The errors in a webhook's URL. Upstream requires HTTPS; plain HTTP is allowed to loopback, for development."""
    try:
        url = go_url.parse(text)
    except ValueError as error:
        yield required(path, f"url must be a valid URL: {error}{_FORM}")
        return
    if url.scheme != "https" and not (url.scheme == "http" and is_loopback(url.host)):
        yield invalid(path, url.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not url.host:
        yield invalid(path, url.host, f"host must be specified{_FORM}")
    if url.user is not None:
        yield invalid(path, url.user, "user information is not permitted in the URL")
    if url.fragment:
        yield invalid(path, url.fragment, "fragments are not permitted in the URL")
    if url.query:
        yield invalid(path, url.query, "query parameters are not permitted in the URL")


def service_errors(service: Object, path: Path) -> Iterator[FieldError]:
    """The errors in a webhook's service reference, decoded and defaulted."""
    for name in ("name", "namespace"):
        if not service[name]:
            yield required(child(path, name))
    port = service.get("port") or 0
    if not 1 <= port <= 65535:
        yield invalid(child(path, "port"), port, "port is not valid: must be between 1 and 65535, inclusive")
    for detail in _service_path_errors(service.get("path") or "/"):
        yield invalid(child(path, "path"), service["path"], detail)


def _service_path_errors(path: str) -> Iterator[str]:
    if path == "/":
        return
    if path == "//":
        yield "segment[0] may not be empty"
        return
    if not path.startswith("/"):
        yield "must start with a '/'"
    for n, segment in enumerate(
        path[1:].removesuffix("/").split("/")
    ):  # upstream drops the first character, whatever it is
        if not segment:
            yield f"segment[{n}] may not be empty"
            continue
        for error in dns1123_subdomain(segment):
            yield f"segment[{n}]: {error}"


def ca_bundle_errors(bundle: str, path: Path) -> Iterator[FieldError]:
    """The errors in a webhook's CA bundle, the base64 text in its JSON."""
    if why := x509.load_error(go_base64.decode(bundle)):
        yield invalid(path, bundle, why)
