"""The output of the audit log: its policy file, its log file or stdout, and the thread that writes."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from noxu.config import Audit
from noxu.files import warn_if_shared
from noxu.observability.line_writer import LineWriter
from noxu.observability.log_files import MEGABYTE, STDOUT, RotatingFile, Rotation, StandardOutput
from noxu.security import audit_policy
from noxu.security.audit import AuditLog
from noxu.security.audit_policy import EVERYTHING, AuditPolicy


def read_policy(file: Path | None) -> AuditPolicy:
    """The policy; without a file the metadata of everything. Raises ValueError with upstream's message."""
    if file is None:
        return EVERYTHING
    try:
        text = file.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ValueError(
            f'loading audit policy file: failed to read file path "{file}": open {file}: {reason}'
        ) from None
    try:
        return audit_policy.load(text)
    except ValueError as error:
        raise ValueError(f"loading audit policy file: {error}: from file {file}") from None


@contextlib.asynccontextmanager
async def audit_log(config: Audit) -> AsyncIterator[AuditLog | None]:
    """The log of a running server, None without a path; it is complete when the context ends.

    Raises ValueError for an invalid policy, also without a path, and OSError if the file cannot be opened.
    """
    policy = read_policy(config.policy_file)
    if not config.log_path:
        yield None
        return
    output: RotatingFile | StandardOutput
    if config.log_path == STDOUT:
        output = StandardOutput()
    else:
        rotation = Rotation(config.max_size * MEGABYTE, config.max_age, config.max_backups, config.compress)
        output = RotatingFile(Path(config.log_path), rotation)
    output.open()
    if config.log_path != STDOUT:
        warn_if_shared(Path(config.log_path), "--audit-log-path")
    writer = LineWriter(output, "the audit log")
    try:
        yield AuditLog(policy, writer, mode=config.mode, format_=config.format)
    finally:
        await writer.close()
