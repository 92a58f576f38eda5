"""A process that commits twice, and is killed at a step of the second commit."""

from contextlib import closing
from typing import Any

from tests.faults.processes import die
from tests.integration.kafka_connector.bed import Bed, commit, flush, gain, start, work

SESSION_TIMEOUT_MS = 3000
"""How long the group waits for the killed process; the commits take a fraction of it."""


def commit_twice(
    fields: dict[str, Any], last_step: str, instance: str, transaction_timeout_ms: int
) -> None:
    bed = Bed(**fields)
    second = False

    def kill(step: str) -> None:
        if second and step == last_step:
            die()

    source = bed.source(instance=instance, session_timeout_ms=SESSION_TIMEOUT_MS)
    start(source, gain(source))
    outlet = bed.outlet(source, kill, transaction_timeout_ms=transaction_timeout_ms)
    with closing(source):
        commit(outlet, work(0, 10, "first "))
        second = True
        outlet.write([work(0, 20, "second ")])
        flush(outlet)
        kill("everything written")
        outlet.finish([work(0, 20, "second ")])
