"""Measure streamduel beside other stream processors, and write the results to RESULTS.md.

    python -m benchmarks.peers [--quick] [--only NAME ...]

With `--quick` or `--only` nothing is written. Installs each peer under `build/peers` the first
time. Needs Java and Maven, as the broker does.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from benchmarks import machine, page
from benchmarks.measure import tell
from benchmarks.page import Measured
from benchmarks.peers.bench import Bench
from benchmarks.peers.catalog import PEERS
from benchmarks.peers.clicks import clicks
from benchmarks.peers.environments import InstallError
from benchmarks.peers.peer import Peer
from benchmarks.peers.runner import RunError
from benchmarks.peers.table import Row, results
from benchmarks.report import Result, show
from tests.broker.local_kafka import LocalKafka

WARM, COUNT, QUICK = 5_000, 75_000, 5_000
"""Distinct duels of each of the four experiments."""


def measure(bench: Bench, peer: Peer, count: int) -> Row:
    """Both runs of a peer, or the reason why there is none."""
    tell(f"{peer.name}, load {machine.load()}")
    warm, main = clicks(WARM, int(count * peer.share) // 100 * 100)
    try:
        figures, recovery = bench.run(peer, warm, main)
    except (InstallError, RunError) as error:
        tell(f"{peer.name}: {error}")
        return Row(peer, reason=str(error).splitlines()[0])
    for mistake in (*figures.mistakes, *recovery.mistakes):
        tell(f"{peer.name}: {mistake}")
    return Row(peer, figures, recovery)


def _end(*_: object) -> None:
    """End the programs, too; a second signal must not interrupt that."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(1)


def main() -> None:
    """Run the peers named on the command line, or all."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="few records, as a trial")
    arguments.add_argument("--only", nargs="+", choices=[peer.name for peer in PEERS])
    given = arguments.parse_args()
    logging.basicConfig(level=logging.ERROR)
    signal.signal(signal.SIGTERM, _end)
    wanted = [peer for peer in PEERS if not given.only or peer.name in given.only]
    measured = Measured.of(partial(compare, wanted), quick=given.quick)
    console = Console(width=max(120, shutil.get_terminal_size().columns))
    for result in measured.results:
        show(result, console)
    if not given.quick and not given.only:
        page.put("peers", measured)


def compare(peers: Sequence[Peer], quick: bool) -> list[Result]:
    """Run these peers, one after the other, on one broker."""
    with tempfile.TemporaryDirectory() as directory, LocalKafka() as broker:
        bench = Bench(broker.bootstrap_servers, Path(directory))
        return results([measure(bench, peer, QUICK if quick else COUNT) for peer in peers])


if __name__ == "__main__":
    main()
