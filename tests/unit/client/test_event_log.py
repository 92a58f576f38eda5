import json
import math
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from streamduel.client import (
    BufferFullError,
    ClientError,
    Draw,
    EventLog,
    Merged,
    Message,
    RankClick,
    Written,
)
from streamduel.client.event_log import Origin
from streamduel.client.writers import MAX_RECORD_BYTES
from streamduel.records import Click, Duel, Impression, Interleaving
from tests.unit.client.bed import NOW, PATIENCE, Clock

PAIR = Draw("bm25", "ltr", 17)
ALONE = Draw("ltr", "ltr", 17)
SHOWN = Merged(["d1", "d2", "d3"], ["a", "b", None])
TS = int(1000 * NOW)


class Kept:
    """A writer that keeps the messages, once its gate is open."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.gate = threading.Event()
        self.gate.set()

    def write(self, messages: Sequence[Message]) -> Written:
        assert self.gate.wait(PATIENCE)
        self.messages += messages
        return Written()

    def close(self) -> None:
        """Do nothing."""


def logged(log: EventLog, kept: Kept) -> list[Any]:
    log.close()
    kind = Impression | Click | Duel | Interleaving
    return [msgspec.json.decode(message.value, type=kind) for message in kept.messages]


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def log(kept: Kept) -> Iterator[EventLog]:
    with EventLog(kept, clock=Clock()) as log:
        yield log


def test_what_is_no_writer_is_refused() -> None:
    with pytest.raises(ClientError) as refused:
        EventLog("clicks.jsonl")  # type: ignore[arg-type]
    assert str(refused.value) == (
        "writer must have a method write, as those of to_kafka and to_file (found str)."
    )


def test_an_impression(log: EventLog, kept: Kept) -> None:
    assert log.impression("search", PAIR, SHOWN, record_id="i-1") == "i-1"
    [found] = logged(log, kept)
    assert found == Impression(
        "i-1", "search", "bm25", "ltr", ["a", "b", None],
        docs=["d1", "d2", "d3"], chances=None, epoch=17, ts=TS,
    )  # fmt: skip
    assert kept.messages[0].key == b"search"


def test_an_impression_without_documents_and_epoch_but_with_chances(
    log: EventLog, kept: Kept
) -> None:
    shown = SHOWN._replace(chances=[0.9, 0.2, None])
    log.impression("search", Draw("bm25", "ltr"), shown, docs=False, ts=5)
    [found] = logged(log, kept)
    assert (found.docs, found.epoch, found.ts) == (None, None, 5)
    assert found.chances == [0.9, 0.2, None]


def test_the_least_and_the_greatest_chance_are_logged(log: EventLog, kept: Kept) -> None:
    chances: list[float | None] = [0.0, 1e-199, 1.0]
    log.impression("search", PAIR, SHOWN._replace(chances=chances))
    [found] = logged(log, kept)
    assert found.chances == chances


def test_documents_of_any_kind_are_logged_as_text(log: EventLog, kept: Kept) -> None:
    impression = log.impression("search", PAIR, Merged([7, 8], ["a", "b"]))
    assert impression is not None
    log.click("search", impression, doc=8)
    shown, click = logged(log, kept)
    assert (shown.docs, click.doc) == (["7", "8"], "8")


def test_clicks(log: EventLog, kept: Kept) -> None:
    assert log.click("Größe", "i-1", rank=2, record_id="c-1") == "c-1"
    log.click("Größe", "i-1", doc="d2", action="cart", record_id="c-2", ts=5)
    assert logged(log, kept) == [
        Click("c-1", "Größe", "i-1", rank=2, doc=None, action="click", ts=TS),
        Click("c-2", "Größe", "i-1", rank=None, doc="d2", action="cart", ts=5),
    ]
    assert kept.messages[0].key == "Größe".encode()


def test_duels(log: EventLog, kept: Kept) -> None:
    log.duel("search", "bm25", "ltr", "tie", record_id="d-1")
    log.duel("search", "ltr", "ltr", None, record_id="d-2", ts=5)
    assert logged(log, kept) == [
        Duel("d-1", "search", "bm25", "ltr", "tie", TS),
        Duel("d-2", "search", "ltr", "ltr", None, 5),
    ]


def test_whole_impressions(log: EventLog, kept: Kept) -> None:
    bought = RankClick(1, ts=6, action="buy")
    log.interleaving("search", PAIR, SHOWN, [0, bought], record_id="i-1", ts=5)
    log.interleaving("search", PAIR, SHOWN, [0, bought], record_id="i-2", ts=5, docs=True)
    without, with_docs = logged(log, kept)
    assert without == Interleaving(
        "i-1", "search", "bm25", "ltr", ["a", "b", None], [0, bought], epoch=17, ts=5
    )
    assert msgspec.json.decode(with_docs.docs) == [str(document) for document in SHOWN.docs]


def test_a_ranker_alone_is_logged_as_a_duel_without_winner(log: EventLog, kept: Kept) -> None:
    shown = Merged(["d1"], [None])
    assert log.impression("search", ALONE, shown, record_id="i-1") is None
    assert log.interleaving("search", ALONE, shown, [0], record_id="i-2", ts=5) == "i-2"
    assert logged(log, kept) == [
        Duel("i-1", "search", "ltr", "ltr", None, TS),
        Duel("i-2", "search", "ltr", "ltr", None, 5),
    ]


@pytest.mark.parametrize("draw", [PAIR, ALONE])
def test_a_list_without_documents_is_not_logged(log: EventLog, kept: Kept, draw: Draw) -> None:
    assert log.impression("search", draw, Merged([], []), record_id="i-1") is None
    assert log.interleaving("search", draw, Merged([], []), []) is None
    assert logged(log, kept) == []


def test_records_have_ids_of_their_own(log: EventLog, kept: Kept) -> None:
    given = [log.impression("search", PAIR, SHOWN), log.click("search", "i", rank=0)]
    given += [log.duel("search", "x", "y", "a"), log.interleaving("search", PAIR, SHOWN, [])]
    assert [record.id for record in logged(log, kept)] == given
    assert {uuid.UUID(each or "").version for each in given} == {4}
    assert len(set(given)) == 4


def test_records_may_say_where_they_come_from(log: EventLog, kept: Kept) -> None:
    origin: Origin = {"client": "u-1", "query": "red shoes", "segment": {"device": "phone"}}
    log.impression("search", PAIR, SHOWN, **origin)
    log.impression("search", ALONE, SHOWN, **origin)
    log.interleaving("search", PAIR, SHOWN, [0], **origin)
    log.interleaving("search", ALONE, SHOWN, [0], **origin)
    log.click("search", "i-1", rank=0, **origin)
    log.duel("search", "bm25", "ltr", "a", **origin)
    for record in logged(log, kept):
        assert (record.client, record.query) == ("u-1", "red shoes")
        assert record.segment == {"device": "phone"}


@pytest.mark.parametrize("client", [None, "u-1"])
@pytest.mark.parametrize("segment", [None, "phone", MappingProxyType({"device": "phone"})])
def test_an_origin_may_be_unknown_and_of_any_mapping(
    log: EventLog, kept: Kept, client: str | None, segment: str | Mapping[str, str] | None
) -> None:
    log.impression("search", PAIR, SHOWN, client=client, query=None, segment=segment)
    log.duel("search", "bm25", "ltr", "a", client=client, segment=segment)
    for record in logged(log, kept):
        assert (record.client, record.query, record.segment) == (client, None, segment)


def test_a_field_is_not_given_twice(log: EventLog) -> None:
    twice: Any = {"id": "mine"}
    with pytest.raises(TypeError, match="multiple values for keyword argument 'id'"):
        log.click("search", "i-1", rank=0, **twice)


def test_a_field_with_its_default_is_not_written(log: EventLog, kept: Kept) -> None:
    log.click("search", "i-1", rank=0, record_id="c-1", ts=7)
    log.close()
    assert kept.messages[0].value == (
        b'{"type":"click","id":"c-1","experiment":"search","impression":"i-1","rank":0,"ts":7}'
    )


def refusals(log: EventLog) -> dict[str, Any]:
    """Invalid calls by their error messages."""
    return {
        "this click would be refused: a click must name a 'rank' or a 'doc' (found "
        "neither).":
            lambda: log.click("search", "i-1"),
        "this click would be refused: rank must be an integer from 0, or null (found -1).":
            lambda: log.click("search", "i-1", rank=-1),
        "this click would be refused: rank must be an integer from 0, or null (found '1').":
            lambda: log.click("search", "i-1", rank="1"),  # type: ignore[arg-type]
        "this click would be refused: id must be a string of 1 to 256 characters (found "
        f"'{'x' * 78}…).":
            lambda: log.click("search", "i-1", rank=1, record_id="x" * 257),
        "this click would be refused: experiment must be a string of 1 to 256 characters (found "
        "'').":
            lambda: log.click("", "i-1", rank=1),
        "this impression would be refused: docs must have an entry for each rank, 3 as "
        "'teams' has (found 1).":
            lambda: log.impression("search", PAIR, SHOWN._replace(docs=["d1"])),
        "this impression would be refused: chances must have an entry for each rank, 3 as "
        "'teams' has (found 1).":
            lambda: log.impression("search", PAIR, SHOWN._replace(chances=[0.5])),
        "this impression would be refused: chances[0] must be a number from 0 to 1, or null "
        "(found 7).":
            lambda: log.impression("search", PAIR, SHOWN._replace(chances=[7, None, None])),
        "this impression would be refused: chances must be 0, or numbers from 1e-199 to 1 (found "
        "1e-310).":
            lambda: log.impression("search", PAIR, SHOWN._replace(chances=[0.5, 0.0, 1e-310])),
        "this impression would be refused: chances must be 0, or numbers from 1e-199 to 1 (found "
        "nan).":
            lambda: log.impression("search", PAIR, SHOWN._replace(chances=[math.nan, None, 1.0])),
        "this impression would be refused: chances must be 0, or numbers from 1e-199 to 1 (found "
        "inf).":
            lambda: log.impression("search", PAIR, SHOWN._replace(chances=[1.0, math.inf, 0.5])),
        "this click would be refused: id must be a string of 1 to 256 characters (found '').":
            lambda: log.click("search", "i-1", rank=1, record_id=""),
        "this interleaving would be refused: clicks has rank 3, outside the list: 'teams' has "
        "3 ranks, from 0.":
            lambda: log.interleaving("search", PAIR, SHOWN, [2, 3]),
        "this interleaving would be refused: clicks has rank 4, outside the list: 'teams' has "
        "3 ranks, from 0.":
            lambda: log.interleaving("search", PAIR, SHOWN, [RankClick(4)]),
        "this interleaving would be refused: chances must have an entry for each rank, 3 as "
        "'teams' has (found 2).":
            lambda: log.interleaving("search", PAIR, SHOWN._replace(chances=[0.5, 0.5]), []),
        "this duel would be refused: winner must be 'a', 'b' or 'tie' in a duel of two arms "
        "(found null).":
            lambda: log.duel("search", "x", "y", None),
        "this duel would be refused: winner must be None where one ranker was served alone "
        "(found 'a').":
            lambda: log.duel("search", "x", "x", "a"),
        f"this impression would be refused: it has 1004202 bytes, and at most {MAX_RECORD_BYTES} "
        "are allowed.":
            lambda: log.impression(
                "search", PAIR, Merged(["d" * 1000] * 997, ["a"] * 997), record_id="i" * 114, ts=1
            ),
    }  # fmt: skip


@pytest.mark.parametrize("number", range(17))
def test_records_that_streamduel_would_refuse_are_refused(
    log: EventLog, kept: Kept, number: int
) -> None:
    sentence, attempt = list(refusals(log).items())[number]
    with pytest.raises(ClientError) as refused:
        attempt()
    assert str(refused.value) == sentence
    assert logged(log, kept) == []


def test_invalid_text_is_refused(log: EventLog, kept: Kept) -> None:
    with pytest.raises(ClientError, match=r"this click would be refused: .*surrogates"):
        log.click("search", "\ud800", rank=0)
    with pytest.raises(ClientError, match=r"this click would be refused: .*unsupported"):
        log.click("search", object(), rank=0)  # type: ignore[arg-type]
    with pytest.raises(ClientError, match=r"this click would be refused: .*surrogates"):
        log.click("\ud800", "i-1", rank=0)
    with pytest.raises(ClientError, match=r"this click would be refused: experiment must be"):
        log.click(None, "i-1", rank=0)  # type: ignore[arg-type]
    assert logged(log, kept) == []


def test_bytes_are_no_text(log: EventLog, kept: Kept) -> None:
    name: Any = b"x"
    attempts: list[Callable[[], object]] = [
        lambda: log.impression("search", Draw(name, "y", 1), SHOWN),
        lambda: log.duel("search", "y", name, "a"),
        lambda: log.duel(name, "x", "y", "a"),
        lambda: log.click("search", "i-1", rank=0, record_id=name),
        lambda: log.click("search", name, rank=0),
        lambda: log.click("search", "i-1", rank=0, segment={"device": name}),
    ]
    for attempt in attempts:
        with pytest.raises(ClientError, match=r"refused: text must be of type str \(found b'x'\)"):
            attempt()
    assert logged(log, kept) == []


def test_a_full_buffer_drops_and_counts(kept: Kept, caplog: pytest.LogCaptureFixture) -> None:
    kept.gate.clear()
    log = EventLog(kept, buffer_bytes=1000)
    for _ in range(10):
        log.click("search", "i-1", rank=0, record_id="c")
    held = log.waiting
    assert 1 <= held < 5
    assert (log.waiting, log.written, log.dropped) == (held, 0, 10 - held)
    assert caplog.text.count("the event log is full and drops records") == 1
    kept.gate.set()
    assert log.flush(PATIENCE)
    assert (log.waiting, log.written) == (0, held)
    log.click("search", "i-1", rank=0, record_id="d")
    assert logged(log, kept)[-1].id == "d"
    assert log.dropped == 10 - held


def test_a_full_buffer_may_raise_instead(kept: Kept) -> None:
    kept.gate.clear()
    log = EventLog(kept, buffer_bytes=500, full="raise")
    log.click("search", "i-1", rank=0)
    with pytest.raises(BufferFullError) as full:
        log.click("search", "i-1", rank=0)
    assert str(full.value) == "the event log is full: 1 records are not written yet."
    kept.gate.set()
    log.close()
    assert (log.written, log.dropped) == (1, 1)


def test_full_must_be_drop_or_raise(kept: Kept) -> None:
    with pytest.raises(ClientError, match=r"^full must be 'drop' or 'raise' \(found 'wait'\)\.$"):
        EventLog(kept, full="wait")  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [0, -1, 1.5, "x", None])
def test_the_buffer_has_room(kept: Kept, size: Any) -> None:
    sentence = rf"^buffer_bytes must be an integer of at least 1 \(found {size!r}\)\.$"
    with pytest.raises(ClientError, match=sentence):
        EventLog(kept, buffer_bytes=size)


def test_a_file_has_one_record_per_line(tmp_path: Path) -> None:
    path = tmp_path / "clicks.jsonl"
    with EventLog.to_file(path) as log:
        impression = log.impression("search", PAIR, SHOWN)
        assert impression is not None
        log.click("search", impression, rank=1)
    shown, click = map(json.loads, path.read_text().splitlines())
    assert shown["id"] == click["impression"] == impression
    assert (log.waiting, log.written, log.dropped) == (0, 2, 0)
    with pytest.raises(ClientError, match=r"^the event log is closed; it takes no more records\.$"):
        log.click("search", impression, rank=1)
