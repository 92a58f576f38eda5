"""Random impressions and clicks, against a slow implementation of the definition."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamduel.stream import attribution
from streamduel.testing import Record
from tests.unit.stream.folding import ARMS, DUEL, Partition, config, text
from tests.unit.stream.restarts import run
from tests.unit.stream.test_attribution import START, WINDOW, click, impression


def noise(rng: random.Random, count: int, span: int, step: int = 1) -> list[Record]:
    """Impressions and clicks: early, late, duplicate, unjoined, invalid; with duels in between."""
    made: list[Record] = []
    now = START
    shown = 0
    for offset in range(0, count * step, step):
        now += rng.choice([0, 1, span // 10, span // 3]) if rng.random() < 0.5 else 0
        chance = rng.random()
        if chance < 0.35:
            shown += 1
            a, b = rng.sample(ARMS, 2)
            length = rng.randint(1, 4)
            value = impression(
                shown, a=a, b=b, teams=[rng.choice(["a", "b", None]) for _ in range(length)],
                docs=[f"d{rank}" for rank in range(length)] if rng.random() < 0.5 else None,
            )  # fmt: skip
        elif chance < 0.85:
            on = max(1, shown + rng.randint(-6, 3))
            where: dict[str, Any] = {"rank": rng.randint(0, 4)}
            if rng.random() < 0.4:
                where = {"rank": None, "doc": f"d{rng.randint(0, 4)}"}
            value = click(offset, on, **where)
        elif chance < 0.95 and made:
            value = rng.choice(made[-30:]).value or b""
        else:
            value = text(DUEL, id=f"d-{offset}", winner="b")
        made.append(Record(offset, value, now, b"search"))
    return made


class Shown(NamedTuple):
    at: int
    offset: int
    event: dict[str, Any]
    ranks: list[int]


class Definition:
    """The outcome of each record, found by searching the whole click log every time."""

    def __init__(self, log: list[Record], window: int, most: int) -> None:
        self.fates: Counter[str] = Counter()
        self.wins: defaultdict[tuple[str, str], float] = defaultdict(float)
        self.window, self.most = window, most
        self.shown: list[Shown] = []
        self.waiting: list[tuple[int, int, dict[str, Any]]] = []
        seen: list[tuple[int, str]] = []  # when, and the id
        parts: list[int] = []  # offsets
        for record in log:
            now, event = record.timestamp or 0, json.loads(record.value or b"")
            remembered = [it for at, it in seen if at >= now - 3_600_000][-most:]
            seen.append((now, event["id"]))
            if event["id"] in remembered:
                self.fates["duplicate"] += 1
            elif event["type"] == "duel":
                self.fates["accepted"] += 1
                self.wins[event["b"], event["a"]] += 1
            else:
                parts.append(record.offset)
                known = [*remembered, event["id"]][-most:]
                self._part(event, now, record.offset, known)
        last = log[-1].timestamp or 0
        for at, offset, _ in self.waiting:
            over = last - at > window or any(part - offset >= most for part in parts)
            self.fates["unjoined" if over else "waiting"] += 1
        for it in self.shown:
            if last - it.at > window or any(part - it.offset >= most for part in parts):
                self._end(it)

    def _in_time(self, at: int, offset: int, later: int, later_offset: int) -> bool:
        return later - at <= self.window and later_offset - offset < self.most

    def _part(self, event: dict[str, Any], now: int, offset: int, known: list[str]) -> None:
        if event["type"] == "impression":
            self.fates["accepted"] += 1
            self.shown.append(Shown(now, offset, event, []))
            mine = [it for it in self.waiting if it[2]["impression"] == event["id"]]
            self.waiting = [it for it in self.waiting if it not in mine]
            for at, earlier, click_ in mine:
                if self._in_time(at, earlier, now, offset):
                    self._join(self.shown[-1], click_)
                else:
                    self.fates["unjoined"] += 1
            return
        there = [it for it in self.shown if it.event["id"] == event["impression"]]
        if there and self._in_time(there[-1].at, there[-1].offset, now, offset):
            self._join(there[-1], event)
        elif event["impression"] in known:
            self.fates["late"] += 1
        else:
            self.waiting.append((now, offset, event))

    def _join(self, shown: Shown, event: dict[str, Any]) -> None:
        rank, docs = event["rank"], shown.event["docs"] or []
        if rank is None:
            rank = docs.index(event["doc"]) if event["doc"] in docs else 99
        if rank >= len(shown.event["teams"]):
            self.fates["dead_letter"] += 1
        else:
            self.fates["accepted"] += 1
            shown.ranks.append(rank)

    def _end(self, shown: Shown) -> None:
        teams = [shown.event["teams"][rank] for rank in shown.ranks]
        lead = teams.count("a") - teams.count("b")
        share = 0.5 + 0.5 * ((lead > 0) - (lead < 0))
        self.wins[shown.event["a"], shown.event["b"]] += share
        self.wins[shown.event["b"], shown.event["a"]] += 1 - share


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from([60, 300, 5000]), st.sampled_from([15, 40, 10**6]))
def test_counts_and_tallies_match_the_definition(seed: int, span: int, most: int) -> None:
    log = noise(random.Random(seed), 300, span)
    dedupe = {"window_records": most, "window_ms": 3_600_000}
    partition = Partition(config(search={"join_window_ms": WINDOW}, dedupe=dedupe))
    partition.task.fold(log)
    partition.task.take_commit()
    expected = Definition(log, WINDOW, most)
    waiting = partition.task.experiments["search"].attribution.pending
    told = {name: count for name, count in partition.tallies().items() if count}
    assert {**told, **({"waiting": waiting} if waiting else {})} == expected.fates
    wins = partition.wins()
    for i, one in enumerate(ARMS):
        for j, other in enumerate(ARMS):
            assert wins[i][j] == expected.wins[one, other], (one, other)


def among_others(log: list[Record], rng: random.Random, share: float) -> list[Record]:
    """The same click log, with some records moved to another experiment, and some invalid."""
    others = text(DUEL, experiment="ads", a="x", b="y"), b"nonsense", None
    return [
        record if rng.random() >= share else record._replace(value=rng.choice(others), key=b"ads")
        for record in log
    ]


@pytest.mark.parametrize("most", [15, 60, 10**6])
@pytest.mark.parametrize("dedupe_ms", [WINDOW, 3 * WINDOW])
@settings(max_examples=12, deadline=None, derandomize=True)
@given(data=st.data())
def test_results_do_not_depend_on_chunks_and_restarts(
    data: st.DataObject, most: int, dedupe_ms: int
) -> None:
    seed, span = data.draw(st.integers(0, 10**6)), data.draw(st.sampled_from([60, 300, 5000]))
    step = data.draw(st.sampled_from([1, 41]))  # with gaps, as compaction leaves, and many blocks
    rng = random.Random(seed)
    log = among_others(noise(rng, 400, span, step), rng, data.draw(st.sampled_from([0, 0.6, 0.97])))
    made = config(
        search={"join_window_ms": WINDOW, "decide_every": 3, "slate": 2},
        dedupe={"window_records": most * step, "window_ms": dedupe_ms},
    )
    cuts = sorted(rng.sample(range(1, len(log)), data.draw(st.sampled_from([0, 5, 60]))))
    restarts = set(data.draw(st.lists(st.sampled_from(cuts)))) if cuts else set()
    assert run(made, log, cuts, restarts) == run(made, log, [], set())


@pytest.mark.parametrize("most", [60, 10**6])
def test_the_limit_of_waiting_clicks_does_not_depend_on_restarts(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attribution, "MAX_CLICKS", 2)
    dedupe = {"window_records": most, "window_ms": WINDOW}
    made = config(search={"join_window_ms": WINDOW, "decide_every": 3, "slate": 2}, dedupe=dedupe)
    for seed in range(20):
        rng = random.Random(seed)
        early = [
            Record(offset, click(offset, rng.randint(1, 4)), START + 9 * offset, b"search")
            if rng.random() < 0.7
            else record._replace(offset=offset, timestamp=START + 9 * offset)
            for offset, record in enumerate(noise(rng, 300, 60))
        ]
        cuts = sorted(rng.sample(range(1, len(early)), 20))
        assert run(made, early, cuts, set(cuts[::2])) == run(made, early, [], set())


def test_the_logs_contain_all_cases() -> None:
    fates: Counter[str] = Counter()
    for seed in range(6):
        for span in (60, 5000):
            fates += Definition(noise(random.Random(seed), 300, span), WINDOW, 40).fates
    assert fates.keys() == {"accepted", "duplicate", "late", "unjoined", "waiting", "dead_letter"}
    assert min(fates.values()) > 3
