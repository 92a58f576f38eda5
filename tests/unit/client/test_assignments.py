import contextlib
import math
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from streamduel.client import Assignments, ClientError, Draw, FeedRecord, InMemoryFeed
from tests.unit.client.bed import NOW, Clock, alone, eventually, record

KEYS = [f"session {number}" for number in range(200)]


@contextlib.contextmanager
def following(*records: str, **options: Any) -> Iterator[tuple[Assignments, InMemoryFeed]]:
    feed = InMemoryFeed(*records)
    with Assignments(feed, **options) as assignments:
        for experiment in ("search",) if records else ():
            assert assignments.wait_for(experiment)
        yield assignments, feed


def draws(assignments: Assignments) -> list[Draw]:
    return [assignments.draw("search", sticky_key=key) for key in KEYS]


def test_the_largest_epoch_applies_in_any_order_of_arrival() -> None:
    with following(alone("x", 3), alone("y", 5), alone("z", 4), alone("w", 5)) as (assignments, _):
        eventually(lambda: assignments.draw("search") == Draw("y", "y", 5))
        assert assignments.wait_for("search")


def test_experiments_have_their_own_epochs() -> None:
    with following(alone("x", 30), alone("y", 2, experiment="ads")) as (assignments, _):
        assert assignments.wait_for("ads")
        assert assignments.draw("search") == Draw("x", "x", 30)
        assert assignments.draw("ads") == Draw("y", "y", 2)


def test_all_instances_draw_the_same_pair_for_a_session() -> None:
    with following(record()) as (one, _), following(record()) as (other, _):
        assert draws(one) == draws(other) == draws(one)
        assert {draw[:2] for draw in draws(one)} == {
            ("bm25", "ltr"), ("ltr", "bm25"), ("ltr", "ltr")
        }  # fmt: skip


def test_experiments_draw_independently_for_the_same_session() -> None:
    half = {("a", "b"): 0.5, ("a", "c"): 0.5}
    with following(record(1, half), record(1, half, experiment="ads")) as (assignments, _):
        assert assignments.wait_for("ads")
        alike = [
            set(assignments.draw("search", key)) == set(assignments.draw("ads", key))
            for key in KEYS
        ]
    # A fair coin for each of 200 keys: five standard deviations of 7.07.
    assert abs(alike.count(True) - 100) < 36


def test_without_a_key_pairs_are_drawn_by_the_generator() -> None:
    shares = {("a", "b"): 0.6, ("a", "c"): 0.3, ("a", "a"): 0.1}
    with following(record(1, shares), rng=np.random.default_rng(7)) as (assignments, _):
        drawn = [assignments.draw("search")[:2] for _ in range(10_000)]
    with following(record(1, shares), rng=np.random.default_rng(7)) as (assignments, _):
        assert drawn == [assignments.draw("search")[:2] for _ in range(10_000)]
    counts = Counter((min(pair), max(pair)) for pair in drawn)
    for pair, share in shares.items():
        # A binomial count: five standard deviations.
        assert abs(counts[pair] - 10_000 * share) < 5 * (10_000 * share * (1 - share)) ** 0.5


def test_the_default_arm_is_served_before_the_first_assignment() -> None:
    with following(defaults={"search": "bm25"}) as (assignments, feed):
        assert assignments.draw("search", "any") == Draw("bm25", "bm25", None)
        assert not assignments.wait_for("search", timeout=0)
        feed.add(alone("ltr", 1))
        assert assignments.wait_for("search")
        assert assignments.draw("search", "any") == Draw("ltr", "ltr", 1)


def test_without_a_default_arm_the_error_names_the_nearest_experiment() -> None:
    with following(record(), defaults={"ads": "x"}) as (assignments, _):
        with pytest.raises(ClientError) as refused:
            assignments.draw("serach")
        assert str(refused.value) == (
            "no assignment of experiment 'serach' has been read, and it has no default arm; "
            "did you mean 'search'?"
        )
        with pytest.raises(ClientError, match=r"has no default arm\.$"):
            assignments.draw("recommendations")


def test_invalid_records_are_logged_and_change_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad = ("{", "[]", record(99, pairs={("x", "y"): -1}), "[" * 100_000)
    with following(alone("x", 3), *bad, alone("y", 4)) as (assignments, _):
        eventually(lambda: assignments.draw("search").epoch == 4)
    assert "an assignment cannot be read, the last one still applies: " in caplog.text


class Named(InMemoryFeed):
    """A feed that says what it reads."""

    def __str__(self) -> str:
        return "topic 'assignments'"


@pytest.mark.parametrize(
    ("feed", "value", "message"),
    [
        (InMemoryFeed, "[]", "an assignment cannot be read, the last one still applies: Expected "
         "`object`, got `array` (found '[]')"),
        (Named, b"{", "an assignment of topic 'assignments' cannot be read, the last one still "
         "applies: Input data was truncated (found '{')"),
        (Named, b"\xff", "an assignment of topic 'assignments' cannot be read, the last one still "
         "applies: JSON is malformed: invalid character (byte 0) (found '\ufffd')"),
        (Named, '{"epoch": "6", "status": "' + "x" * 100, "an assignment of topic 'assignments' "
         "cannot be read, the last one still applies: Expected `int`, got `str` - at `$.epoch` "
         f"""(found '{{"epoch": "6", "status": "{"x" * 52}…)"""),
    ],
)  # fmt: skip
def test_an_invalid_record_is_logged_with_its_feed_and_its_beginning(
    feed: type[InMemoryFeed], value: bytes | str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Assignments(feed(value)):
        eventually(lambda: bool(caplog.messages))
    assert caplog.messages == [message]


def test_an_invalid_record_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Counted(InMemoryFeed):
        polls = 0

        def poll(self) -> Iterable[FeedRecord]:
            self.polls += 1
            return super().poll()

    def complaints() -> int:
        return caplog.text.count("an assignment cannot be read")

    feed = Counted("{", alone("x", 3), "[]")
    with Assignments(feed):
        eventually(lambda: feed.polls > 4)
        assert complaints() == 2
        monkeypatch.setattr("streamduel.client.assignments.MAX_WARNED", 2)
        feed.add("<html>")
        eventually(lambda: complaints() > 2)


def test_after_valid_until_every_session_gets_the_fallback() -> None:
    clock = Clock()
    until = int(1000 * NOW) + 60_000
    first = record(1, valid_until=until, fallback="bm25")
    with following(first, clock=clock, keep=600) as (assignments, feed):
        before = draws(assignments)
        clock.now += 59.999
        assert draws(assignments) == before
        clock.now += 0.001
        assert {*draws(assignments), assignments.draw("search")} == {Draw("bm25", "bm25", 1)}
        feed.add(alone("new", 2, valid_until=until + 60_000, fallback="bm25"))
        eventually(lambda: assignments.draw("search") == Draw("new", "new", 2))
        clock.now += 60
        assert assignments.draw("search") == Draw("bm25", "bm25", 2)


def test_without_keep_a_session_follows_the_epoch() -> None:
    with following(alone("old", 1)) as (assignments, feed):
        assert assignments.draw("search", "s") == Draw("old", "old", 1)
        feed.add(alone("new", 2))
        eventually(lambda: assignments.draw("search", "s") == Draw("new", "new", 2))


def test_with_keep_a_session_keeps_its_pair() -> None:
    clock = Clock()
    with following(alone("old", 1), clock=clock, keep=600) as (assignments, feed):
        assert assignments.draw("search", "early") == Draw("old", "old", 1)
        feed.add(alone("new", 2))
        eventually(lambda: assignments.draw("search").epoch == 2)
        assert assignments.draw("search", "early") == Draw("old", "old", 1)
        assert assignments.draw("search", "late") == Draw("new", "new", 2)
        clock.now += 600
        assert assignments.draw("search", "early") == Draw("new", "new", 2)


def test_a_clock_that_was_far_ahead_does_not_keep_sessions() -> None:
    clock = Clock(NOW + 2_000_000_000)
    with following(alone("old", 1), clock=clock, keep=600) as (assignments, feed):
        assert assignments.draw("search", "early") == Draw("old", "old", 1)
        clock.now = NOW
        feed.add(alone("new", 2))
        eventually(lambda: assignments.draw("search").epoch == 2)
        assert assignments.draw("search", "early") == Draw("new", "new", 2)


def test_with_keep_sessions_are_kept_per_experiment() -> None:
    with following(alone("x"), alone("y", experiment="ads"), keep=600) as (assignments, _):
        assert assignments.wait_for("ads")
        assert assignments.draw("search", "s").a == "x"
        assert assignments.draw("ads", "s").a == "y"


def test_a_pause_ends_kept_sessions() -> None:
    with following(alone("old", 1), keep=600) as (assignments, feed):
        assert assignments.draw("search", "s") == Draw("old", "old", 1)
        feed.add(alone("champion", 2, status="paused"))
        eventually(lambda: assignments.draw("search", "s") == Draw("champion", "champion", 2))


def test_most_kept_bounds_the_kept_sessions() -> None:
    with following(alone("old", 1), keep=600, most_kept=2) as (assignments, feed):
        for key in ("first", "second", "third"):
            assignments.draw("search", key)
        feed.add(alone("new", 2))
        eventually(lambda: assignments.draw("search").epoch == 2)
        assert [assignments.draw("search", key).epoch for key in ("third", "second")] == [1, 1]
        assert assignments.draw("search", "first").epoch == 2


def test_age_is_the_time_since_the_last_confirmation() -> None:
    clock = Clock()
    with following(alone("x"), clock=clock) as (assignments, feed):
        assert assignments.age("search") == 0
        assert assignments.age("ads") == math.inf
        clock.now += 5
        feed.add(alone("x"))  # an unchanged assignment
        eventually(lambda: assignments.age("search") == 0)
        clock.now -= 100
        assert assignments.age("search") == 0


def test_age_grows_again_after_the_clock_was_set_back() -> None:
    clock = Clock()
    with following(alone("x", 1), clock=clock) as (assignments, feed):
        clock.now -= 7200
        feed.add(alone("y", 2))
        eventually(lambda: assignments.draw("search").epoch == 2)
    clock.now += 60
    assert assignments.age("search") == 60


class Dated(InMemoryFeed):
    """Records with the times when they were published."""

    def poll(self) -> list[FeedRecord]:
        dates = {"1": NOW - 100, "2": NOW - 40, "3": NOW - 70}
        return [FeedRecord(alone("x", int(epoch)), at) for epoch, at in dates.items()]


def test_age_counts_from_when_an_assignment_was_published() -> None:
    with Assignments(Dated(), clock=Clock()) as assignments:
        assert assignments.wait_for("search")
        eventually(lambda: assignments.draw("search").epoch == 3)
        assert assignments.age("search") == 40  # the time of epoch 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"keep": -1}, "keep must be a number of seconds from 0 (found -1)."),
        ({"keep": math.nan}, "keep must be a number of seconds from 0 (found nan)."),
        ({"most_kept": 0}, "most_kept must be an integer of at least 1 (found 0)."),
        ({"defaults": {"ads": 5}}, "the default arm of 'ads' must be a string (found 5)."),
        ({"defaults": "bm25"}, "defaults must be a mapping of experiments to arms (found 'bm25')."),
        ({"rng": 7}, "rng must have a method random (found 7)."),
    ],
)
def test_an_invalid_argument_is_named(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ClientError) as refused:
        Assignments(InMemoryFeed(), **options)
    assert str(refused.value) == sentence


def test_what_is_no_feed_is_refused() -> None:
    with pytest.raises(ClientError) as refused:
        Assignments(InMemoryFeed(), "kafka:9092")  # type: ignore[arg-type]
    assert str(refused.value) == (
        "a feed must have a method poll, as those of from_kafka, from_url and from_file "
        "(found str)."
    )


@pytest.mark.parametrize("records", [(), (record(),)])
@pytest.mark.parametrize(
    ("experiment", "key", "sentence"),
    [
        ("search", 5, "sticky_key must be a string, or None (found int)."),
        ("search", UUID(int=1), "sticky_key must be a string, or None (found UUID)."),
        ("search", b"5", "sticky_key must be a string, or None (found bytes)."),
        (None, "s", "experiment must be a string (found NoneType)."),
        (["search"], "s", "experiment must be a string (found list)."),
    ],
)
def test_a_wrong_type_is_refused_whatever_is_served(
    records: tuple[str, ...], experiment: Any, key: Any, sentence: str
) -> None:
    with following(*records, defaults={"search": "bm25"}) as (assignments, _):
        with pytest.raises(ClientError) as refused:
            assignments.draw(experiment, sticky_key=key)
        assert str(refused.value) == sentence


def test_no_url_is_refused() -> None:
    with pytest.raises(ClientError, match="need at least one URL"):
        Assignments.from_url()


class Late(InMemoryFeed):
    """The newest assignment, and later an older one, as from a process that lags."""

    def poll(self) -> list[FeedRecord]:
        dates = {5: NOW - 1000, 4: NOW - 10}
        return [FeedRecord(alone("x", epoch), at) for epoch, at in dates.items()]


def test_an_older_assignment_does_not_confirm_the_newer_one() -> None:
    with Assignments(Late(), clock=Clock()) as assignments:
        assert assignments.wait_for("search")
    assert assignments.age("search") == 1000


def test_several_feeds_are_followed_concurrently() -> None:
    with Assignments(InMemoryFeed(alone("x", 3)), InMemoryFeed(alone("y", 4))) as assignments:
        eventually(lambda: assignments.draw("search") == Draw("y", "y", 4))


def test_after_close_the_last_assignment_still_applies() -> None:
    with following(alone("x", 3)) as (assignments, feed):
        pass
    feed.add(alone("y", 4))
    assert assignments.draw("search") == Draw("x", "x", 3)
    assert not [each for each in threading.enumerate() if each.name == "streamduel-follower"]


def test_threads_draw_concurrently() -> None:
    with following(record(), keep=600, most_kept=50) as (assignments, _):
        alone_first = draws(assignments)
        with ThreadPoolExecutor(8) as pool:
            many = list(pool.map(lambda _: draws(assignments), range(16)))
    assert all(each == alone_first for each in many)


class FromTheFuture(InMemoryFeed):
    """A record that is read once, with a time decades ahead."""

    at = NOW + 2_000_000_000

    def poll(self) -> list[FeedRecord]:
        records = [FeedRecord(value, self.at) for value in self._values]
        self._values.clear()
        return records


def test_age_counts_from_reading_if_the_time_of_an_assignment_is_in_the_future() -> None:
    clock = Clock()
    with Assignments(FromTheFuture(alone("x")), clock=clock) as assignments:
        assert assignments.wait_for("search")
        clock.now += 40
        assert assignments.age("search") == 40
