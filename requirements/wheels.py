"""For which platforms and versions of Python do all pinned packages have wheels?

A wheel's name says where it can be installed. For example `orjson-3.13.0-cp313-cp313-musllinux_1_2_x86_64.whl` is for
CPython 3.13 on Linux with musl 1.2 or newer, x86_64. A package that a platform does not need, as its marker says, does
not lack there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, dropwhile
from typing import Final, NamedTuple

from packaging.markers import Marker
from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms
from packaging.utils import parse_wheel_filename

from requirements.pins import Pin

VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14", "3.15")
START: Final = "| without wheels |"  # of the table


class Platform(NamedTuple):
    name: str
    tags: tuple[str, ...]  # those of wheels that it runs
    system: str  # sys.platform
    machine: str  # platform.machine()


def _glibc(machine: str) -> tuple[str, ...]:
    return (f"manylinux2014_{machine}", *(f"manylinux_2_{minor}_{machine}" for minor in range(17, 29)))


def _musl(machine: str) -> tuple[str, ...]:
    return tuple(f"musllinux_1_{minor}_{machine}" for minor in range(3))


PLATFORMS: Final = (
    Platform("Linux, glibc 2.28, x86_64", _glibc("x86_64"), "linux", "x86_64"),
    Platform("Linux, glibc 2.28, aarch64", _glibc("aarch64"), "linux", "aarch64"),
    Platform("Linux, musl 1.2 (Alpine), x86_64", _musl("x86_64"), "linux", "x86_64"),
    Platform("Linux, musl 1.2 (Alpine), aarch64", _musl("aarch64"), "linux", "aarch64"),
    Platform("macOS 13, arm64", tuple(mac_platforms((13, 0), "arm64")), "darwin", "arm64"),
    Platform("macOS 13, x86_64", tuple(mac_platforms((13, 0), "x86_64")), "darwin", "x86_64"),
    Platform("Windows, x86_64", ("win_amd64",), "win32", "AMD64"),
    Platform("Windows, arm64", ("win_arm64",), "win32", "ARM64"),
)


def replaced(page: str, table: str) -> str:
    """The page with this table instead of its old one."""
    before, start, rest = page.partition(START)
    if not start:
        raise ValueError(f"no table begins with {START!r}")
    lines = dropwhile(lambda line: line.startswith("|"), (start + rest).splitlines(keepends=True))
    return before + table + "".join(lines)


def table(pins: Iterable[Pin], wheels: Mapping[str, Iterable[str]]) -> str:
    """The packages without wheels by platform and version, in Markdown. `wheels` are the names of files by package."""
    pins = sorted(pins)
    rows = [
        "| " + " | ".join(cells) + " |\n"
        for cells in (
            ("without wheels", *(f"Python {version}" for version in VERSIONS)),
            ("---",) * (len(VERSIONS) + 1),
            *(
                (platform.name, *(", ".join(lacking(pins, wheels, platform, version)) or "–" for version in VERSIONS))
                for platform in PLATFORMS
            ),
        )
    ]
    return "".join(rows)


def lacking(pins: Iterable[Pin], wheels: Mapping[str, Iterable[str]], platform: Platform, version: str) -> list[str]:
    """The packages that would have to be compiled."""
    tags = frozenset(_tags(platform, version))
    environment = {
        "sys_platform": platform.system,
        "platform_machine": platform.machine,
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
        "python_version": version,
        "python_full_version": f"{version}.0",
    }
    return [
        pin.name
        for pin in pins
        if (pin.marker is None or Marker(pin.marker).evaluate(environment))
        and all(tags.isdisjoint(parse_wheel_filename(wheel)[3]) for wheel in wheels[pin.name])
    ]


def _tags(platform: Platform, version: str) -> Iterable[Tag]:
    major, minor = map(int, version.split("."))
    abi = f"cp{major}{minor}"
    return chain(
        cpython_tags((major, minor), [abi], platform.tags), compatible_tags((major, minor), abi, platform.tags)
    )
