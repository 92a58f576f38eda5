"""The jars of Apache Kafka, which Maven fetches once into the cache directory of the user."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

from tests.cached import cached

POM = Path(__file__).with_name("pom.xml")

FETCH_SECONDS = 300.0  # 45 MB of jars; at 200 kB/s that takes four minutes

LOG_TAIL_LINES = 40


class BrokerUnavailableError(RuntimeError):
    """This kind of broker is not available; the message has the reason."""


def kafka_version() -> str:
    """Return the version of Apache Kafka in `pom.xml`."""
    version = ElementTree.parse(POM).findtext(".//{*}properties/{*}kafka.version")
    assert version is not None, f"{POM.name} names no kafka.version"
    return version


def cached_jars() -> Path:
    """Return the directory of the jars of `pom.xml`; Maven fetches them the first time."""
    digest = hashlib.sha256(POM.read_bytes()).hexdigest()[:8]
    return cached(f"kafka-{kafka_version()}-{digest}", _fetch_jars)


def _fetch_jars(scratch: Path) -> Path:
    jars = scratch / "jars"
    shutil.copy(POM, scratch)
    goal = "dependency:copy-dependencies"
    run_program(
        [program("mvn"), "-q", "-B", goal, f"-DoutputDirectory={jars}"],
        FETCH_SECONDS,
        cwd=scratch,
    )
    return jars


def program(name: str) -> str:
    """Return the path of a program, such as that of `JAVA_HOME`."""
    java_home = os.environ.get("JAVA_HOME")
    found = (java_home and shutil.which(name, path=f"{java_home}/bin")) or shutil.which(name)
    if found is None:
        raise BrokerUnavailableError(f"there is no {name!r} on the PATH")
    return found


def run_program(command: list[str], seconds: float, *, cwd: Path) -> None:
    """Run a program that prepares a broker; its error has the end of what it prints."""
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise BrokerUnavailableError(f"{name} did not finish within {seconds:.0f} s") from None
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-LOG_TAIL_LINES:])
        raise BrokerUnavailableError(f"{name} failed with status {done.returncode}:\n{tail}")
