"""The page of metrics, rendered by prometheus_client."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPENMETRICS_CONTENT_TYPE
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

CHEAP_SECONDS: Final = 0.05
"""A page that takes less processor time is rendered for each request: at one scrape per 15 s that
is at most 0.4 % of a core. The page of 50 experiments of 16 arms takes about 0.05 s."""

REUSE: Final = 40
"""A more expensive page is served again for this many times as long as it took to render, so
scrapes take at most 2.5 % of a core, however frequent they are. The page of 1,000 experiments of 16
arms takes about 1.2 s and is up to 45 s old: benchmarks/scrape.py."""


class Exposition:
    """Renders the metrics of a registry in the format that a client accepts.

    Args:
        registry: the metrics.
        clock: monotonic seconds.
        processor_time: seconds of processor time of the calling thread.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        clock: Callable[[], float] = time.monotonic,
        processor_time: Callable[[], float] = time.thread_time,
    ) -> None:
        self._registry, self._clock, self._processor_time = registry, clock, processor_time
        self._rendered: dict[str, tuple[bytes, float]] = {}

    def page(self, accept: str) -> tuple[bytes, str]:
        """The page and its content type.

        Args:
            accept: the `accept` header of the request; may be empty.
        """
        encode: Callable[[CollectorRegistry], bytes] = generate_latest
        content_type = CONTENT_TYPE_PLAIN_0_0_4
        if _accepts_only_openmetrics(accept):
            encode, content_type = generate_openmetrics, OPENMETRICS_CONTENT_TYPE
        page, reusable_until = self._rendered.get(content_type, (b"", -math.inf))
        now = self._clock()
        if now >= reusable_until:
            began = self._processor_time()
            page = encode(self._registry)
            spent = self._processor_time() - began
            reusable_until = now + REUSE * spent if spent > CHEAP_SECONDS else now
            self._rendered[content_type] = page, reusable_until
        return page, content_type


def _accepts_only_openmetrics(accept: str) -> bool:
    """Whether text is not accepted. Prometheus accepts both; OpenMetrics costs twice as much.

    >>> _accepts_only_openmetrics("application/openmetrics-text;version=1.0.0")
    True
    >>> _accepts_only_openmetrics("application/openmetrics-text;q=0.6,text/plain;q=0.4")
    False
    """
    other = any(each in accept for each in ("text/plain", "text/*", "*/*"))
    return "application/openmetrics-text" in accept and not other
