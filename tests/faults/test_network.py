"""A network between the service and three brokers that is cut, slow, or loses packets."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from streamduel_kafka.client import ConsumerOptions
from streamduel_kafka.connecting import connect
from tests.broker.cluster import LocalCluster
from tests.broker.fixture import Topics, on_both_clients
from tests.broker.proxy import Proxies
from tests.faults.figures import Figures
from tests.faults.scale import scaled
from tests.faults.trial import Servers, trial

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

Report = Callable[[Figures], None]


def reset_often(proxies: Proxies) -> None:
    for _ in range(5):
        proxies.reset()
        time.sleep(2.0)


FAULTS: dict[str, tuple[str, Callable[[Proxies], None], float]] = {
    "cut": ("network cut for {seconds:.0f} s", Proxies.cut, scaled(90.0, 5.0)),
    "cut-one": ("network to one of three brokers cut for {seconds:.0f} s",
                lambda proxies: proxies.cut(0), 30.0),
    "slow": ("network slow: 500 ms in each direction, for {seconds:.0f} s",
             lambda proxies: proxies.slow(0.5), 30.0),
    "lossy": ("network loses 2 % of the segments for {seconds:.0f} s",
              lambda proxies: proxies.lose(0.02), 30.0),
    "resets": ("connections reset five times", reset_often, 0.0),
}  # fmt: skip

QUICK = ("cut",)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.full) for name in FAULTS]
)
def test_network(
    cluster: LocalCluster, cluster_topics: Topics, tmp_path: Path, report: Report, name: str
) -> None:
    fault, inflict, seconds = FAULTS[name]
    servers = Servers(cluster.bootstrap_servers, cluster.proxied_servers)
    with trial(tmp_path, servers, cluster_topics) as live:
        service = live.start()
        live.flowing()
        began = time.monotonic()
        inflict(cluster.proxies)
        time.sleep(seconds)
        ended = time.monotonic()
        commits = sum(began < seen.at < ended for seen in live.reader.seen)
        live.mark()
        cluster.proxies.heal()
        live.flowing()
        assert service.runs, service.tail()
        silence = live.reader.silence(began, time.monotonic())
        note = f"{commits} assignments during it; longest silence {silence:.1f} s"
        report(live.finish(fault.format(seconds=seconds), 1, note))


@on_both_clients
def test_a_client_connects_though_answers_take_half_a_second(
    cluster: LocalCluster, client: str
) -> None:
    settings = {
        "client": client,
        "bootstrap_servers": cluster.proxied_servers.split(","),
        "security_protocol": "PLAINTEXT",
    }
    cluster.proxies.slow(0.25)
    try:
        with closing(connect(ConsumerOptions(), settings, 60.0)) as consumer:
            assert consumer.partitions("absent", 60.0) == []
    finally:
        cluster.proxies.heal()
