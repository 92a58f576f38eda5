"""Rosters: arms added and retired, and the arms that a record may name."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamduel.records import Rejected
from streamduel.section import MAX_ARMS
from streamduel.stream.roster import MAX_NAME_BYTES, MAX_NAMES, Roster

ARMS = ("bm25", "ltr-v1", "ltr-v2")


def roster(*changes: str) -> Roster:
    """The arms after changes: `+arm` adds, `-arm` retires, each at the next tenth offset."""
    made = Roster("search", ARMS)
    for number, change in enumerate(changes, 1):
        (made.add if change[0] == "+" else made.retire)(change[1:], 10 * number)
    return made


def verdict(refused: pytest.ExceptionInfo[Rejected]) -> tuple[str, str]:
    return refused.value.reason, refused.value.sentence


def refused_join(made: Roster, arm: str) -> tuple[str, str]:
    with pytest.raises(Rejected) as refused:
        made.check_new(arm)
    return verdict(refused)


def refused_leave(made: Roster, arm: str) -> tuple[str, str]:
    with pytest.raises(Rejected) as refused:
        made.check_retirable(arm)
    return verdict(refused)


def test_arms_are_numbered_in_the_order_of_addition() -> None:
    made = roster("+dense", "-ltr-v1", "+hybrid")
    assert made.arms == ["bm25", "ltr-v2", "dense", "hybrid"]
    assert made.index == {"bm25": 0, "ltr-v2": 1, "dense": 2, "hybrid": 3}


def test_the_callers_list_of_arms_is_not_changed() -> None:
    given_arms = list(ARMS)
    made = Roster("search", given_arms)
    made.add("dense", 1)
    assert given_arms == list(ARMS)


def test_checks_change_nothing() -> None:
    made = roster("+dense", "-ltr-v1")
    before = made.state()
    made.check_new("hybrid")
    assert made.check_retirable("dense") == 2
    for refused in (refused_join(made, "dense"), refused_leave(made, "nobody")):
        assert refused[0] in {"invalid_record", "unknown_arm"}
    assert made.state() == before


def test_a_present_arm_cannot_be_added() -> None:
    sentence = "arm '{}' is in the experiment already."
    assert refused_join(roster(), "bm25") == ("invalid_record", sentence.format("bm25"))
    assert refused_join(roster("+dense"), "dense") == ("invalid_record", sentence.format("dense"))


@pytest.mark.parametrize(
    ("changes", "arm", "offset"),
    [(["-bm25"], "bm25", 10), (["+dense", "+hybrid", "-dense"], "dense", 30)],
)
def test_the_name_of_a_retired_arm_stays_taken(changes: list[str], arm: str, offset: int) -> None:
    assert refused_join(roster(*changes), arm) == (
        "invalid_record",
        f"arm '{arm}' was retired at offset {offset}, and its name stays taken; add the ranker "
        f"under another name.",
    )


def test_the_last_two_arms_cannot_be_retired() -> None:
    assert roster().check_retirable("ltr-v2") == 2
    assert refused_leave(roster("-bm25"), "ltr-v2") == (
        "invalid_record", "arm 'ltr-v2' must stay: an experiment has at least 2 arms.",
    )  # fmt: skip


def test_an_unknown_arm_cannot_be_retired() -> None:
    assert refused_leave(roster(), "bm52") == (
        "unknown_arm",
        "unknown arm 'bm52' in experiment 'search'; did you mean 'bm25'? Its arms are bm25, "
        "ltr-v1, ltr-v2.",
    )
    assert refused_leave(roster("+dense", "-bm25"), "bm25") == (
        "unknown_arm", "arm 'bm25' of experiment 'search' was retired at offset 20.",
    )  # fmt: skip


def test_the_sentence_for_an_unknown_arm_lists_present_arms() -> None:
    assert roster("+dense", "-ltr-v1").unknown("xyz").sentence == (
        "unknown arm 'xyz' in experiment 'search'; its arms are bm25, ltr-v2, dense."
    )
    many = Roster("search", [f"arm-{number}" for number in range(11)])
    assert many.unknown("xyz").sentence.endswith("arm-8, arm-9, ….")


@pytest.mark.parametrize("length", [80, 81, 256])
def test_of_a_long_name_eighty_characters_are_shown(length: int) -> None:
    name = "x" * length
    made = Roster("search", [name, "bm25"])
    sentences = [refused_join(made, name)[1], refused_leave(made, name)[1]]
    made.add("dense", 5)
    made.retire(name, 6)
    sentences += [refused_join(made, name)[1], made.unknown(name).sentence]
    sentences.append(made.unknown("y" * length).sentence.replace("y", "x"))
    for sentence in sentences:
        assert f"'{name[:80]}'" in sentence


def test_the_number_of_present_arms_is_limited() -> None:
    made = Roster("search", [f"arm-{number}" for number in range(MAX_ARMS - 1)])
    made.check_new("one more")
    made.add("one more", 1)
    assert refused_join(made, "too many") == (
        "invalid_record",
        "an experiment has at most 1000 arms at a time and 10000 ever (found 1000 and 1000).",
    )
    made.retire("arm-0", 2)
    made.check_new("in its place")


def test_the_number_of_names_is_limited() -> None:
    room = MAX_NAMES - len(ARMS)
    made = Roster("search", ARMS, retired={f"arm-{number}": number for number in range(1, room)})
    made.check_new("the last")
    made.add("the last", room)
    made.retire("the last", room)
    assert refused_join(made, "too many") == (
        "invalid_record",
        "an experiment has at most 1000 arms at a time and 10000 ever (found 3 and 10000).",
    )


def test_the_bytes_of_all_names_are_limited() -> None:
    """Names of present arms always fit; those of retired ones add up to the limit."""
    present = [f"{number:04}" + "\N{GRINNING FACE}" * 252 for number in range(MAX_ARMS - 1)]
    room = MAX_NAME_BYTES - len(present) * len(json.dumps(present[0], ensure_ascii=False).encode())
    made = Roster("search", present)
    for number in range(room // (4 + 6 * 250 + 2)):
        name = f"{number:04}" + "\x01" * 250  # 6 bytes of JSON for each of the last
        made.check_new(name)
        made.add(name, 2 * number)
        made.retire(name, 2 * number + 1)
    reason, sentence = refused_join(made, "long" + "\x01" * 250)
    assert (reason, sentence.partition(" (found")[0]) == (
        "invalid_record",
        "the names of an experiment's arms, retired ones included, may have at most 2097152 bytes"
        " in all",
    )
    again = Roster("search", **made.state())
    assert refused_join(again, "long" + "\x01" * 250) == (reason, sentence)


def test_arms_that_join_together_are_limited_together() -> None:
    new = [f"{number:04}" + "\x01" * 250 for number in range(900)]  # 1.4 MB as JSON
    made = Roster("search", ARMS, retired=dict.fromkeys((arm + "'" for arm in new[:600]), 7))
    made.check_new(*new[:700])
    made.check_new(*new[700:])
    with pytest.raises(Rejected, match="at most 2097152 bytes in all"):
        made.check_new(*new)


def test_an_arm_competes_from_its_addition_to_its_retirement() -> None:
    made = roster("+dense", "-bm25", "-dense")  # at the offsets 10, 20 and 30
    for offset, there in [
        (0, {"bm25"}), (9, {"bm25"}), (10, {"bm25"}), (11, {"bm25", "dense"}),
        (19, {"bm25", "dense"}), (20, {"dense"}), (21, {"dense"}), (29, {"dense"}), (30, set()),
        (31, set()),
    ]:  # fmt: skip
        assert set(made.known_at(offset)) == there | {"ltr-v1", "ltr-v2"}


def test_without_changes_every_offset_has_the_same_arms() -> None:
    made = roster()
    assert made.known_at(0) == made.known_at(10**9) == made.index


NAMES = st.sampled_from([*ARMS, "dense", "hybrid", "neural"])


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.tuples(NAMES, st.integers(1, 4)), max_size=14))
def test_known_arms_at_an_offset_match_the_history(steps: list[tuple[str, int]]) -> None:
    """For all changes, also after a JSON round trip."""
    made, offset, told = Roster("search", ARMS), 0, {}
    for arm, further in steps:
        for at in range(offset + 1, offset + further):
            told[at] = set(made.index)
        offset += further
        try:
            if arm in made.index:
                made.check_retirable(arm)
                made.retire(arm, offset)
            else:
                made.check_new(arm)
                made.add(arm, offset)
        except Rejected:
            told[offset] = set(made.index)
    restored = Roster("search", **json.loads(json.dumps(made.state())))
    for at, there in told.items():
        assert set(made.known_at(at)) == there
        assert set(restored.known_at(at)) == there
    assert (restored.arms, restored.index) == (made.arms, made.index)
    assert restored.state() == made.state()


def test_a_state_shares_nothing_with_the_roster() -> None:
    made = roster("+dense", "-bm25")
    before, loose = json.dumps(made.state()), made.state()
    restored = Roster("search", **loose)
    loose["arms"].clear()
    loose["added"].clear()
    loose["retired"].clear()
    assert json.dumps(made.state()) == json.dumps(restored.state()) == before
