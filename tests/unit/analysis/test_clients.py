"""Clients as the unit: with heavy users, independent duels mislead."""

from __future__ import annotations

import random
import tracemalloc
from math import log
from pathlib import Path

import numpy as np
import pytest

from streamduel.analysis.analyze import Request, analyze
from streamduel.analysis.counting import ALL_RULES, Counts, Rules
from streamduel.analysis.page import render
from streamduel.preference.arrays import Floats
from streamduel.preference.clients import (
    USUAL,
    ClientSums,
    confidence_of_clients,
    intervals_of_clients,
    log_evidence_of_clients,
)
from streamduel.preference.evidence import confidence
from tests.unit.analysis.exports import Row, json_lines, only, sentence

RUNS = 400


def sums(lead: Floats, duels: Floats, most: float) -> ClientSums:
    """Of two arms, from the weighted leads and duels of all clients."""
    both, sides = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.0, 1.0], [-1.0, 0.0]])
    return ClientSums(
        lead=sides * lead.sum(), duels=both * duels.sum(), lead_squares=both * (lead**2).sum(),
        products=sides * (lead * duels).sum(), duel_squares=both * (duels**2).sum(), most=most,
    )  # fmt: skip


def simulated(
    rng: np.random.Generator, clients: int, heavy: int, mean: float, spread: float
) -> tuple[float, float]:
    """The confidence that either arm wins, with clients and with duels as the unit.

    Each client prefers the first arm with a probability of its own, beta distributed.
    """
    n = rng.geometric(0.5, clients)
    n[:heavy] = rng.integers(100, 1000, heavy)
    won = rng.binomial(n, rng.beta(mean * spread, (1 - mean) * spread, clients))
    most = float(np.quantile(n, USUAL, method="higher"))
    weight = np.minimum(1.0, most / n)
    lead, duels = weight * (won - n / 2), np.asarray(weight * n, np.float64)
    pair = sums(lead, duels, most)
    first = int(pair.lead[0, 1] < 0)
    by_clients = confidence_of_clients(log_evidence_of_clients(pair), first, "condorcet")
    wins = np.array([[0.0, won.sum()], [(n - won).sum(), 0.0]])
    return by_clients, confidence(wins, int(wins[0, 1] < wins[1, 0]), "condorcet")


@pytest.mark.parametrize(("heavy", "spread"), [(0, 2.0), (5, 2.0), (5, 20.0), (20, 0.5)])
def test_equal_arms_rarely_have_a_champion_by_clients(heavy: int, spread: float) -> None:
    rng = np.random.default_rng(7)
    found = np.array([simulated(rng, 500, heavy, 0.5, spread) for _ in range(RUNS)])

    wrong_by_clients, wrong_by_duels = (found >= 0.95).mean(axis=0)

    assert wrong_by_clients <= 0.05
    if heavy:
        assert wrong_by_duels > 0.3  # why duels are not the unit


def test_clients_cost_little_if_their_duels_are_independent() -> None:
    rng = np.random.default_rng(8)
    found = np.array([simulated(rng, 1000, 0, 0.56, 1000.0) for _ in range(RUNS)])

    sure_by_clients, sure_by_duels = (found >= 0.95).mean(axis=0)

    assert sure_by_duels > 0.8
    assert sure_by_clients > sure_by_duels - 0.15


def test_intervals_of_clients_contain_the_preference() -> None:
    rng, missed = np.random.default_rng(9), 0
    for _ in range(RUNS):
        n = rng.geometric(0.3, 300)
        won = rng.binomial(n, rng.beta(1.2, 0.8, 300))  # 0.6 on average
        most = float(np.quantile(n, USUAL, method="higher"))
        weight = np.minimum(1.0, most / n)
        lead, duels = weight * (won - n / 2), np.asarray(weight * n, np.float64)
        pair = sums(lead, duels, most).at(([0], [1]))
        low, high = intervals_of_clients(pair, log(20))
        missed += not low[0] <= 0.6 <= high[0]

    assert missed / RUNS <= 0.05


def test_no_client_met_a_pair() -> None:
    low, high = intervals_of_clients(ClientSums.none(1, 1.0).at(([0], [0])), 3.7)
    assert (low.tolist(), high.tolist()) == ([0.0], [1.0])
    assert log_evidence_of_clients(ClientSums.none(2, 1.0)).max() == 0


def heavy_log(path: Path, crawler: int) -> Path:
    """800 clients prefer `ltr` in 60 % of their duels; a crawler always takes `bm25`."""
    rng, rows = random.Random(4), list[Row]()
    for client in range(800):
        for _ in range(rng.choice([1, 1, 2, 3])):
            winner = "b" if rng.random() < 0.6 else "a"
            rows.append({"a": "bm25", "b": "ltr", "winner": winner, "user_id": f"u{client}"})
    rows += [{"a": "bm25", "b": "ltr", "winner": "a", "user_id": "crawler"}] * crawler
    rng.shuffle(rows)
    return json_lines(path, rows)


def test_a_crawler_makes_no_champion(tmp_path: Path) -> None:
    found = only(heavy_log(tmp_path / "x.json", 2000))

    assert found.champion is None
    assert found.clients.confidence_of_duels > 0.99
    verdicts = {check.name: check.verdict for check in found.checks}
    assert verdicts["bots"] == verdicts["dependence on clients"] == "warning"
    (pair,) = found.pairs
    assert pair.win_rate is not None
    assert pair.interval[0] < 0.5 < pair.win_rate < pair.interval[1]


def test_the_share_of_bots_is_that_of_all_duels(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"a": "bm25", "b": "ltr", "winner": "ab"[n % 2],
         "user_id": "crawler" if n < 200 else f"u{n}" if n < 1000 else None}
        for n in range(10_000)
    ]  # fmt: skip
    found = only(json_lines(tmp_path / "x.json", rows))
    (bots,) = [check for check in found.checks if check.name == "bots"]
    assert "2.0% of the duels are of 1 client" in bots.sentence
    assert bots.verdict == "fine"


@pytest.mark.parametrize(
    ("usual", "most", "bots"), [(1, 100, 0), (1, 101, 1), (4, 200, 0), (4, 201, 1)]
)
def test_a_bot_has_more_than_100_duels_and_50_times_the_median(
    usual: int, most: int, bots: int, tmp_path: Path
) -> None:
    users = [f"u{n}" for n in range(40) for _ in range(usual)] + ["crawler"] * most
    rows = [{"a": "bm25", "b": "ltr", "winner": "a", "user_id": user} for user in users]
    (check,) = [
        each for each in only(json_lines(tmp_path / "x.json", rows)).checks if each.name == "bots"
    ]
    assert check.verdict == ("warning" if bots else "fine")


def test_a_few_duels_of_a_crawler_do_not_hide_the_champion(tmp_path: Path) -> None:
    found = only(heavy_log(tmp_path / "x.json", 60))

    assert found.champion == "ltr"
    assert found.clients.unit == "client"
    assert found.confidence <= found.clients.confidence_of_duels


@pytest.mark.parametrize(
    ("heavy", "verdict"), [(0, "fine"), (160, "fine"), (180, "warning"), (2000, "warning")]
)
def test_duels_without_a_client_are_told(tmp_path: Path, heavy: int, verdict: str) -> None:
    """One user without a name makes a champion of equal rankers."""
    rows: list[Row] = [
        {"a": "bm25", "b": "ltr", "winner": "ab"[n % 2], "user_id": f"u{n // 3}"}
        for n in range(1500)
    ]
    rows += [{"a": "bm25", "b": "ltr", "winner": "a", "user_id": None}] * heavy
    path = json_lines(tmp_path / "x.json", rows)
    found = only(path)

    assert (found.clients.duels, found.clients.unnamed) == (1500, heavy)
    (check,) = [each for each in found.checks if each.name == "dependence on clients"]
    assert check.verdict == verdict
    rest = f"{heavy:,} of {1500 + heavy:,} duels name no client and are taken as independent."
    assert (rest in check.sentence) == (heavy > 0)
    page = render(analyze(Request([str(path)])))
    assert ("the unit is the client, and each duel that names none." in page) == (heavy > 0)
    assert (f"<dd>{heavy:,}, taken as independent</dd>" in page) == (heavy > 0)


def test_m_and_the_median_are_those_of_all_clients(tmp_path: Path) -> None:
    duels = [1, 1, 2, 2, 2, 3, 3, 4, 5, 9]
    rows: list[Row] = [
        {"a": "bm25", "b": "ltr", "winner": "a", "user": f"u-{client}"}
        for client, n in enumerate(duels)
        for _ in range(n)
    ]
    found = only(json_lines(tmp_path / "x.json", rows))

    assert found.clients.most == np.quantile(duels, USUAL, method="inverted_cdf") == 5
    (bots,) = [check for check in found.checks if check.name == "bots"]
    assert bots.sentence.startswith("The median client has 2.5 duels, the busiest 9;")


def test_the_evidence_of_many_pairs_takes_little_memory() -> None:
    """For each pair, it has 220 numbers at a time."""
    leads = np.random.default_rng(3).integers(-30, 30, (300, 300)).astype(np.float64)
    many = ClientSums(
        lead=leads, duels=np.full((300, 300), 100.0), lead_squares=np.full((300, 300), 25.0),
        products=leads, duel_squares=np.full((300, 300), 100.0), most=1.0,
    )  # fmt: skip
    tracemalloc.start()
    evidence = log_evidence_of_clients(many)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < 50e6, "all pairs together take 1,000 MB"
    for i, j in [(0, 1), (17, 5), (299, 299)]:
        one = log_evidence_of_clients(many.at(([i], [j])))
        assert evidence[i, j] == one[0]
    assert (evidence > 0).sum() < (leads > 0).sum()
    assert evidence[leads <= 0].max() == 0


def test_counts_are_made_once_for_each_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not for each pair: those of 500 rankers are six megabytes."""
    made, none = [], Counts.none

    def counted(n_arms: int) -> Counts:
        made.append(n_arms)
        return none(n_arms)

    monkeypatch.setattr(Counts, "none", counted)
    rows: list[Row] = [
        {"a": f"r{i}", "b": f"r{j}", "winner": "a", "user": f"u-{i % 5}"}
        for i in range(20)
        for j in range(i)
    ]
    assert len(only(json_lines(tmp_path / "x.json", rows)).pairs) == 190
    assert len(made) < 10


def test_clients_that_repeat_themselves_are_told_from_a_few_that_decide(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"a": "bm25", "b": "ltr", "winner": "ab"[client < 14], "user": f"u{client}"}
        for client in range(20)
        for _ in range(30 if client else 60)
    ]
    why = sentence(only(json_lines(tmp_path / "x.json", rows)), "dependence on clients")
    assert why.endswith(": clients repeat themselves.")


def three_heavy_users(column: str) -> list[Row]:
    """Two rankers that are equal for all users but three."""
    users = [f"s{n % 3}" for n in range(300)] + [f"t{n}" for n in range(100)]
    return [
        {"left": "bm25", "right": "ltr", "winner": "ab"[user[0] == "t" and n % 2], column: user}
        for n, user in enumerate(users)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "column", ["shopper_id", "visitor_uuid", "anon_id", "userKey", "person_id", "ip_address"]
)
def test_names_of_clients_are_recognised(column: str, tmp_path: Path) -> None:
    found = only(json_lines(tmp_path / "x.json", three_heavy_users(column)))
    assert (found.champion, found.clients.clients) == (None, 103)


def test_a_check_names_a_column_that_may_hold_the_clients(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "x.json", three_heavy_users("who"))
    assert "If 'who' names them, say so, --map client=who" in sentence(
        only(path), "dependence on clients"
    )
    assert only(path, columns=["client=who"]).champion is None


@pytest.mark.parametrize(
    "values",
    [
        [f"row {n}" for n in range(400)],
        [f"r{n}" for n in range(400)],
        [str(n % 40) for n in range(400)],
        [f"v{n % 4}" for n in range(400)],
        [f"2026-09-{n % 28 + 1:02}" for n in range(400)],
    ],
    ids=["sentences", "row ids", "amounts", "kinds", "dates"],
)
def test_other_columns_are_no_clients(values: list[str], tmp_path: Path) -> None:
    rows = [
        {**row, "what": value} for row, value in zip(three_heavy_users("city"), values, strict=True)
    ]
    (check,) = [
        each
        for each in only(json_lines(tmp_path / "x.json", rows)).checks
        if each.name == "dependence on clients"
    ]
    assert check.verdict == "unknown"


def test_a_check_names_another_column_of_clients(tmp_path: Path) -> None:
    rows = [
        {"session_id": f"s{n}", "client": ("web", "ios")[n % 2], "left": "bm25", "right": "ltr",
         "winner": "ab"[n % 5 > 1]}
        for n in range(2000)
    ]  # fmt: skip
    path = json_lines(tmp_path / "x.json", rows)
    why = sentence(only(path), "dependence on clients")
    assert why.endswith("'session_id' may name them instead: --map client=session_id.")
    assert only(path, columns=["client=session_id"]).champion == "ltr"


def test_a_check_names_another_column_where_many_duels_have_no_client(tmp_path: Path) -> None:
    rows = [
        {"user_id": f"u{n // 2}" if n % 3 else None, "session_id": f"s{n // 4}", "left": "bm25",
         "right": "ltr", "winner": "ab"[n % 2]}
        for n in range(600)
    ]  # fmt: skip
    path = json_lines(tmp_path / "x.json", rows)
    why = sentence(only(path), "dependence on clients")
    assert "200 of 600 duels name no client" in why
    assert why.endswith("'session_id' may name them instead: --map client=session_id.")
    assert only(path, columns=["client=session_id"]).clients.unnamed == 0


@pytest.mark.parametrize("column", ["request.user", "request.user.id"])
def test_no_check_names_an_object_around_the_clients_or_a_part_of_them(
    column: str, tmp_path: Path
) -> None:
    rows = [
        {"request": {"user": {"id": row["who"]}}, **row, "who": None}
        for row in three_heavy_users("who")
    ]
    path = json_lines(tmp_path / "x.json", rows)
    why = sentence(only(path, columns=[f"client={column}"]), "dependence on clients")
    assert why.endswith("a few clients make the difference.")


def test_lists_that_do_not_count_are_no_duels_of_their_clients(tmp_path: Path) -> None:
    lists = [
        {"id": f"q{n}", "a": "bm25", "b": "ltr", "teams": ["a", "b"], "clicks": clicks,
         "client": client}
        for n, (client, clicks) in enumerate(
            [("crawler", [])] * 300 + [(f"u{n % 60}", [n % 2]) for n in range(120)]
        )
    ]  # fmt: skip
    log = json_lines(tmp_path / "x.json", lists)
    found = only(log, rules=Rules(no_click="drop"))
    assert (found.clients.clients, found.clients.duels, found.clients.busiest) == (60, 120, 2)
    (bots,) = [each for each in found.checks if each.name == "bots"]
    assert (bots.verdict, "the busiest 2;" in bots.sentence) == ("fine", True)
    assert only(log).clients.busiest == 300


def test_the_column_of_a_rule_says_what_analyze_says_with_it(tmp_path: Path) -> None:
    """Busy clients, most of whose duels are ties, decide if these are dropped."""
    rng, rows = random.Random(2), list[Row]()
    for client in range(250):
        busy = client >= 230
        for n in range(50 if busy else 5):
            teams = ["a", "b"] if n % 2 else ["b", "a"]
            won = teams.index("a" if rng.random() < (0.9 if busy else 0.53) else "b")
            clicks = [won] if not busy or n < 10 else ([0, 1] if n < 20 else [])
            rows.append(
                {"id": f"q{len(rows)}", "a": "new", "b": "old", "teams": teams,
                 "clicks": clicks, "client": f"u{client}"}
            )  # fmt: skip
    log = json_lines(tmp_path / "x.json", rows)
    for credit in ("click_count", "position_debiased"):
        runs = [only(log, credit=credit, rules=rules) for rules in ALL_RULES]
        said = [(found.champion, found.confidence) for found in runs]
        assert len(set(said)) == (3 if credit == "click_count" else 2)
        for found in runs:
            columns = found.credits[credit].rules.values()
            assert [(each.champion, each.confidence) for each in columns] == said


def test_clients_are_not_blamed_for_a_cycle(tmp_path: Path) -> None:
    cycle = [("x", "y"), ("y", "z"), ("z", "x")]
    rows = [
        {"id": f"{a}{n}", "a": a, "b": b, "winner": "a" if n % 5 else "b", "client": f"u{n // 2}"}
        for a, b in cycle
        for n in range(600)
    ]
    found = only(json_lines(tmp_path / "x.json", rows))
    assert (found.confidence, found.clients.confidence_of_duels) == (0.0, 0.0)
    (dependence,) = [each for each in found.checks if each.name == "dependence on clients"]
    assert dependence.verdict == "fine"
