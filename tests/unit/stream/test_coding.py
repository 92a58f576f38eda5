"""Codes of events, before and after changes of arms."""

from __future__ import annotations

from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from streamduel.config.experiment import ExperimentSettings
from streamduel.config.model import LimitSettings
from streamduel.records import (
    Control,
    Duel,
    Duels,
    InputEvent,
    Interleaving,
    RankClick,
    Rejected,
)
from streamduel.stream.coding import NO_DUEL, SPECIAL, Coder
from streamduel.stream.roster import Roster

ARMS = ["bm25", "ltr-v1", "ltr-v2"]
OUTCOMES = {"a": 1.0, "b": 0.0, "tie": 0.5}


def coder_of(arms: list[str] = ARMS, **settings: Any) -> tuple[Coder, Roster]:
    roster = Roster("search", arms)
    made = ExperimentSettings.model_validate({"arms": arms, **settings})
    return Coder(made, roster, LimitSettings()), roster


def duel(a: str, b: str, winner: Any) -> Duel:
    return Duel("1", "search", a, b, winner)


def meaning(coder: Coder, code: int) -> tuple[int, int, float]:
    """The indices of the arms in a code, and the share of the win of the first."""
    first, second, outcome = coder.by_code
    return first.item(code), second.item(code), outcome.item(code)


def refusal(coder: Coder, event: InputEvent, offset: int | None = None) -> str:
    """The sentence about a refused event: now, or at an offset."""
    check = coder.code if offset is None else partial(coder.check_at, offset=offset)
    with pytest.raises(Rejected) as refused:
        check(event)
    return refused.value.sentence


def test_a_code_contains_both_arms_and_the_outcome() -> None:
    coder, _ = coder_of()
    seen = set()
    for (i, a), (j, b), winner in product(enumerate(ARMS), enumerate(ARMS), OUTCOMES):
        code = coder.code(duel(a, b, winner))
        seen.add(code)
        assert meaning(coder, code) == (i, j, OUTCOMES[winner] if i != j else 0.5)
        firsts, seconds, winners = coder.plain
        if a != b:
            assert firsts[a] + seconds[b] + winners[winner] == code
    assert min(seen) == 0 + 2  # the first arm with itself
    assert max(seen) < len(coder.by_code[0]) == 27


@pytest.mark.parametrize("n_arms", [2, 3, 36, 1000])
def test_codes_of_any_two_arms_differ(n_arms: int) -> None:
    arms = [f"arm-{number}" for number in range(n_arms)]
    coder, _ = coder_of(arms)
    corners = [(i, j) for i, j in product((0, 1, n_arms - 2, n_arms - 1), repeat=2) if i != j]
    for i, j in corners:
        code = coder.code(duel(arms[i], arms[j], "a"))
        assert meaning(coder, code) == (i, j, 1.0)


def test_an_interleaving_has_the_code_of_its_duel() -> None:
    coder, _ = coder_of()
    cases: list[tuple[list[Any], str]] = [([0], "a"), ([1, 2], "b"), ([], "tie")]
    for clicks, winner in cases:
        shown = Interleaving("1", "search", "ltr-v1", "bm25", ["a", "b", "b"], clicks)
        assert coder.code(shown) == coder.code(duel("ltr-v1", "bm25", winner))
    dropping, _ = coder_of(ties="drop")
    assert dropping.code(Interleaving("1", "search", "bm25", "ltr-v1", ["a"], [])) == NO_DUEL


TOLD: list[tuple[dict[str, Any], list[Any], str]] = [
    ({"name": "click_count"}, [0, 1, 2], "b"),
    ({"name": "any_click"}, [0, 1, 2], "tie"),
    ({"name": "first_click"}, [RankClick(1), RankClick(0)], "b"),
    ({"name": "first_click"}, [RankClick(1, 9), RankClick(0, 5)], "a"),
    ({"name": "first_click"}, [RankClick(1, 9), 0], "b"),
    ({"name": "last_click"}, [RankClick(1, 9), RankClick(0, 5)], "b"),
    ({"name": "weighted", "weights": {"cart": 3, "click": 1}},
     [RankClick(0, action="cart"), 1, RankClick(2)], "a"),
    ({"name": "position_debiased", "eta": 1}, [0, 0, 0, 1], "a"),
    ({"name": "position_debiased", "propensities": [1, 0.25]}, [0, 0, 0, 1], "b"),
    ({"name": "probabilistic"}, [0, 1], "b"),
]  # fmt: skip


@pytest.mark.parametrize(("credit", "clicks", "winner"), TOLD)
def test_the_credit_function_is_the_configured_one(
    credit: dict[str, Any], clicks: list[Any], winner: str
) -> None:
    """In an `interleaving` record, and in an impression whose clicks are records of their own."""
    coder, _ = coder_of(credit=credit)
    teams: list[Any] = ["a", "b", "b"]
    chances = [0.6, 0.1, 0.5]
    told = coder.code(duel("ltr-v1", "bm25", winner))
    record = Interleaving("1", "search", "ltr-v1", "bm25", teams, clicks, chances)  # type: ignore[arg-type]
    assert coder.code(record) == told
    sent = tuple(RankClick(it) if isinstance(it, int) else it for it in clicks)
    shown: Any = SimpleNamespace(a="ltr-v1", b="bm25", teams=teams, chances=chances, clicks=sent)
    assert coder.closed(shown) == told


def test_a_dropped_tie_is_no_duel_but_an_arm_alone_is_one() -> None:
    coder, _ = coder_of(ties="drop")
    assert coder.code(duel("bm25", "ltr-v1", "tie")) == NO_DUEL
    for winner in ("tie", None, "a"):
        assert meaning(coder, coder.code(duel("bm25", "bm25", winner)))[:2] == (0, 0)


def test_bulk_and_control_have_a_code_of_their_own() -> None:
    coder, _ = coder_of()
    assert coder.code(Duels("1", "search", "bm25", "ltr-v1", 1, 0, 0)) == SPECIAL
    for action in ("pause", "resume", "reset"):
        assert coder.code(Control("1", "search", action)) == SPECIAL
    assert SPECIAL < NO_DUEL < 0


def test_adding_or_retiring_must_name_an_arm() -> None:
    coder, _ = coder_of()
    for action in ("add_arm", "retire_arm"):
        event = Control("1", "search", action)
        sentence = f"'{action}' must name an 'arm' (found none)."
        assert refusal(coder, event) == refusal(coder, event, 5) == sentence
        assert coder.code(msgspec.structs.replace(event, arm="unknown")) == SPECIAL


def test_a_change_of_arms_drops_all_codes() -> None:
    coder, roster = coder_of()
    before, plain = coder.code(duel("bm25", "ltr-v2", "a")), coder.plain
    roster.retire("ltr-v1", 3)
    coder.renumber()
    assert all(it is was for it, was in zip(coder.plain, plain, strict=True)), "the fold holds them"
    assert "ltr-v1" not in plain[0]
    after = coder.code(duel("bm25", "ltr-v2", "a"))
    assert after != before
    assert meaning(coder, after) == (0, 1, 1.0)
    assert len(coder.by_code[0]) == 12
    assert "retired at offset 3" in refusal(coder, duel("bm25", "ltr-v1", "a"))


@pytest.mark.parametrize("changes", [{"max_per_client": 3}, {"segments": {"class": ["x"]}}])
def test_no_duel_is_plain_whose_other_fields_count(changes: dict[str, Any]) -> None:
    coder, _ = coder_of(**changes)
    assert coder.plain == ({}, {}, {})


def test_a_tie_that_is_dropped_is_not_plain() -> None:
    coder, _ = coder_of(ties="drop")
    assert coder.plain[2] == {"a": 1, "b": 0}


def test_an_event_valid_at_its_offset_passes_the_later_check() -> None:
    coder, roster = coder_of()
    roster.add("dense", 10)
    roster.retire("bm25", 20)
    coder.renumber()
    old, new = duel("bm25", "ltr-v1", "a"), duel("ltr-v1", "dense", "b")
    coder.check_at(old, 19)
    coder.check_at(new, 11)
    coder.check_at(duel("bm25", "dense", "tie"), 15)
    assert "retired at offset 20" in refusal(coder, old, 21)
    assert refusal(coder, new, 9)
    assert meaning(coder, coder.code(new)) == (0, 2, 0.0)


MISTAKES: list[InputEvent] = [
    duel("bm25", "nobody", "a"),
    duel("bm25", "ltr-v1", None),
    Duels("1", "search", "bm25", "bm25", 1, 0, 0),
    Duels("1", "search", "bm25", "ltr-v1", 0, 0, 0),
    Duels("1", "search", "bm25", "ltr-v1", 2**40, 1, 0),
    Interleaving("1", "search", "bm25", "bm25", ["a"], [0]),
    Interleaving("1", "search", "bm25", "ltr-v1", ["a"], [1]),
    Interleaving("1", "search", "bm25", "ltr-v1", ["a", "b"], [1], [0.5]),
    Control("1", "search", "retire_arm"),
]


@pytest.mark.parametrize("event", MISTAKES)
@pytest.mark.parametrize("changed", [False, True])
def test_an_invalid_event_fails_the_later_check(event: InputEvent, changed: bool) -> None:
    coder, roster = coder_of([*ARMS, "dense"])
    sentence = refusal(coder, event)
    if changed:
        roster.retire("dense", 30)
        coder.renumber()
    assert refusal(coder, event, 7).split(";")[0] == sentence.split(";")[0]
