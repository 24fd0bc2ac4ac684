"""What a server is started with."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 6440

Durability = Literal["full", "normal"]


@dataclass(frozen=True, slots=True)
class Config:
    """`data` None keeps everything in memory. `port` 0 picks a free one."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    data: Path | None = None
    durability: Durability = "full"
    kubeconfig: Path | None = None
    files: tuple[Path, ...] = field(default=())
