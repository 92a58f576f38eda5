"""The newest dead letters: reason and place, never the record's content; bounded in every way."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from streamduel.config import load
from streamduel.connector import Message, PartitionCommit
from streamduel.monitoring.recent_dead_letters import (
    MAX_DEAD_LETTERS,
    MAX_SENTENCE,
    RecentDeadLetter,
    RecentDeadLetters,
)
from streamduel.records import DeadLetter, Rejected
from streamduel.service import serve
from streamduel.stream.dead_letters import MAX_KEY_BYTES, dead_letter
from streamduel.testing import Record, duel
from tests.logs import POISON
from tests.unit.monitoring.fold import config, fold, task


def rejected(
    offset: int, value: bytes = b"{}", key: bytes | None = None, sentence: str = "it is bad."
) -> Message:
    record = Record(offset, value, 0, key)
    return dead_letter(record, Rejected("invalid_record", sentence), "clicks", 3)


def kept(*messages: Message) -> RecentDeadLetters:
    made = RecentDeadLetters(lambda: 1000.0)
    made.published([PartitionCommit(3, 100, dead_letters=messages)])
    return made


def test_a_dead_letter_has_reason_and_place() -> None:
    assert kept(rejected(7, key=b"search")).newest == (
        RecentDeadLetter("invalid_record", "it is bad.", "clicks", 3, 7, "search", 1000.0, None),
    )
    assert kept(rejected(7)).newest[0].key is None
    assert kept(rejected(7, key=b"caf\xe9")).newest[0].key == "caf\ufffd"


@pytest.mark.parametrize(
    "sentence",
    ['field "x" is a \\ and "y"', ',"value":"secret"', "«größer» 🔎", "two\nlines\x00\x7f"],
)
def test_any_sentence_is_kept_unchanged(sentence: str) -> None:
    assert kept(rejected(7, sentence=sentence)).newest[0].sentence == sentence


@pytest.mark.parametrize("value", [*POISON, b'","value":"', b"x" * 2_000_000, b"\xff" * 300_000])
def test_the_record_is_not_kept(value: bytes) -> None:
    (letter,) = kept(rejected(7, value)).newest
    assert letter == RecentDeadLetter(
        "invalid_record", "it is bad.", "clicks", 3, 7, None, 1000.0, None
    )


def test_the_experiment_is_the_one_that_counts_the_dead_letter() -> None:
    watched = task(config({"search": ("bm25", "dense"), "nowhere": ("x", "z")}))
    fold(watched, *POISON)
    made = RecentDeadLetters()
    made.published([watched.take_commit()])
    for name, experiment in watched.experiments.items():
        own = [letter for letter in made.newest if letter.experiment == name]
        assert len(own) == experiment.outcomes.dead_letter > 0


def test_a_foreign_click_log_names_the_experiment_in_the_configuration() -> None:
    plain = config({"search": ("bm25", "dense")})
    source = {**plain.source, "format": {"name": "ubi", "experiment": "search"}}
    watched = task(plain.model_validate({**plain.model_dump(), "source": source}))
    watched.fold([Record(0, b'{"query_id": 5', 0)])
    made = RecentDeadLetters()
    made.published([watched.take_commit()])
    assert [letter.experiment for letter in made.newest] == ["search"]
    assert watched.experiments["search"].outcomes.dead_letter == 1


def test_only_the_newest_are_kept() -> None:
    made = RecentDeadLetters()
    for number in range(30):
        batch = [rejected(10 * number + each) for each in range(10)]
        made.published([PartitionCommit(3, 0, dead_letters=batch)])
    assert [letter.offset for letter in made.newest] == list(range(300 - MAX_DEAD_LETTERS, 300))


def test_those_that_will_not_be_kept_are_not_read() -> None:
    broken = Message(None, b"not to be decoded")
    made = kept(*[broken] * 1000, *[rejected(offset) for offset in range(MAX_DEAD_LETTERS)])
    assert len(made.newest) == MAX_DEAD_LETTERS


def test_lengths_are_bounded() -> None:
    (letter,) = kept(rejected(7, key=b"k" * 10_000, sentence="s" * 10_000)).newest
    assert len(letter.sentence) == MAX_SENTENCE
    assert len(letter.key or "") == MAX_KEY_BYTES


def test_every_dead_letter_of_a_fold_can_be_read() -> None:
    watched = task(config({"search": ("bm25", "dense")}))
    fold(watched, *POISON)
    commit = watched.take_commit()
    made = RecentDeadLetters()
    made.published([commit])
    whole = [msgspec.json.decode(each.value, type=DeadLetter) for each in commit.dead_letters]
    assert len(whole) == len(POISON)
    assert [(each.reason, each.sentence, each.offset) for each in made.newest] == [
        (each.reason, each.error, each.offset) for each in whole
    ]


def test_they_are_shown_when_they_are_visible(tmp_path: Path) -> None:
    log = tmp_path / "clicks.jsonl"
    log.write_bytes(b"\n".join([duel("search", 1, "bm25", "ltr", "a"), b"{", b"[]"]) + b"\n")
    file = tmp_path / "search.yaml"
    file.write_text(
        json.dumps(
            {
                "source": {"connector": "files", "path": "clicks.jsonl"},
                "sink": {"connector": "files", "path": "out/"},
                "snapshots": {"connector": "files", "path": "state/"},
                "experiments": {"search": {"arms": ["bm25", "ltr"]}},
            }
        )
    )
    visible: list[int] = []

    class Watch(RecentDeadLetters):
        def published(self, commits: list[PartitionCommit]) -> None:  # type: ignore[override]
            super().published(commits)
            lines = (tmp_path / "out" / "dead_letters.jsonl").read_bytes().splitlines()
            visible.append(len(lines))

    made = Watch()
    serve(load(file), lambda: False, until_end=True, observers=[made])
    assert [letter.offset for letter in made.newest] == [1, 2]
    assert visible[-1] == 2
