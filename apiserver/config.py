"""What a server is started with."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple

from apiserver.features import Features

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 6440
HTTPS_PORT: Final = 443
DEFAULT_DATA: Final = Path(".noxu")

Durability = Literal["full", "normal"]


class ServiceName(NamedTuple):
    """What webhooks' configurations call a service."""

    namespace: str
    name: str
    port: int


@dataclass(frozen=True, slots=True)
class Config:
    """`data` None keeps everything in memory. `port` 0 picks a free one.

    `annotate_invalid`: stored objects that no longer validate are marked (see registry.annotator).
    `webhook_services` says where, as host:port, webhooks are that a service of a cluster stands for.
    """

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    data: Path | None = None
    durability: Durability = "full"
    kubeconfig: Path | None = None
    files: tuple[Path, ...] = field(default=())
    features: Features = Features()
    annotate_invalid: bool = False
    webhook_services: tuple[tuple[ServiceName, str], ...] = ()
