"""The documents by which others verify tokens of service accounts: OpenID Connect Discovery, and the keys
(pkg/routes/openidmetadata.go, pkg/serviceaccount/openidmetadata.go).

They exist if the issuer is one that OpenID Connect allows: an https URL. The server that they name as the place of the keys
is this one, unless it is configured.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from noxu.api import codec, errors
from noxu.http.answer import Answer, Headers
from noxu.security.keys import PublicKey
from noxu.security.tokens import Tokens

CONFIGURATION: Final = "/.well-known/openid-configuration"
KEYS: Final = "/openid/v1/jwks"
KEYS_TYPE: Final = "application/jwk-set+json"
_CACHED: Final[Headers] = (("Cache-Control", "public, max-age=3600"),)

log = logging.getLogger("noxu")


def documents(tokens: Tokens, url: str, keys_uri: str = "") -> Mapping[str, Callable[[], Answer]]:
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
