"""Credit functions that are compared, and weights of actions that no click has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streamduel.analysis import crediting
from streamduel.errors import InterleavingError
from streamduel.interleaving.credit import CREDITS, Credit, CreditKind, click_count
from streamduel.interleaving.credit.base import REGISTRY, Need
from tests.unit.analysis.exports import ROWS, Row, json_lines, lists, only


@pytest.mark.parametrize(
    ("clicks", "there"),
    [
        (lambda row: [{"rank": rank, "action": "cart"} for rank in row["clicks"]],
         "clicks have 'cart'"),
        (lambda row: row["clicks"], "clicks have 'click'"),
        (lambda _: [], "the log has no clicks"),
    ],
)  # fmt: skip
def test_a_weighted_action_of_no_click_is_told(
    clicks: Callable[[Row], object], there: str, tmp_path: Path
) -> None:
    rows = [
        {**row, "type": "interleaving", "experiment": "search", "clicks": clicks(row)}
        for row in ROWS
    ]
    log = json_lines(tmp_path / "x.jsonl", rows)
    found = only(log, credit="weighted", weights={"crat": 3, "cart": 1, "click": 1})
    (told,) = [each for each in found.checks if each.name == "weights"]
    missing = [each for each in ("crat", "cart", "click") if f"'{each}'" not in there]
    assert told.verdict == "warning"
    assert told.sentence == (
        f"Of the actions of --weight, no click has {', '.join(map(repr, missing))}; {there}."
    )


def test_patterns_are_credited_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = json_lines(tmp_path / "log.jsonl", lists(300))
    whole = only(path)
    monkeypatch.setattr(crediting, "CREDITED_AT_ONCE", 3)
    assert only(path) == whole


def dwell(min_ms: int) -> Credit:
    return lambda shown, clicks: click_count(shown, clicks[min_ms:])


def test_a_function_with_an_unknown_parameter_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    before = CREDITS.keys() - {"weighted"}
    monkeypatch.setitem(REGISTRY, "dwell", CreditKind(dwell, True, "", ""))
    assert crediting.functions("any_click", {}).keys() == before
    assert crediting.functions("any_click", {"cart": 3}).keys() == {*before, "weighted"}
    with pytest.raises(InterleavingError, match="'dwell' needs 'min_ms'"):
        crediting.functions("dwell", {})


@pytest.mark.parametrize(
    ("needs", "compared"), [(["order"], False), (["ranks"], False), ([], True)]
)
def test_a_function_that_needs_more_of_the_clicks_is_left_out(
    needs: list[Need], compared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(REGISTRY, "new", CreditKind(click_count, False, "", "", needs))
    rows = [{"a": "x", "b": "y", "clicks_a": n % 3, "clicks_b": 1} for n in range(90)]
    assert ("new" in only(json_lines(tmp_path / "log.jsonl", rows)).credits) == compared
