"""`noxu serve`: run the server until it is stopped.

When it has stopped, everything is written and closed. Then the process ends at once: freeing the objects of a large server
one by one takes seconds.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from typing import NoReturn

from noxu.apiserver import server
from noxu.apiserver.config import DEFAULT_DATA, Audit, Authentication, Config, Log


def run(options: argparse.Namespace) -> int:
    """Exit status 0: stopped; 1: could not start. If it stops in a process of its own, this does not return."""
    config = Config(
        host=options.host,
        port=options.port,
        data=None if options.memory else options.data or DEFAULT_DATA,
        durability=options.durability,
        kubeconfig=options.kubeconfig,
        files=tuple(options.files),
        features=options.features,
        annotate_invalid=options.annotate_invalid,
        webhook_services=tuple(options.webhook_service),
        event_ttl=options.event_ttl,
        profile=options.profile,
        controllers=options.controllers,
        admission_plugins=options.admission_plugins,
        kinds=tuple(options.kinds),
        authorization_modes=options.authorization_mode,
        authentication=_authentication(options),
        audit=_audit(options),
        log=Log(options.log, _level(options), options.log_requests),
        etcd=options.etcd,
        tls=options.tls,
        external_hostname=options.external_hostname,
        listen=tuple(options.listen),
        exit_with_parent=options.exit_with_parent,
        cluster_signing_cert_file=options.cluster_signing_cert_file,
        cluster_signing_key_file=options.cluster_signing_key_file,
    )
    try:
        _stopped = server.run(config)  # kept until the end, see the module
    except server.StartError as error:
        print(f"noxu: {error}", file=sys.stderr)
        return 1
    if options.own_process:
        _end_process()
    return 0


def _authentication(options: argparse.Namespace) -> Authentication:
    headers = {
        name: given
        for name in (
            "requestheader_allowed_names",
            "requestheader_username_headers",
            "requestheader_uid_headers",
            "requestheader_group_headers",
            "requestheader_extra_headers_prefix",
        )
        if (given := _items(getattr(options, name)))
    }
    return Authentication(
        anonymous_auth=options.anonymous_auth,
        token_auth_file=options.token_auth_file,
        service_account_key_files=tuple(options.service_account_key_file),
        service_account_signing_key_file=options.service_account_signing_key_file,
        service_account_issuers=tuple(options.service_account_issuer),
        service_account_lookup=options.service_account_lookup,
        service_account_max_token_expiration=options.service_account_max_token_expiration,
        service_account_jwks_uri=options.service_account_jwks_uri,
        api_audiences=_items(options.api_audiences),
        requestheader_client_ca_file=options.requestheader_client_ca_file,
        **headers,
    )


def _items(texts: list[str]) -> tuple[str, ...]:
    """The items of comma-separated lists."""
    return tuple(item.strip() for text in texts for item in text.split(",") if item.strip())


def _level(options: argparse.Namespace) -> int:
    if options.verbose:
        return logging.DEBUG
    return logging.WARNING if options.quiet else logging.INFO


def _audit(options: argparse.Namespace) -> Audit:
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


def _end_process() -> NoReturn:
    """End the process with status 0, without freeing its memory. Raises BrokenPipeError."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
