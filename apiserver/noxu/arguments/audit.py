"""The arguments of `noxu serve` about the audit log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from noxu.arguments import values
from noxu.config import Audit

if TYPE_CHECKING:
    import argparse


def add(command: argparse.ArgumentParser) -> None:
    options = command.add_argument_group("audit log", "Who asked for what, and how it was answered: see docs/audit.md.")
    options.add_argument(
        "--audit-policy-file", type=Path, metavar="FILE", help="what to record (default: the metadata of every request)"
    )
    options.add_argument("--audit-log-path", default="", metavar="FILE", help="the file to write to; - for stdout")
    options.add_argument(
        "--audit-log-format",
        choices=("json", "legacy"),
        default="json",
        help="the format of a line (default: %(default)s)",
    )
    options.add_argument(
        "--audit-log-mode",
        choices=("batch", "blocking", "blocking-strict"),
        default="blocking",
        help="if the log is written too slowly: batch: events are dropped; blocking: requests wait; blocking-strict: requests "
        "wait for the log, and fail if it cannot be written (default: %(default)s)",
    )
    for name, default, unit, what in (
        ("maxsize", 100, "MB", "the size at which the file is rotated; 0: never"),
        ("maxage", 366, "DAYS", "the days for which rotated files are retained; 0: for ever"),
        ("maxbackup", 100, "N", "the number of rotated files that are retained; 0: all"),
    ):
        options.add_argument(
            f"--audit-log-{name}",
            type=values.count,
            default=default,
            metavar=unit,
            help=f"{what} (default: %(default)s)",
        )
    options.add_argument("--audit-log-compress", action="store_true", help="compress rotated files with gzip")
    options.add_argument(
        "--audit-webhook-config-file", metavar="FILE", help="not supported: the audit log is a file, or stdout"
    )


def audit(options: argparse.Namespace) -> Audit:
    """Raises ValueError."""
    if options.audit_webhook_config_file is not None:
        raise ValueError("--audit-webhook-config-file: audit events are not sent to webhooks; use --audit-log-path")
    return Audit(
        policy_file=options.audit_policy_file,
        log_path=options.audit_log_path,
        format=options.audit_log_format,
        mode=options.audit_log_mode,
        max_size=options.audit_log_maxsize,
        max_age=options.audit_log_maxage,
        max_backups=options.audit_log_maxbackup,
        compress=options.audit_log_compress,
    )
