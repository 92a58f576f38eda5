"""The disk of the broker is full: it stops, and everything continues when there is space again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.broker.fixture import make_topics, without_broker
from tests.broker.jars import BrokerUnavailableError
from tests.broker.local_kafka import LocalKafka
from tests.faults.figures import Figures
from tests.faults.trial import Servers, trial

DISK_MB = 400
FULL_SECONDS = 120.0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    path = tmp_path / "disk"
    path.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(path)], check=True
    )
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.full
def test_a_full_disk_of_the_broker(
    disk: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, report: Callable[[Figures], None]
) -> None:
    try:
        broker = LocalKafka({"log.dirs": str(disk / "data")}).__enter__()
    except BrokerUnavailableError as error:
        without_broker(str(error))
    servers = Servers(broker.bootstrap_servers, broker.bootstrap_servers)
    topics = make_topics(broker.bootstrap_servers, "disk-full", [])
    try:
        with trial(tmp_path, servers, topics) as live:
            service = live.start()
            live.flowing()
            filler = disk / "filler"
            with filler.open("wb", buffering=0) as file, suppress(OSError):
                while True:
                    file.write(bytes(2**20))
            live.wait(lambda: not broker.runs, FULL_SECONDS, "the broker did not end")
            broker.kill()
            filler.unlink()
            live.mark()
            broker.start()
            live.flowing()
            assert service.runs, service.tail()
            note = "the broker ends; with space and a start, the same process continues"
            report(live.finish("the broker's disk is full", 1, note))
    finally:
        broker.close()
