"""What the job counts, drops and forwards, by hand."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import mmh3
import pytest

from streamduel.config import Config
from streamduel.stream.attribution import MAX_CLICKS
from streamduel_spark import bucket
from streamduel_spark.decoding import MAX_BYTES, MAX_LETTERS, RawRecord
from streamduel_spark.plan import Lane, buckets, key_of, seed_of
from tests.unit.spark.cluster import Job, raw, spark
from tests.unit.stream.folding import CONTROL, DUEL, DUELS, INTERLEAVING, text

START = 1_700_000_000_000
KEY = 5_047_077_780_816_767_399
"""Written down once: a checkpoint outlives the machine."""

IMPRESSION: dict[str, Any] = {
    "type": "impression", "id": "i-1", "experiment": "search", "a": "ltr-v1", "b": "bm25",
    "teams": ["a", "b", None], "docs": ["d1", "d2", "d3"],
}  # fmt: skip
CLICK: dict[str, Any] = {
    "type": "click", "id": "c-1", "experiment": "search", "impression": "i-1", "rank": 0,
}  # fmt: skip


def job(**settings: Any) -> Job:
    search = {"arms": ["bm25", "ltr-v1", "ltr-v2"], "join_window_ms": 2000}
    return Job(Config.model_validate({
        "source": {}, "sink": {}, "snapshots": {}, "experiments": {"search": search},
        "spark": spark(**{"lateness_ms": 0, **settings}), "limits": {"max_duels_per_record": 4},
    }))  # fmt: skip


def written(job: Job, *records: RawRecord) -> list[dict[str, Any]]:
    """What a batch writes, with what later batches write of it."""
    last = RawRecord(0, 10**6, START + 10**9, None, text(CLICK, id="last", impression="-"))
    batches = [job.batch(records), job.batch([last]), job.batch([]), job.batch([])]
    return [json.loads(message.value) for batch in batches for message in batch.messages]


def counts(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(it["a"], it["b"], it["wins_a"], it["wins_b"], it["ties"]) for it in found]


def test_a_pair_has_one_record_per_slice_whatever_the_order_of_its_arms() -> None:
    values = [
        text(DUEL, id="1"), text(DUEL, id="2", a="ltr-v1", b="bm25"),
        text(INTERLEAVING, id="3"), text(DUEL, id="4", winner="tie"),
    ]  # fmt: skip
    assert counts(written(job(), *raw(values, START))) == [("bm25", "ltr-v1", 2, 1, 1)]
    assert len(written(job(), *raw(values, START, step_ms=1000))) == 4


def test_more_duels_than_a_record_may_count_are_several_records() -> None:
    values = [text(DUELS, id=str(number), wins_a=2, wins_b=1) for number in range(2)]
    found = written(job(), *raw(values, START))
    assert counts(found) == [("bm25", "ltr-v1", 4, 0, 0), ("bm25", "ltr-v1", 0, 2, 0)]
    assert len({it["id"] for it in found}) == 2


def test_an_id_follows_from_pair_and_slice_alone() -> None:
    once = written(job(), *raw([text(DUEL, id="1")], START))
    again = written(job(), *raw([text(DUEL, id="x"), text(DUEL, id="y")], START + 1))
    assert [it["id"] for it in once] == [it["id"] for it in again]


LOST, JOINED = (0, 0, 1), (0, 1, 0)


@pytest.mark.parametrize(
    ("after", "expected"), [(-2001, LOST), (-2000, JOINED), (2000, JOINED), (2001, LOST)]
)
def test_a_click_is_joined_within_the_join_window(
    after: int, expected: tuple[int, int, int]
) -> None:
    records = [
        RawRecord(0, 0, START, None, text(IMPRESSION)),
        RawRecord(1, 0, START + after, None, text(CLICK, rank=None, doc="d1")),
    ]
    assert counts(written(job(), *records)) == [("bm25", "ltr-v1", *expected)]


def test_control_records_are_forwarded_as_they_are() -> None:
    value = text(CONTROL, id="pause")
    batch = job().batch(raw([value], START))
    assert [(it.topic, it.key, it.value) for it in batch.messages] == [("", b"search", value)]


def test_a_duel_of_an_arm_with_itself_is_left_out() -> None:
    alone = text(DUEL, b="bm25", winner=None)
    testing = job()
    assert testing.batch(raw([alone], START)).tally["served alone"] == 1
    assert written(testing) == []


@pytest.mark.parametrize(("behind", "expected"), [(500, 2), (501, 1)])
def test_a_record_may_be_as_late_as_the_configuration_says(behind: int, expected: int) -> None:
    testing = job(lateness_ms=500)
    testing.batch(raw([text(DUEL, id="newest")], START + 1000))
    testing.batch([])
    late = RawRecord(0, 1, START + 1000 - behind, None, text(DUEL, id="late"))
    assert sum(sum(it[2:]) for it in counts(written(testing, late))) == expected


def test_what_cannot_be_used_is_a_dead_letter() -> None:
    values = [
        b"{", None, text(DUEL, experiment="serach"), text(CLICK, rank=None),
        text(DUELS, wins_a=5), text(INTERLEAVING, teams=["a"] * 1001),
    ]  # fmt: skip
    batch = job().batch(raw(values, START))
    letters = [json.loads(it.value) for it in batch.messages if it.topic == "dead-letters"]
    assert [(it["offset"], it["reason"]) for it in letters] == [
        (0, "invalid_json"), (1, "invalid_record"), (2, "unknown_experiment"),
        (3, "invalid_record"), (4, "invalid_record"), (5, "invalid_record"),
    ]  # fmt: skip
    assert letters[2]["error"] == "unknown experiment 'serach'; did you mean 'search'?"


def test_documents_of_a_finished_impression_are_no_ranks() -> None:
    docs = [f"https://example.org/{'x' * 500}/{rank}" for rank in range(len(INTERLEAVING["teams"]))]
    found = written(job(), *raw([text(INTERLEAVING, docs=docs)], START))
    assert counts(found) == counts(written(job(), *raw([text(INTERLEAVING)], START)))


def test_a_flood_of_dead_letters_is_only_counted() -> None:
    batch = job().batch(raw([b"{"] * (MAX_LETTERS + 5), START))
    assert len(batch.messages) == MAX_LETTERS
    assert batch.tally["dead letters"] == MAX_LETTERS + 5


def test_a_clock_that_is_ahead_makes_no_other_record_late() -> None:
    testing = job()
    century = 100 * 365 * 86_400_000
    testing.batch([RawRecord(0, 0, START + century, None, text(DUEL, id="ahead"))])
    now = testing.watermark
    testing.batch([])
    assert now <= testing.watermark < START + century


def test_state_is_dropped_when_nothing_can_need_it() -> None:
    testing = job()
    values = [text(IMPRESSION), text(CLICK), text(DUEL)]
    written(testing, *raw(values, START))
    later = [RawRecord(0, 10**6 + n, START + n * 10**9, None, text(DUEL, id=f"t{n}"))
             for n in range(2, 6)]  # fmt: skip
    for record in later:
        testing.batch([record])
    kept = [key for store in testing.stores for key in store if str(START)[:6] in key]
    assert all("seen" in key or int(key.split("/")[1]) > START + 10**9 for key in kept), kept


def test_each_spark_partition_has_one_bucket() -> None:
    found = [mmh3.hash(number.to_bytes(4, "little"), 42) % 7 for number in buckets(7)]
    assert found == list(range(7))


def test_slices_of_impressions_end_with_the_clicks_that_they_need() -> None:
    impressions, clicks = (Lane(kind, 2500, 1000) for kind in ("impression", "click"))
    last_click = impressions.slice_of(3000) + 999 + 2500
    assert impressions.due(3000) >= clicks.due(clicks.slice_of(last_click))


def test_a_key_is_the_same_on_every_machine() -> None:
    assert key_of("i-1", seed_of("search")) == KEY


def test_large_dead_letters_are_fewer() -> None:
    batch = job().batch(raw([b"x" * 900_000] * 10, START))
    assert batch.tally["dead letters"] == 10
    assert sum(len(it.value) for it in batch.messages) <= MAX_BYTES


def test_a_control_record_that_kafka_would_not_take_is_a_dead_letter() -> None:
    large = text(CONTROL, id="pause", junk="x" * (2**20 - 200))
    (letter,) = job().batch(raw([large], START)).messages
    found = json.loads(letter.value)
    assert (letter.topic, found["reason"], found["error"]) == (
        "dead-letters", "too_large",
        f"the control record has {len(large)} bytes; at most 1000000 can be forwarded.",
    )  # fmt: skip


def test_a_flood_of_control_records_is_only_counted() -> None:
    values = [text(CONTROL, id=str(number), junk="x" * 900_000) for number in range(10)]
    batch = job().batch(raw(values, START))
    assert sum(len(it.value) for it in batch.messages) <= MAX_BYTES
    assert batch.tally["control records"] == len(batch.messages)
    assert batch.tally["lost control records"] == 10 - len(batch.messages)


def test_of_invented_arms_those_with_the_most_duels_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bucket, "MAX_UNKNOWN", 2)
    values = [text(DUEL, id=f"junk-{number}", a=f"junk-{number}") for number in range(20)]
    values += [text(DUEL, id=f"added-{number}", a="added") for number in range(2)]
    values += [text(DUEL, id="known")]
    found = counts(written(job(partitions=1), *raw(values, START)))
    assert len(found) == 3
    assert ("added", "ltr-v1", 2, 0, 0) in found
    assert ("bm25", "ltr-v1", 1, 0, 0) in found


def test_an_added_arm_keeps_all_its_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket, "MAX_UNKNOWN", 1)
    names = [f"s{number}" for number in range(5)]
    values = [text(DUEL, id=name, a="added", segment=name) for name in names]
    search = {"arms": ["bm25", "ltr-v1"], "segments": {"class": names}}
    testing = Job(Config.model_validate({
        "source": {}, "sink": {}, "snapshots": {}, "experiments": {"search": search},
        "spark": spark(lateness_ms=0, partitions=1),
    }))  # fmt: skip
    assert sorted(it["segment"] for it in written(testing, *raw(values, START))) == names


def test_a_slice_is_closed_in_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [
        text(IMPRESSION, id="i-%"), text(CLICK, id="c-%", impression="i-%"), text(DUEL, id="d-%"),
    ]  # fmt: skip
    values = [kind.replace(b"%", b"%d" % number) for number in range(50) for kind in kinds] * 2
    whole = written(job(), *raw(values, START))
    monkeypatch.setattr(bucket, "SHARE_BYTES", 200)
    assert written(job(), *raw(values, START)) == whole


def test_a_slice_of_any_size_takes_the_memory_of_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket, "SHARE_BYTES", 20_000, raising=False)
    testing = job(partitions=1)
    duel = text(DUEL, id="%")
    values = [duel.replace(b"%", b"%d" % number) for number in range(10_000)]
    testing.batch(raw(values, START, step_ms=0), tasks=50)
    testing.batch(raw([duel], START + 10_000))
    tracemalloc.start()
    try:
        assert testing.batch([]).tally["duels"] == len(values)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000, "the parts of a slice take 5 MB"


def test_clicks_on_one_impression_take_the_memory_of_those_that_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bucket, "MAX_PARTS", 1000, raising=False)
    testing = job(partitions=1)
    click = text(CLICK, id="%")
    clicks = [click.replace(b"%", b"%d" % number) for number in range(10_000)]
    testing.batch(raw([text(IMPRESSION), *clicks], START, step_ms=0), tasks=50)
    testing.batch(raw([text(DUEL, id="later")], START + 60_000))
    tracemalloc.start()
    try:
        batch = testing.batch([])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert batch.tally["credited"] == MAX_CLICKS
    assert counts([json.loads(it.value) for it in batch.messages]) == [("bm25", "ltr-v1", 0, 1, 0)]
    assert peak < 2_000_000, "all clicks take 5 MB"
