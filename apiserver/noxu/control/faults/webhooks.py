"""What faults do to the calls of webhooks, and of functions in their place: they are late, fail, or deny what they review.

A rule matches the request that is reviewed: its verb, resource, namespace, name and user. A review of a conversion has none
of them, so rules that match one are not about it; nothing can deny it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Final

from noxu.api import codec
from noxu.control.faults.armed import Armed, Asked
from noxu.control.faults.rules import CONVERSION
from noxu.values import Object
from noxu.webhook.client import CallFailed, WebhookEndpoint, WebhookReply

_VERBS: Final = {"CREATE": "create", "UPDATE": "update", "DELETE": "delete", "CONNECT": "create"}


class WebhookFaults:
    """What stands before the calls of a server's webhooks while rules are about them. `now` is object time."""

    def __init__(self, armed: Armed, now: Callable[[], datetime]) -> None:
        self._armed = armed
        self._now = now

    async def __call__(self, endpoint: WebhookEndpoint, body: bytes, seconds: int) -> WebhookReply | None:
        """An answer in the place of the webhook's; None: it is called. Raises CallFailed."""
        review = codec.decode_json(body).value
        asked = asked_of(review if isinstance(review, dict) else {})
        for hit in self._armed.hits(asked, self._now(), "webhook"):
            what = hit.rule.effect.parameters["what"]
            if what == "delay":
                delay = self._armed.delay(hit)
                await asyncio.sleep(min(delay, seconds))
                if delay >= seconds:
                    raise CallFailed(_failure(endpoint, seconds, "context deadline exceeded"))
            elif what == "fail":
                raise CallFailed(_failure(endpoint, seconds, "dial tcp: connect: connection refused"))
            elif isinstance(review, dict) and review.get("kind") == "AdmissionReview":
                return _denial(review, hit.rule.effect.parameters["message"])
        return None


def asked_of(review: Object) -> Asked:
    """What rules see of a review."""
    request = review.get("request") or {}
    resource = request.get("resource") or {}
    name = ".".join(filter(None, (resource.get("resource", ""), resource.get("group", ""))))
    user = (request.get("userInfo") or {}).get("username", "")
    return Asked(
        _VERBS.get(request.get("operation", ""), CONVERSION),
        name,
        request.get("subResource", ""),
        request.get("namespace", ""),
        request.get("name", ""),
        user,
        "",
        request.get("uid", ""),
    )


def _failure(endpoint: WebhookEndpoint, seconds: int, why: str) -> str:
    return f'Post "{endpoint.url}?timeout={seconds}s": {why}'


def _forbidden(message: str) -> Object:
    return {"code": 403, "reason": "Forbidden", "message": message}


def _denial(review: Object, message: str) -> WebhookReply:
    response = {"uid": review["request"]["uid"], "allowed": False, "status": _forbidden(message)}
    answer = {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}
    return WebhookReply(200, "application/json", codec.encode(answer, sort_keys=False))
