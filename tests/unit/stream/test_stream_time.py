"""The clock of stream time, against a slow implementation of its rule."""

from __future__ import annotations

import random
from statistics import quantiles

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamduel.records import MAX_TIME
from streamduel.stream.stream_time import RECENT, LargestTimestamp, StreamClock

START = 1_790_000_000_000
ADVANCE = 1_000
YEAR_2100 = 4_102_444_800_000


class Rule:
    """The rule, from the whole history every time.

    Attributes:
        now: stream time after each record.
        dates: the time at which each record is dated.
    """

    def __init__(self, max_advance: int) -> None:
        self.max_advance = max_advance
        self.heard: list[int] = []
        self.now = [0]
        self.dates: list[int] = []
        self.limit = 0

    def add(self, timestamp: int) -> None:
        before = self.now[-1]
        self.heard.append(timestamp)
        count, last = len(self.heard), self.heard[-31:]
        if count < 31:
            now = max(before, timestamp if timestamp <= MAX_TIME else 0)
        elif count == 31 or timestamp > self.limit:
            low, middle, high = quantiles(last, n=4)
            plausible = int(middle + 3 * min(middle - low, high - middle))
            self.limit = min(plausible + self.max_advance, MAX_TIME)
            within = max((it for it in last if it <= self.limit), default=0)
            now = within if count == 31 else max(before, within)
        else:
            now = max(before, timestamp)
        self.now.append(now)
        self.dates.append(now)
        if now < before:
            self.dates = [min(date, now) for date in self.dates]
        elif count > 31:
            reached = (at for at, it in enumerate(last, count - 31) if before < it <= now)
            first = next(reached, count)
            self.dates[first:] = [now] * (count - first)

    @property
    def outliers(self) -> int:
        """Records that stream time had not reached when they left the last 31."""
        left = range(len(self.heard) - 31)
        return sum(self.heard[at] > self.now[at + 31] for at in left)


STEPS = st.lists(
    st.one_of(
        st.sampled_from([0, 0, 1, 7, 250]),
        st.sampled_from([999, 1001, -1, -500, -4_000, 60_000, YEAR_2100, 2**60]),
        st.just("gap"),
    ),
    max_size=150,
)


def timestamps(steps: list[int | str]) -> list[int]:
    """Timestamps of records: all clocks take small steps and gaps, one record's a large one."""
    made, now = [], START
    for step in steps:
        if isinstance(step, str):
            now += 10 * ADVANCE
        elif 0 <= step <= 250:
            now += step
        made.append(now if isinstance(step, str) or 0 <= step <= 250 else now + step)
    return made


@settings(max_examples=300, deadline=None, derandomize=True)
@given(STEPS, st.sampled_from([0, 5, ADVANCE, 10**6, MAX_TIME]))
def test_stream_time_follows_the_rule(steps: list[int | str], max_advance: int) -> None:
    clock, rule = StreamClock(max_advance), Rule(max_advance)
    dates: list[int] = []
    for offset, timestamp in enumerate(timestamps(steps)):
        rule.add(timestamp)
        since = clock.add(timestamp, offset)
        dates = [min(date, clock.now) for date in dates] + [clock.now]
        if since is not None:
            dates[since:] = [clock.now] * (offset + 1 - since)
        assert (clock.now, clock.outliers) == (rule.now[-1], rule.outliers)
        assert dates == rule.dates


@settings(max_examples=200, deadline=None, derandomize=True)
@given(STEPS, STEPS)
def test_a_restored_clock_continues_equally(
    before: list[int | str], after: list[int | str]
) -> None:
    whole = timestamps([*before, *after])
    clock = StreamClock(ADVANCE)
    for offset, timestamp in enumerate(whole[: len(before)]):
        clock.add(timestamp, offset)
    restored = StreamClock(ADVANCE, clock.state())
    assert restored.state() == clock.state()
    for offset, timestamp in enumerate(whole[len(before) :], len(before)):
        assert restored.add(timestamp, offset) == clock.add(timestamp, offset)
        assert (restored.now, restored.outliers) == (clock.now, clock.outliers)
        assert restored.state() == clock.state()


def settled(max_advance: int = ADVANCE) -> StreamClock:
    """A clock with `RECENT` records at `START`."""
    clock = StreamClock(max_advance)
    for offset in range(RECENT):
        clock.add(START, offset)
    return clock


@pytest.mark.parametrize("wrong", [YEAR_2100, START + ADVANCE + 1, 2**62])
def test_fifteen_of_31_records_do_not_move_it_beyond_the_limit(wrong: int) -> None:
    clock = settled()
    for offset in range(15):
        clock.add(wrong, 100 + offset)
    assert clock.now == START
    for offset in range(RECENT):
        clock.add(START, 200 + offset)
    assert clock.outliers == 15


def test_a_gap_is_passed_with_the_16th_record_behind_it() -> None:
    clock = settled()
    three_days = START + 3 * 86_400_000
    for offset in range(100, 115):
        assert clock.add(three_days + offset, offset) == offset
        assert clock.now == START
    assert clock.add(three_days + 115, 115) == 100, "the first record behind the gap"
    assert clock.now == three_days + 115
    for offset in range(200, 300):
        clock.add(three_days + 115, offset)
    assert clock.outliers == 0


def test_creeping_clocks_do_not_move_it() -> None:
    clock = settled()
    for number in range(10_000):
        clock.add(clock.now + ADVANCE - 1 if number % 3 == 0 else START + number // 100, number)
    assert clock.now <= START + 100 + ADVANCE


def test_records_without_a_timestamp_are_not_compared() -> None:
    clock = settled()
    for offset in range(100):
        clock.add(-1, offset)
    clock.add(START + 1, 100)
    assert clock.now == START + 1
    assert list(clock.recent) == [START] * 30 + [START + 1]


def test_of_sparse_traffic_it_is_the_newest_timestamp() -> None:
    clock, step = StreamClock(ADVANCE), 20 * 60_000
    for number in range(3_000):
        assert clock.add(START + number * step, number) == number
        assert clock.now == START + number * step
        clock.add(YEAR_2100, number) if number % 40 == 39 else None
    assert clock.outliers == 74
    assert clock.now == START + 2_999 * step


def test_of_sparse_and_random_traffic_it_is_a_few_records_behind_at_most() -> None:
    rng, clock, now, behind = random.Random(1), StreamClock(ADVANCE), START, []
    for number in range(3_000):
        now += int(rng.expovariate(1 / 1_200_000))
        clock.add(now, number)
        behind.append((now - clock.now) / 1_200_000)
    assert sorted(behind)[1_500] == 0
    assert sorted(behind)[2_850] < 5
    assert clock.outliers == 0


def test_the_first_records_are_all_obeyed_until_the_31st() -> None:
    clock = StreamClock(ADVANCE)
    clock.add(YEAR_2100, 0)
    for offset in range(1, 30):
        clock.add(START + offset, offset)
    assert clock.now == YEAR_2100
    clock.add(START, 30)
    assert clock.now == START + 29
    clock.add(START, 31)
    assert clock.outliers == 1


def test_stream_time_that_was_set_is_compared() -> None:
    clock = settled()
    clock.add(YEAR_2100, 50)
    clock.set(START - 10**9)
    for timestamp in (YEAR_2100, START):
        clock.add(timestamp, 51)
        assert clock.now == START - 10**9
    assert clock.outliers == 0, "the record at offset 50 was not refused yet"


def test_before_timestamps_were_compared_it_was_the_largest() -> None:
    clock = LargestTimestamp(5)
    assert [clock.add(timestamp, 7) for timestamp in (-1, 5, 9, 8)] == [None, None, 7, None]
    assert clock.now == 9
