"""The machine and the versions of a measurement."""

from __future__ import annotations

import hashlib
import os
import platform
from importlib.metadata import version
from pathlib import Path

from streamduel import __version__
from tests.broker.jars import kafka_version

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("kafka-python", "crc32c", "msgspec", "mmh3", "numba", "numpy", "pydantic")


def facts() -> list[tuple[str, str]]:
    """Names and values, in the order in which they are shown."""
    packages = [f"{package} {version(package)}" for package in PACKAGES]
    return [
        ("processor", f"{_model()}, {cores()} cores"),
        ("memory", f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"),
        ("system", f"{_system()}, {platform.machine()}"),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}"),
        ("packages", ", ".join([f"streamduel {__version__}", *packages])),
        ("Apache Kafka", f"{kafka_version()}, one broker on the same machine"),
    ]


def digest() -> str:
    """A digest of all measured sources."""
    digest = hashlib.sha256()
    for folder in ("streamduel", "connectors"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def cores() -> int:
    """The number of cores."""
    return os.cpu_count() or 1


def load() -> str:
    """The present load average of the machine."""
    return f"{os.getloadavg()[0]:.1f}"


def _model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return platform.system()
