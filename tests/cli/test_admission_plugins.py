"""--disable-admission-plugins and --enable-admission-plugins, in the syntax of upstream's flags."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from noxu import cli
from noxu.config import Config
from noxu.features import (
    OF_KUBE_APISERVER,
    OFF_PLUGINS,
    PLUGINS,
    WITH_CONTROLLERS,
    default_plugins,
    plugin_names,
    select_plugins,
)
from noxu.process import running

ALL = frozenset(PLUGINS)
DEFAULT = default_plugins(controllers=True)
AVAILABLE = (
    "available: NamespaceLifecycle, LimitRanger, ServiceAccount, TaintNodesByCondition, PodSecurity, Priority, "
    "DefaultTolerationSeconds, DefaultStorageClass, StorageObjectInUseProtection, OwnerReferencesPermissionEnforcement, "
    "PersistentVolumeClaimResize, RuntimeClass, CertificateApproval, CertificateSigning, CertificateSubjectRestriction, "
    "DefaultIngressClass, MutatingAdmissionPolicy, MutatingAdmissionWebhook, ValidatingAdmissionPolicy, "
    "ValidatingAdmissionWebhook, ResourceQuota"
)

VALUES: list[tuple[str, list[str], list[str]]] = [
    ("no flag", [], []),
    ("an empty value", [""], []),
    ("one name", ["A"], ["A"]),
    ("several names", ["A,B"], ["A", "B"]),
    ("a flag that is repeated", ["A,B", "C"], ["A", "B", "C"]),
    ("a trailing comma is an empty name", ["A,"], ["A", ""]),
    ("spaces belong to the name", ["A, B"], ["A", " B"]),
    ("quotes", ['"A,B",C'], ["A,B", "C"]),
    ("only the first line", ["A,B\nC"], ["A", "B"]),
]


@pytest.mark.parametrize(("flags", "found"), [row[1:] for row in VALUES], ids=[row[0] for row in VALUES])
def test_values_of_a_flag(flags: list[str], found: list[str]) -> None:
    assert plugin_names(flags) == found


SELECTED: list[tuple[str, str, frozenset[str]]] = [
    ("most by default", "", DEFAULT),
    ("one is disabled", "--disable-admission-plugins NamespaceLifecycle", DEFAULT - {"NamespaceLifecycle"}),
    ("the order and repetitions do not matter",
     "--disable-admission-plugins ValidatingAdmissionWebhook,NamespaceLifecycle --disable-admission-plugins NamespaceLifecycle",
     DEFAULT - {"NamespaceLifecycle", "ValidatingAdmissionWebhook"}),
    ("all are disabled", f"--disable-admission-plugins {','.join(PLUGINS)}", frozenset()),
    ("enabling what is enabled", "--enable-admission-plugins MutatingAdmissionWebhook", DEFAULT),
    ("enabling what is not", "--enable-admission-plugins OwnerReferencesPermissionEnforcement", ALL),
    ("disabling what is not enabled", "--disable-admission-plugins OwnerReferencesPermissionEnforcement", DEFAULT),
    ("no accounts in the profile envtest", "--profile envtest", DEFAULT - {"ServiceAccount"}),
    ("no accounts without their controller", "--controllers *,-serviceaccount-controller", DEFAULT - {"ServiceAccount"}),
    ("accounts in spite of that", "--profile envtest --enable-admission-plugins ServiceAccount", DEFAULT),
    ("disabling what only kube-apiserver has", "--disable-admission-plugins NodeRestriction,AlwaysDeny", DEFAULT),
    ("both", "--enable-admission-plugins NamespaceLifecycle --disable-admission-plugins Priority", DEFAULT - {"Priority"}),
]  # fmt: skip


@pytest.mark.parametrize(("flags", "selected"), [row[1:] for row in SELECTED], ids=[row[0] for row in SELECTED])
def test_the_command_passes_them_to_the_server(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, flags: str, selected: frozenset[str]
) -> None:
    configs: list[Config] = []
    monkeypatch.setattr(running, "run", lambda config, **_: configs.append(config))
    assert run(f"serve --memory {flags}").status == 0
    assert [config.admission_plugins for config in configs] == [selected]


REFUSED: list[tuple[str, str, str]] = [
    ("an unknown name", "--disable-admission-plugins Lifecycle",
     f'disable-admission-plugins plugin "Lifecycle" is unknown ({AVAILABLE}); did you mean NamespaceLifecycle?'),
    ("an unknown name to enable", "--enable-admission-plugins Lifecycle",
     f'enable-admission-plugins plugin "Lifecycle" is unknown ({AVAILABLE}); did you mean NamespaceLifecycle?'),
    ("another spelling", "--disable-admission-plugins namespacelifecycle",
     f'disable-admission-plugins plugin "namespacelifecycle" is unknown ({AVAILABLE}); did you mean NamespaceLifecycle?'),
    ("an empty name", "--disable-admission-plugins NamespaceLifecycle,",
     f'disable-admission-plugins plugin "" is unknown ({AVAILABLE})'),
    ("what only kube-apiserver has", "--enable-admission-plugins NodeRestriction",
     f'enable-admission-plugins plugin "NodeRestriction" is one of kube-apiserver\'s that this server does not have ({AVAILABLE})'),
    ("an overlap",
     "--enable-admission-plugins ValidatingAdmissionPolicy,NamespaceLifecycle "
     "--disable-admission-plugins NamespaceLifecycle,ValidatingAdmissionPolicy",
     "[NamespaceLifecycle ValidatingAdmissionPolicy] in enable-admission-plugins and disable-admission-plugins overlapped"),
    ("quotes that do not end", '--disable-admission-plugins "A',
     'invalid list of admission plug-ins "\\"A": unexpected end of data'),
    ("several errors", "--disable-admission-plugins A,NamespaceLifecycle --enable-admission-plugins NamespaceLifecycle,B",
     f'enable-admission-plugins plugin "B" is unknown ({AVAILABLE}); '
     f'disable-admission-plugins plugin "A" is unknown ({AVAILABLE}); '
     "[NamespaceLifecycle] in enable-admission-plugins and disable-admission-plugins overlapped"),
]  # fmt: skip


@pytest.mark.parametrize(("flags", "why"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused_flags(run: Callable[..., Any], flags: str, why: str) -> None:
    ran = run(f"serve --memory {flags}")
    assert ran.status == 2
    assert ran.err.splitlines()[-1] == f"noxu serve: error: {why}"


def test_the_python_interface_refuses_the_same_names() -> None:
    with pytest.raises(ValueError, match=re.escape('disable-admission-plugins plugin "x" is unknown')):
        select_plugins(disable=["x"])


def test_the_help_lists_the_plugins(run: Callable[..., Any]) -> None:
    out = " ".join(run("serve --help").out.split())
    assert f"--disable-admission-plugins PLUGIN,... do not run these admission plug-ins: {', '.join(PLUGINS)};" in out


def test_no_plugin_of_this_server_is_listed_as_missing() -> None:
    assert not OF_KUBE_APISERVER & ALL


def test_every_config_runs_the_default_plugins_unless_it_says_otherwise() -> None:
    assert cli.parser_of("serve").parse_args([]).disable_admission_plugins == []
    assert Config().admission_plugins == DEFAULT


def test_plugins_without_controllers() -> None:
    assert {"ServiceAccount"} == WITH_CONTROLLERS
    assert select_plugins() == ALL - OFF_PLUGINS - WITH_CONTROLLERS
    assert select_plugins(controllers=True) == DEFAULT == ALL - OFF_PLUGINS
