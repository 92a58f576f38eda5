"""A peer: what it is, and how its program is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from benchmarks.machine import ROOT
from benchmarks.peers.environments import jars, python
from benchmarks.peers.job import Job, Result

PROGRAMS = "benchmarks.peers.programs"

_result = msgspec.json.Decoder(Result).decode


@dataclass(frozen=True)
class Peer:
    """A stream processor with its program.

    Attributes:
        name: with the variant, as the tables show it.
        version: of the stream processor.
        exactly: whether its documentation promises results exactly once.
        settings: what differs from its defaults, and how the job is written for it.
        program: a module of `programs`; for Java, the name of a class.
        requirements: packages of its virtual environment, pinned; none: this environment.
        maven: the folder of a `pom.xml`; its jars are in the environment variable `PEER_JARS`.
        variant: of the program.
        share: of the records that it gets; a slow peer gets fewer.
        unchanged: whether it publishes nothing where nothing changed: then its committed offsets,
            which become visible with its results, show its progress.
        ours: whether it is streamduel.
        uncommitted: whether it always reads records of open transactions.
    """

    name: str
    version: str
    exactly: bool
    settings: str
    program: str
    requirements: tuple[str, ...] = ()
    maven: str = ""
    variant: str = ""
    share: float = 1.0
    unchanged: bool = False
    uncommitted: bool = False
    ours: bool = False

    def command(self, job: Job) -> list[str]:
        """The command that starts the program; installs it the first time."""
        interpreter = str(python(self.requirements)) if self.requirements else sys.executable
        return [interpreter, "-m", f"{PROGRAMS}.{self.program}", job.text()]

    def environment(self) -> Mapping[str, str]:
        """Variables of the program."""
        path = os.pathsep.join((str(ROOT), str(ROOT / "connectors")))
        archives = ",".join(map(str, jars(self.maven))) if self.maven else ""
        return {"PYTHONPATH": path, "PEER_JARS": archives}

    @property
    def topic_settings(self) -> Mapping[str, str]:
        """Of the topic of its results."""
        return {}

    def result(self, value: bytes) -> Result:
        """A published record as a result."""
        return _result(value)

    def wins(self, job: Job) -> Mapping[str, Mapping[str, int]] | None:  # noqa: ARG002
        """The final wins, for a peer whose results have none; otherwise None."""
        return None


class JavaPeer(Peer):
    """A peer whose program is a Java class."""

    def command(self, job: Job) -> list[str]:
        """Start the class with its jars."""
        return [
            "java",
            "-cp",
            os.pathsep.join(map(str, jars(self.maven))),
            self.program,
            job.text(),
        ]
