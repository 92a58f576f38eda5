"""Following the assignments: which pair of rankers the next impression is to compare."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import SystemRandom
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypedDict, Unpack

import msgspec

from streamduel.client.assignment import Assignment, Draw, Known
from streamduel.client.feed import Feed, News
from streamduel.client.file_feed import FileFeed
from streamduel.client.follower import Follower, reason
from streamduel.client.sessions import Sessions
from streamduel.client.stable import stable_fraction, stable_number
from streamduel.client.url_feed import EVERY_SECONDS, UrlFeed
from streamduel.errors import ClientError, nearest

log = logging.getLogger(__name__)

MOST_KEPT: Final = 100_000
"""Sessions that keep their pair: some 30 MB."""

MOST_COMPLAINTS: Final = 1000
"""Assignments that cannot be read and were told so, once each: as many as a process may have
experiments. With still more, they are told again."""


class Uniform(Protocol):
    """A source of randomness, such as `random.Random(seed)` or `numpy.random.default_rng(seed)`."""

    def random(self) -> float:
        """A uniform number in [0, 1)."""
        ...


class Options(TypedDict, total=False):
    """What all ways to make `Assignments` have in common; see there."""

    defaults: Mapping[str, str]
    keep: float
    most_kept: int
    rng: Uniform
    clock: Callable[[], float]


class Assignments:
    """Follows the newest assignment of every experiment, and draws pairs by it.

    A daemon thread reads; `draw` never waits, and never fails for want of a connection. What holds,
    in this order: the fallback of an assignment that has lapsed (`valid_until`), the newest
    assignment, the default arm of an experiment of which nothing has been read. An epoch that is
    not larger than the last is ignored, so it does not matter what is read twice or in which order.

    Make one for each process, after it has forked: threads do not survive a fork.

    **One session, one pair.** With a `sticky_key`, the pair follows from the key, the experiment
    and the epoch by a hash, so all instances of a service draw the same one. But the next epoch
    draws anew, and policies that decide often have a new one every few seconds. With `keep`, a
    session keeps its pair for so many seconds from its first draw on, as long as the experiment is
    running and its assignment holds. The price: the policy learns with so much delay, an arm that
    was retired is served for so long, and only this process remembers. If a session's requests go
    to several instances, hand the three fields of its `Draw` from page to page instead, in the
    link or in a cookie: that costs no memory and holds everywhere.

    Args:
        *feeds: where to read; best made with `from_kafka`, `from_url` or `from_file`.
        defaults: by experiment, the arm that is served alone until its first assignment is read.
        keep: for how many seconds a session keeps its pair; 0 to let it go with the epoch.
        most_kept: how many sessions are remembered for that; the oldest is forgotten first.
        rng: draws for impressions without a key; seeded by the operating system if not given.
        clock: seconds since 1970.

    >>> from streamduel.client import Given
    >>> record = '''{"type": "assignment", "experiment": "search", "epoch": 17,
    ...     "champion": "ltr", "pairs": [{"a": "bm25", "b": "ltr", "share": 0.75},
    ...                                  {"a": "ltr", "b": "ltr", "share": 0.25}]}'''
    >>> with Assignments(Given(record), defaults={"ads": "plain"}) as assignments:
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
        most_kept: int = MOST_KEPT,
        rng: Uniform | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._defaults = dict(defaults or {})
        self._rng = SystemRandom() if rng is None else rng
        self._clock = clock
        self._sessions = Sessions(keep, most_kept) if keep > 0 else None
        self._known: dict[str, Known] = {}
        self._complaints: set[int] = set()  # by the hash of what could not be read
        self._news = threading.Condition()
        self._followers = [Follower(feed, self._take) for feed in feeds]

    @classmethod
    def from_kafka(
        cls,
        bootstrap_servers: str | Sequence[str],
        topic: str = "assignments",
        *,
        kafka: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """Follow the topic of assignments; needs the extra `kafka`.

        Only what streamduel has committed is read. Brokers may be away, now or later.

        Args:
            bootstrap_servers: `host:port` of one or more brokers, as a list or with commas between.
            topic: the assignments' topic.
            kafka: further settings of kafka-python's `KafkaConsumer`, such as `security_protocol`.
            **options: as for `Assignments`.

        Raises:
            ClientError: a setting cannot be used, or kafka-python is not installed.
        """
        try:
            from streamduel.client.kafka_feed import KafkaFeed  # noqa: PLC0415 - an optional extra
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
        """Ask a running streamduel over HTTP.

        Args:
            *urls: `http://HOST:PORT/api/experiments` with its monitoring port; one for each process
                where several share the experiments out.
            every: seconds between two questions.
            headers: to be sent along, such as `Authorization`.
            **options: as for `Assignments`.

        Raises:
            ClientError: a URL cannot be used.
        """
        return cls(*[UrlFeed(url, every, headers) for url in urls], **options)

    @classmethod
    def from_file(cls, path: str | Path, **options: Unpack[Options]) -> Self:
        """Follow the `assignments.jsonl` of the files connector, on the same machine.

        Args:
            path: the file; it need not be there yet.
            **options: as for `Assignments`.
        """
        return cls(FileFeed(path), **options)

    def draw(self, experiment: str, sticky_key: str | None = None) -> Draw:
        """The pair to interleave for one impression.

        Args:
            experiment: its name.
            sticky_key: whom to give the same pair again, such as a session's id.

        Raises:
            ClientError: nothing is known of the experiment, and it has no default arm.
        """
        known = self._known.get(experiment)
        if known is None:
            return self._default(experiment)
        now = self._clock()
        if fallback := known.fallback(now):
            return fallback
        if sticky_key is None:
            return known.pick(self._rng.random())
        assignment = known.assignment
        draw = known.pick(stable_fraction(experiment, assignment.epoch, sticky_key))
        if self._sessions is None or assignment.status != "running":
            return draw
        return self._sessions.hold(stable_number(experiment, sticky_key, size=16), draw, now)

    def _default(self, experiment: str) -> Draw:
        arm = self._defaults.get(experiment)
        if arm is None:
            others = [*self._defaults, *list(self._known)]
            raise ClientError(
                f"no assignment of experiment '{experiment}' has been read, and it has no default "
                f"arm{nearest(experiment, others) or '.'}"
            )
        return Draw(arm, arm)

    def age(self, experiment: str) -> float:
        """Seconds since the last sign of life; infinite if there was none yet.

        From Kafka and from files, a sign of life is a new assignment, counted from when it was
        published. One that need not change is not published again, unless the experiment has a
        fallback: then the age is at most half of `idle_ms` while records come. Over HTTP, every
        answer that speaks of the experiment is one.

        Args:
            experiment: its name.
        """
        known = self._known.get(experiment)
        return math.inf if known is None else max(0.0, self._clock() - known.seen_at)

    def wait_for(self, experiment: str, timeout: float = 10.0) -> bool:
        """Wait until an assignment of the experiment has been read, at the start of a service.

        Args:
            experiment: its name.
            timeout: for so many seconds at most; reading takes less than one.

        Returns:
            Whether one has.
        """
        with self._news:
            return self._news.wait_for(lambda: experiment in self._known, timeout)

    def _take(self, news: News) -> None:
        """Remember the assignment if it is the newest."""
        try:
            assignment = msgspec.json.decode(news.value, type=Assignment)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            self._complain(news, error)
            return
        seen_at = self._clock() if news.at is None else news.at
        with self._news:
            known = self._known.get(assignment.experiment)
            if known is not None:
                seen_at = max(seen_at, known.seen_at)
            if known is None or assignment.epoch > known.assignment.epoch:
                known = self._known[assignment.experiment] = Known(assignment, seen_at)
                self._news.notify_all()
            known.seen_at = seen_at

    def _complain(self, news: News, error: Exception) -> None:
        """Once about each value: over HTTP it comes again with every answer."""
        if hash(news.value) in self._complaints:
            return
        if len(self._complaints) >= MOST_COMPLAINTS:
            self._complaints.clear()
        self._complaints.add(hash(news.value))
        log.warning("an assignment cannot be read, the last one holds: %s", reason(error))

    def close(self) -> None:
        """Stop following; the last assignments can still be drawn from."""
        for follower in self._followers:
            follower.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
