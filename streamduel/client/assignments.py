"""Follows the assignments and draws the pair of rankers for the next impression."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import SystemRandom
from typing import Any, Final, Literal, Protocol, Self, TypedDict, Unpack

import msgspec

from streamduel.client.assignment import (
    Assignment,
    CurrentAssignment,
    Draw,
    Sessions,
    not_a_key,
    stable_fraction,
    stable_number,
)
from streamduel.client.feeds import (
    EVERY_SECONDS,
    Feed,
    FeedRecord,
    FileFeed,
    Follower,
    UrlFeed,
    reason,
)
from streamduel.errors import ClientError, nearest, shown

log = logging.getLogger(__name__)

MAX_SESSIONS: Final = 100_000
"""Sessions that keep their pair: some 30 MB."""

MAX_WARNED: Final = 1000
"""Invalid assignments that are remembered to log each once: as many as a process may have
experiments. With more, some are logged again."""


class Uniform(Protocol):
    """A source of randomness: `random.Random(seed)` or `numpy.random.default_rng(seed)`."""

    def random(self) -> float:
        """A uniform number in [0, 1)."""
        ...


class Options(TypedDict, total=False):
    """The keyword arguments of `Assignments`."""

    defaults: Mapping[str, str]
    keep: float
    most_kept: int
    rng: Uniform
    clock: Callable[[], float]


class Assignments:
    """Follows the newest assignment of every experiment, and draws pairs from it.

    A daemon thread reads; `draw` never blocks, and does not fail when the connection is lost. In
    order of precedence, `draw` uses the fallback of an assignment whose `valid_until` has passed,
    the newest assignment, and the default arm of an experiment without an assignment. An epoch that
    is not larger than the last one is ignored, so records may be read repeatedly and in any order.

    Create one in each process, after it has forked: threads do not survive a fork. In a forked
    process `draw` logs an error, once, and continues with the assignments of the fork.

    With a `sticky_key`, the pair is a hash of the key, the experiment and the epoch, so that all
    instances of a service draw the same one until the next epoch. With `keep`, a session keeps its
    pair longer: docs/client.md compares the ways.

    Args:
        *feeds: the sources; `from_kafka`, `from_url` and `from_file` create them.
        defaults: for each experiment the arm to serve alone before its first assignment.
        keep: seconds for which a session keeps its pair; 0: until the next epoch.
        most_kept: sessions that are remembered for `keep`; the oldest is evicted first.
        rng: the source of draws without a key; by default the operating system's randomness.
        clock: seconds since 1970.

    Raises:
        ClientError: an argument has an invalid value.

    >>> from streamduel.client import InMemoryFeed
    >>> record = '''{"type": "assignment", "experiment": "search", "epoch": 17,
    ...     "champion": "ltr", "pairs": [{"a": "bm25", "b": "ltr", "share": 0.75},
    ...                                  {"a": "ltr", "b": "ltr", "share": 0.25}]}'''
    >>> with Assignments(InMemoryFeed(record), defaults={"ads": "plain"}) as assignments:
    ...     assignments.wait_for("search")
    ...     assignments.draw("search", sticky_key="session 1")
    ...     assignments.draw("search", sticky_key="session 5")
    ...     assignments.draw("ads")
    True
    Draw(a='bm25', b='ltr', epoch=17)
    Draw(a='ltr', b='ltr', epoch=17)
    Draw(a='plain', b='plain', epoch=None)
    """

    def __init__(
        self,
        *feeds: Feed,
        defaults: Mapping[str, str] | None = None,
        keep: float = 0.0,
        most_kept: int = MAX_SESSIONS,
        rng: Uniform | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not isinstance(keep, int | float) or not keep >= 0:
            raise ClientError(f"keep must be a number of seconds from 0 (found {keep!r}).")
        if not isinstance(most_kept, int) or most_kept < 1:
            raise ClientError(f"most_kept must be an integer of at least 1 (found {most_kept!r}).")
        if defaults is not None and not isinstance(defaults, Mapping):
            raise ClientError(
                f"defaults must be a mapping of experiments to arms (found {defaults!r})."
            )
        if rng is not None and not hasattr(rng, "random"):
            raise ClientError(f"rng must have a method random (found {rng!r}).")
        for feed in feeds:
            if not hasattr(feed, "poll"):
                raise ClientError(
                    "a feed must have a method poll, as those of from_kafka, from_url and from_file"
                    f" (found {type(feed).__name__})."
                )
        self._defaults = dict(defaults or {})
        for experiment, arm in self._defaults.items():
            if not isinstance(arm, str):
                raise ClientError(
                    f"the default arm of '{experiment}' must be a string (found {arm!r})."
                )
        self._rng = SystemRandom() if rng is None else rng
        self._clock = clock
        self._sessions = Sessions(keep, most_kept) if keep > 0 else None
        self._current: dict[str, CurrentAssignment] = {}
        self._warned: set[int] = set()  # hashes of invalid values
        self._updated = threading.Condition()
        self._process = os.getpid()
        self._followers = [Follower(feed, self._apply) for feed in feeds]

    @classmethod
    def from_kafka(
        cls,
        bootstrap_servers: str | Sequence[str],
        topic: str = "assignments",
        *,
        client: Literal["kafka-python", "confluent"] = "kafka-python",
        kafka: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """Follow the assignments topic; needs the extra `kafka`, or `fast` for confluent.

        Only committed records are read. Brokers may be unavailable, at the start and later.

        Args:
            bootstrap_servers: `host:port` of one or more brokers, as a list or separated by commas.
            topic: the assignments topic.
            client: the library that reads it.
            kafka: further settings of kafka-python's `KafkaConsumer`, such as `security_protocol`,
                or of librdkafka, such as `security.protocol`.
            **options: see `Assignments`.

        Raises:
            ClientError: a setting is invalid, or the library is not installed.
        """
        if client not in {"kafka-python", "confluent"}:
            raise ClientError(f"client must be 'kafka-python' or 'confluent' (found {client!r}).")
        if client == "confluent":
            return cls(_confluent_feed(bootstrap_servers, topic, kafka), **options)
        try:
            from streamduel.client.kafka import KafkaFeed  # noqa: PLC0415 - an optional extra
        except ImportError:
            raise ClientError(
                "assignments from Kafka need kafka-python; install streamduel-client[kafka] "
                "or streamduel[kafka]."
            ) from None
        return cls(KafkaFeed(bootstrap_servers, topic, kafka), **options)

    @classmethod
    def from_url(
        cls,
        *urls: str,
        every: float = EVERY_SECONDS,
        headers: Mapping[str, str] | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """Poll a running streamduel over HTTP.

        Args:
            *urls: `http://HOST:PORT/api/experiments` with the monitoring port; one for each process
                if several processes share the experiments.
            every: seconds between two requests.
            headers: headers of the requests, such as `Authorization`.
            **options: see `Assignments`.

        Raises:
            ClientError: there is no URL, or a URL, a header or `every` is invalid.
        """
        if not urls:
            raise ClientError("assignments over HTTP need at least one URL (found none).")
        return cls(*[UrlFeed(url, every, headers) for url in urls], **options)

    @classmethod
    def from_file(cls, path: str | Path, **options: Unpack[Options]) -> Self:
        """Follow the `assignments.jsonl` of the files connector, which may be created later."""
        return cls(FileFeed(path), **options)

    def draw(self, experiment: str, sticky_key: str | None = None) -> Draw:
        """Draw the pair to interleave for one impression; equal keys get equal pairs.

        Raises:
            ClientError: the experiment has neither an assignment nor a default arm, or an argument
                is not a string.
        """
        if os.getpid() != self._process:
            self._report_fork()
        if not isinstance(experiment, str):
            raise ClientError(f"experiment must be a string (found {type(experiment).__name__}).")
        if sticky_key is not None and not isinstance(sticky_key, str):
            raise ClientError(not_a_key(sticky_key))
        current = self._current.get(experiment)
        if current is None:
            return self._default(experiment)
        now = self._clock()
        if fallback := current.fallback(now):
            return fallback
        if sticky_key is None:
            return current.draw(self._rng.random())
        assignment = current.assignment
        draw = current.draw(stable_fraction(experiment, assignment.epoch, sticky_key))
        if self._sessions is None or assignment.status != "running":
            return draw
        return self._sessions.hold(stable_number(experiment, sticky_key, size=16), draw, now)

    def _report_fork(self) -> None:
        """Log, once, that nothing follows the assignments in this process; searches continue."""
        self._process = os.getpid()
        self._updated = threading.Condition()  # a thread of the parent may have held the locks
        if self._sessions is not None:
            self._sessions.renew_lock()
        if self._followers:
            log.error(
                "the assignments were created before the process forked, and do not change in "
                "this process; create them in each process"
            )

    def _default(self, experiment: str) -> Draw:
        arm = self._defaults.get(experiment)
        if arm is None:
            others = [*self._defaults, *list(self._current)]
            raise ClientError(
                f"no assignment of experiment '{experiment}' has been read, and it has no default "
                f"arm{nearest(experiment, others) or '.'}"
            )
        return Draw(arm, arm)

    def age(self, experiment: str) -> float:
        """Seconds since the assignment was written or confirmed; infinite if there is none yet.

        From Kafka, the age counts from when the assignment was published; unchanged ones are
        published again only with a fallback: at most half of `idle_ms` later while records arrive.
        From a file, it counts from the last change of the file before the assignment was read, so
        with several experiments it may be too small. Over HTTP, each answer that contains the
        experiment confirms its assignment.
        """
        current = self._current.get(experiment)
        return math.inf if current is None else max(0.0, self._clock() - current.seen_at)

    def wait_for(self, experiment: str, timeout: float = 10.0) -> bool:
        """Whether the experiment has an assignment, for which it waits up to `timeout` seconds.

        For the start of a service; reading takes less than a second.
        """
        if os.getpid() != self._process:
            self._report_fork()
        with self._updated:
            return self._updated.wait_for(lambda: experiment in self._current, timeout)

    def _apply(self, record: FeedRecord, of_feed: str) -> None:
        """Replace the current assignment if the record has a newer one."""
        try:
            assignment = msgspec.json.decode(record.value, type=Assignment)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            self._warn_once(record, of_feed, error)
            return
        now = self._clock()
        seen_at = now if record.at is None else min(now, record.at)
        with self._updated:
            current = self._current.get(assignment.experiment)
            if current is not None:
                if assignment.epoch < current.assignment.epoch:
                    return  # it does not confirm the newer one
                seen_at = max(seen_at, min(now, current.seen_at))  # the clock may have been ahead
            if current is None or assignment.epoch > current.assignment.epoch:
                current = CurrentAssignment(assignment, seen_at)
                self._current[assignment.experiment] = current
                self._updated.notify_all()
            current.seen_at = seen_at

    def _warn_once(self, record: FeedRecord, of_feed: str, error: Exception) -> None:
        """Log an invalid value once: over HTTP every answer repeats it."""
        if hash(record.value) in self._warned:
            return
        if len(self._warned) >= MAX_WARNED:
            self._warned.clear()
        self._warned.add(hash(record.value))
        value = record.value
        log.warning(
            "an assignment%s cannot be read, the last one still applies: %s (found %s)",
            of_feed, reason(error),
            shown(value if isinstance(value, str) else value.decode(errors="replace")),
        )  # fmt: skip

    def close(self) -> None:
        """Stop following; `draw` continues with the last assignments."""
        for follower in self._followers:
            follower.close()
        self._followers = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _confluent_feed(
    servers: str | Sequence[str], topic: str, settings: Mapping[str, Any] | None
) -> Feed:
    try:
        from streamduel.client.confluent_feed import ConfluentFeed  # noqa: PLC0415 - an extra
    except ImportError:
        raise ClientError(
            "assignments by confluent need confluent-kafka; install streamduel-client[fast] "
            "or streamduel[fast]."
        ) from None
    return ConfluentFeed(servers, topic, settings)
