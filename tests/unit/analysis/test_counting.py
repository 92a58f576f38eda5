"""Sums over duels, equal to those of a loop over each of them."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pytest

from streamduel.analysis.counting import ALL_RULES, Counts, Part, Rules, count, make_views
from streamduel.analysis.engine import Engine
from streamduel.preference.clients import USUAL, ClientSums

ARMS = {"shop": 3, "news": 2}
CREDITS = {
    "first": (1, 2, 0, 1, 0), "last": (1, 2, 2, 0, 1), "again": (1, 2, 0, 1, 0),
    "least": (1, 0, 1, 2, 2),
}  # fmt: skip
"""Twice the outcome for side a of each pattern; the first pattern is that of no click."""


class Duel(NamedTuple):
    experiment: str
    i: int
    j: int
    n: int
    client: str | None
    segment: int
    pattern: int
    flipped: bool

    def outcome(self, credit: str) -> int:
        """Twice the outcome for i."""
        found = CREDITS[credit][self.pattern]
        return 2 - found if self.flipped else found

    def counts(self, credit: str, rules: Rules) -> bool:
        if rules.ties == "drop":
            return self.outcome(credit) != 1
        return rules.no_click == "tie" or self.pattern != 0


def some_duels() -> Iterator[Duel]:
    rng = random.Random(7)
    for experiment, n_arms in ARMS.items():
        for _ in range(300):
            i, j = sorted(rng.choices(range(n_arms), k=2))
            clients = [None, *(f"u{number}" for number in range(9))]
            client = rng.choices(clients, weights=[2, 9, 5, *[1] * 7])[0]
            yield Duel(
                experiment, i, j, rng.choice([1, 1, 3]), client, rng.randrange(2),
                rng.randrange(5), rng.random() < 0.5,
            )  # fmt: skip


@pytest.fixture(scope="module")
def duels() -> list[Duel]:
    return list(some_duels())


@pytest.fixture(scope="module")
def engine(duels: Sequence[Duel]) -> Iterator[Engine]:
    with Engine() as found:
        columns = ", ".join(f"{each} INT" for each in CREDITS)
        found.rows(f"CREATE TABLE credited (id INT, is_unclicked INT, {columns})")
        for pattern, outcomes in enumerate(zip(*CREDITS.values(), strict=True)):
            row = [pattern, int(pattern == 0), *outcomes]
            found.rows("INSERT INTO credited VALUES (?, ?, ?, ?, ?, ?)", row)
        found.rows(
            "CREATE TABLE duels (experiment VARCHAR, i INT, j INT, n INT, client VARCHAR,"
            " segment INT, pattern INT, flipped BOOLEAN, ts BIGINT, is_interleaved BOOLEAN)"
        )
        for duel in duels:
            found.rows("INSERT INTO duels VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, true)", [*duel])
        make_views(found, list(CREDITS))
        yield found


def counted(duels: Sequence[Duel], credit: str, n_arms: int) -> Counts:
    won, even, unclicked = np.zeros((3, n_arms, n_arms))
    alone = 0
    for duel in duels:
        pair = duel.i, duel.j
        if duel.i == duel.j:
            alone += duel.n
        elif duel.outcome(credit) == 1:
            cells = even if duel.pattern else unclicked
            cells[pair] += duel.n
            cells[pair[::-1]] += duel.n
        else:
            won[pair if duel.outcome(credit) == 2 else pair[::-1]] += duel.n
    return Counts(won, even, unclicked, alone)


def most_duels(duels: Sequence[Duel]) -> float:
    """m: what most clients do not exceed in a pair."""
    numbers = Counter[tuple[object, ...]]()
    for duel in duels:
        if duel.client is not None and duel.i != duel.j:
            numbers[duel.segment, duel.i, duel.j, duel.client] += duel.n
    return float(np.quantile([*numbers.values()], USUAL, method="inverted_cdf"))


def summed(
    duels: Sequence[Duel], credit: str, rules: Rules, n_arms: int, most: float
) -> ClientSums:
    """Sums over clients; a duel without a client is that of a client of its own."""
    of_clients: dict[tuple[int, int, object], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for place, duel in enumerate(duels):
        for each in range(duel.n if duel.client is None else 1):
            client = (place, each) if duel.client is None else duel.client
            times = 1 if duel.client is None else duel.n
            for i, j, sign in ((duel.i, duel.j, 1), (duel.j, duel.i, -1)):
                if i != j and duel.counts(credit, rules):
                    found = of_clients[i, j, client]
                    found[0] += sign * times * (duel.outcome(credit) - 1) / 2
                    found[1] += times
    sums = ClientSums.none(n_arms, most)
    for (i, j, _), (lead, n) in of_clients.items():
        y, d = lead * min(1.0, most / n), n * min(1.0, most / n)
        for cells, number in zip(sums[:5], (y, d, y * y, y * d, d * d), strict=True):
            cells[i, j] += number
    return sums


@pytest.mark.parametrize("in_parts", [False, True])
def test_sums_are_those_of_each_duel(engine: Engine, duels: Sequence[Duel], in_parts: bool) -> None:
    parts = "(SELECT *, segment AS number FROM scored)" if in_parts else None
    found = count(engine, ARMS, list(CREDITS), ALL_RULES, view=parts)
    assert found.keys() == {
        Part(name, number) for name in ARMS for number in ((0, 1) if in_parts else (None,))
    }
    for part, by_credit in found.items():
        of_experiment = [
            each if in_parts else each._replace(segment=0)
            for each in duels
            if each.experiment == part.experiment
        ]
        of_part = [each for each in of_experiment if each.segment == (part.segment or 0)]
        n_arms, most = ARMS[part.experiment], most_duels(of_experiment)
        assert list(by_credit) == list(CREDITS)
        assert by_credit["again"] is by_credit["first"], "equal functions are counted once"
        for credit, one in by_credit.items():
            expected = counted(of_part, credit, n_arms)
            assert one.won.tolist() == expected.won.tolist()
            assert one.even.tolist() == expected.even.tolist()
            assert one.unclicked.tolist() == expected.unclicked.tolist()
            assert one.alone == expected.alone
            assert set(one.clients) == {rules.title for rules in ALL_RULES}
            for rules in ALL_RULES:
                sums = one.clients[rules.title]
                assert sums.most == most > 1
                for cells, wanted in zip(
                    sums[:5], summed(of_part, credit, rules, n_arms, most)[:5], strict=True
                ):
                    np.testing.assert_allclose(cells, wanted, rtol=1e-12)


def test_ties_count_as_the_rules_say() -> None:
    counts = Counts.none(2).added(0, 1, [7, 4, 2, 1])
    assert [counts.wins(rules).tolist() for rules in ALL_RULES] == [
        [[0, 8.5], [5.5, 0]],
        [[0, 8], [5, 0]],
        [[0, 7], [4, 0]],
    ]
    assert [rules.title for rules in ALL_RULES] == ["ties: half", "no_click: drop", "ties: drop"]
