"""The content of an experiment's page."""

from __future__ import annotations

from typing import Any

import pytest

from streamduel.monitoring.experiments_csv import COLUMNS
from streamduel.monitoring.history import History
from streamduel.monitoring.page.experiment import EVIDENCE_MARK, MAX_SHOWN_DEAD_LETTERS
from streamduel.monitoring.page.overview import Query, matching
from streamduel.monitoring.recent_dead_letters import RecentDeadLetter
from streamduel.monitoring.views import MAX_ARMS_ON_DEMAND
from streamduel.testing import Record
from tests.unit.monitoring.fold import duels
from tests.unit.monitoring.page.watched import ARMS, NOW, Watched, control, counted, plain


class TestVerdict:
    def test_before_the_duels_are_decisive(self) -> None:
        page = Watched().fold(counted("ltr", "bm25", 60, 40))
        assert page.verdict == "ltr is the champion, but the duels are not decisive yet."
        assert page.decided
        assert page.newest is not None
        assert page.newest.confidence == 0 < page.newest.progress

    def test_without_evidence_for_any_ranker(self) -> None:
        for page in (Watched().page(), Watched().fold(counted("ltr", "bm25", 400, 400))):
            assert page.verdict == "Undecided: no duel tells yet which ranker is best."
            assert not page.decided

    def test_when_the_champion_is_sure(self) -> None:
        watched = Watched(policy={"name": "rucb"})
        page = watched.fold(counted("ltr", "bm25", 700, 300), counted("ltr", "dense", 650, 350))
        assert plain(page.verdict) == (
            "ltr is the Condorcet winner with at least 99.9 % confidence."
        )
        assert page.sure
        assert page.newest is not None
        assert page.newest.confidence == pytest.approx(watched.view.confidence)

    def test_a_policy_that_seeks_a_copeland_winner(self) -> None:
        watched = Watched(policy={"name": "ccb"})
        page = watched.fold(counted("ltr", "bm25", 700, 300), counted("ltr", "dense", 650, 350))
        assert page.verdict.startswith("ltr is the Copeland winner with at least")
        assert page.newest is not None
        assert page.newest.regret == watched.view.regret["copeland"]

    @pytest.mark.parametrize(("policy", "no_winner"), [("rucb", True), ("ccb", False)])
    def test_a_cycle_of_equals(self, policy: str, no_winner: bool) -> None:
        cycle = (("bm25", "ltr"), ("ltr", "dense"), ("dense", "bm25"))
        watched = Watched(policy={"name": policy})
        page = watched.fold(*(counted(a, b, 9000, 1000) for a, b in cycle))
        assert page.no_winner == no_winner
        champion = page.view.arms[page.view.champion]
        start = "No ranker beats all" if no_winner else f"{champion} is a Copeland winner with at"
        assert page.verdict.startswith(start)
        for words in ("o ranker beats all others", f"{champion} beats as many as any"):
            assert words in page.verdict

    def test_a_cycle_that_later_duels_deny(self) -> None:
        watched = Watched()
        for a, b in (("bm25", "ltr"), ("ltr", "dense"), ("dense", "bm25"), ("ltr", "bm25")):
            page = watched.fold(counted(a, b, 900, 100))
        assert page.verdict == (
            "Finished; only the champion is served. No ranker beat all others at the end; later "
            "duels lowered the evidence."
        )

    def test_no_ranker_beats_all_and_the_most_is_unknown(self) -> None:
        watched = Watched((*ARMS, "new", "old"), policy={"name": "rucb"})
        cycle = (("bm25", "ltr"), ("ltr", "dense"), ("dense", "bm25"))
        rest = (("bm25", "new"), ("dense", "old"))
        page = watched.fold(*(counted(a, b, 900, 100) for a, b in (*cycle, *rest)))
        champion = page.view.arms[page.view.champion]
        assert page.verdict == (
            f"No ranker beats all others; {champion} is the champion, but another one may beat "
            "more."
        )

    def test_no_ranker_beats_all_and_the_champion_has_no_evidence(self) -> None:
        watched = Watched((*ARMS, "new"), policy={"name": "rucb"}, seed=1)
        cycle = (("bm25", "ltr"), ("ltr", "dense"), ("dense", "bm25"), ("bm25", "new"))
        ahead = (counted("new", rival, 501, 500) for rival in ("ltr", "dense"))
        page = watched.fold(*(counted(a, b, 600, 400) for a, b in cycle), *ahead)
        assert not watched.view.verdict.decided
        assert page.decided
        assert page.verdict == (
            "No ranker beats all others; new is the champion, but another one may beat more."
        )

    def test_a_cycle_of_many_arms(self) -> None:
        arms = tuple(f"arm{number:03d}" for number in range(MAX_ARMS_ON_DEMAND + 2))
        cycle = [(arm, arms[place - 1]) for place, arm in enumerate(arms)]
        page = Watched(arms).fold(*(counted(a, b, 900, 100) for a, b in cycle))
        assert page.no_winner
        assert page.verdict.startswith("No ranker beats all others; ")

    def test_no_ranker_is_better_by_a_difference_that_matters(self) -> None:
        watched = Watched(smallest_difference=0.1)
        pairs = (("bm25", "ltr"), ("ltr", "dense"), ("dense", "bm25"))
        page = watched.fold(*(counted(a, b, 500, 500) for a, b in pairs))
        champion = page.view.arms[page.view.champion]
        assert (page.view.status, plain(page.verdict)) == (
            "finished",
            f"Finished; only the champion is served. No ranker beats {champion} by more than 0.1, "
            "with at least 99.9 % confidence.",
        )
        (row,) = matching(watched.metrics.figures, watched.history, Query())
        assert (row.progress, row.decided, page.decided) == (0.0, True, True)
        assert COLUMNS["decided"](row) == "true"

    def test_paused_and_finished_experiments(self) -> None:
        assert Watched().fold(control("pause")).verdict.startswith("Paused; only the champion is")
        watched = Watched(stop={"confidence": 0.95})
        page = watched.fold(counted("ltr", "bm25", 700, 300), counted("ltr", "dense", 650, 350))
        assert (page.view.status, plain(page.verdict)) == (
            "finished",
            "Finished; only the champion is served. "
            "ltr is the Condorcet winner with at least 99.9 % confidence.",
        )

    def test_the_status_is_that_of_the_pairs_in_force(self) -> None:
        watched = Watched(policy={"name": "rmed2fh", "horizon": 50}, decide_every=40)
        shown = []
        for first, count in ((0, 50), (50, 29), (79, 1)):  # decisions follow duels 40 and 80
            page = watched.fold(*duels("search", first, "ltr", "bm25", "a" * count))
            assert watched.view.assignment is not None
            ended = page.verdict.startswith("Finished")
            shown.append((watched.view.status, watched.view.assignment.status, ended))
        assert shown == [("running", "running", False)] * 2 + [("finished", "finished", True)]

    def test_a_finished_experiment_that_is_less_sure(self) -> None:
        watched = Watched(stop={"confidence": 0.5})
        page = watched.fold(counted("ltr", "bm25", 70, 40), counted("ltr", "dense", 70, 40))
        assert page.verdict == "Finished; only the champion, ltr, is served."

    def test_while_confidence_is_being_computed(self) -> None:
        arms = tuple(f"arm{number:03d}" for number in range(200))
        watched = Watched(arms)
        watched.history = History()
        page = watched.page()
        champion = page.view.arms[page.view.champion]
        assert page.verdict == f"{champion} is the champion; its confidence is being computed."
        assert (page.newest, page.regret_curve) == (None, None)


class TestArms:
    def test_duels_and_the_champions_wins_against_each_arm(self) -> None:
        page = Watched().fold(counted("ltr", "bm25", 700, 300), counted("ltr", "dense", 60, 40))
        champion, *others = page.arms
        assert (champion.name, champion.champion, champion.beats) == ("ltr", True, "2")
        assert (champion.duels, plain(champion.won), champion.against) == ("1,100", "69.1 %", "–")
        by_name = {arm.name: arm for arm in others}
        assert plain(by_name["bm25"].against) == "70.0 %"
        assert plain(by_name["dense"].against) == "60.0 %"
        assert by_name["bm25"].copeland == 0.0
        low, high = (
            float(bound.replace("%", "")) for bound in plain(by_name["bm25"].interval).split(" to ")
        )
        assert low < 70 < high

    def test_evidence_grows_towards_the_line(self) -> None:
        watched = Watched()
        page = watched.fold(counted("ltr", "bm25", 600, 400), counted("dense", "bm25", 56, 44))
        by_name = {arm.name: arm for arm in page.arms}
        assert (by_name["ltr"].evidence, by_name["ltr"].out) == ("0.0", False)
        assert by_name["bm25"].out
        assert by_name["bm25"].evidence_percent > EVIDENCE_MARK
        page = Watched().fold(counted("ltr", "bm25", 70, 40))
        bm25 = next(arm for arm in page.arms if arm.name == "bm25")
        assert not bm25.out
        assert 0 < bm25.evidence_percent < EVIDENCE_MARK

    def test_traffic_adds_up(self) -> None:
        page = Watched(slate=7).fold(*duels("search", 0, "ltr", "dense", "ab"))
        assert page.assigned is not None
        traffic = dict.fromkeys(ARMS, 0.0)
        for pair in page.assigned.pairs:
            traffic[pair.a] += 50 * pair.share
            traffic[pair.b] += 50 * pair.share
        shown = {arm.name: float(plain(arm.traffic).removesuffix(" %")) for arm in page.arms}
        assert sum(shown.values()) == pytest.approx(100)
        assert shown == pytest.approx(traffic, abs=0.1)


class TestAssignment:
    def test_the_assignment_in_force(self) -> None:
        watched = Watched()
        page = watched.fold(*duels("search", 0, "ltr", "dense", "ab"))
        assignment = watched.view.assignment
        assert assignment is not None
        assert page.assigned is not None
        assert [(pair.a, pair.b) for pair in page.assigned.pairs] == [
            (pair.a, pair.b) for pair in assignment.pairs
        ]
        assert page.view.epoch == assignment.epoch
        assert assignment.valid_until is None

    def test_the_decision_time_is_unknown_without_timestamps(self) -> None:
        watched = Watched()
        assert watched.page().assigned is not None
        assert watched.page().assigned.at == "the start"  # type: ignore[union-attr]
        timeless = [
            Record(watched.task.next_offset + offset, value, None)
            for offset, value in enumerate(duels("search", 0, "ltr", "dense", "ab" * 20))
        ]
        watched.task.fold(timeless)
        watched.commit()
        page = watched.page()
        assert page.assigned is not None
        assert page.view.epoch != 1
        assert page.assigned.at == "unknown: the records have no timestamps"
        timed = watched.fold(*duels("search", 50, "ltr", "dense", "ab" * 20)).assigned
        assert timed is not None
        assert timed.at.endswith(" UTC (stream time)")

    def test_an_assignment_with_a_fallback_expires(self) -> None:
        watched = Watched(guardrails={"fallback": {"arm": "bm25", "idle_ms": 60_000}})
        page = watched.fold(*duels("search", 0, "ltr", "dense", "ab"))
        assert page.assigned is not None
        assert not page.assigned.expired
        assert page.view.assignment is not None
        assert page.view.assignment.fallback == "bm25"
        assert page.view.assignment.valid_until is not None
        later = watched.page(now=NOW + 3600).assigned
        assert later is not None
        assert later.expired


class TestWhy:
    def test_says_what_the_policy_compares(self) -> None:
        page = Watched(policy={"name": "rucb"}).fold(counted("ltr", "bm25", 70, 30))
        assert page.assigned is not None
        pair = page.assigned.pairs[0]
        assert pair.a in page.view.why
        assert pair.b in page.view.why
        assert "strongest challenger" in page.view.why

    @pytest.mark.parametrize(
        ("settings", "reason"),
        [
            ({"policy": {"name": "top_two"}, "aim": "earn"}, "ltr leads, expected to beat"),
            ({"policy": {"name": "double_thompson"}}, "ltr has drawn the largest chance"),
        ],
    )
    def test_is_that_of_a_comparison_while_one_ranker_is_mostly_served_alone(
        self, settings: dict[str, Any], reason: str
    ) -> None:
        watched = Watched(slate=20, **settings)
        page = watched.fold(counted("ltr", "bm25", 70, 50), counted("ltr", "dense", 70, 40))
        assert page.assigned is not None
        assert [(it.a, it.b) for it in page.assigned.pairs] == [("ltr", "ltr"), ("bm25", "ltr")]
        assert reason in page.view.why
        assert "bm25" in page.view.why

    def test_says_how_many_duels_the_open_batch_wants_now(self) -> None:
        watched = Watched(policy={"name": "c2b", "horizon": 100_000, "rounds": 4})
        wanted = watched.page().view.batch
        page = watched.fold(counted("ltr", "bm25", 5, 2))
        assert wanted is not None
        assert page.view.epoch == 1
        assert page.view.why.startswith(
            f"bm25 and ltr are in the open batch, which wants {wanted[1] - 7:,} more duels; "
        )

    def test_says_why_one_ranker_is_served_alone(self) -> None:
        assert "is paused: only the champion" in Watched().fold(control("pause")).view.why
        page = Watched(stop={"confidence": 0.5}).fold(
            counted("ltr", "bm25", 70, 40), counted("ltr", "dense", 70, 40)
        )
        assert page.view.why == "Exploration has ended: only the champion, ltr, is served."
        page = Watched(policy={"name": "rucb"}).fold(
            counted("ltr", "bm25", 9000, 1000), counted("ltr", "dense", 9000, 1000)
        )
        assert page.view.why == (
            "The policy compares no pair now and serves ltr alone: 1 of 3 rankers are not ruled "
            "out."
        )

    def test_says_that_a_pair_is_frozen(self) -> None:
        page = Watched(guardrails={"freeze_pair": ["bm25", "ltr"]}).page()
        assert page.view.why.startswith("A guardrail has frozen bm25 and ltr")


class TestCurves:
    def test_need_duels(self) -> None:
        watched = Watched()
        assert watched.page().regret_curve is None
        page = watched.fold(*duels("search", 0, "ltr", "dense", "ab" * 20))
        assert page.regret_curve is not None
        assert page.confidence_curve is not None
        assert page.regret_curve.across.labels[0] == "0"
        assert len(page.points) == 2

    def test_lie_within_the_drawing(self) -> None:
        watched = Watched()
        for start in range(0, 400, 40):
            page = watched.fold(*duels("search", start, "ltr", "dense", "ab" * 20))
        assert page.regret_curve is not None
        places = [
            tuple(map(float, place.split(",")))
            for place in f"{page.regret_curve.line} {page.regret_curve.band}".split()
        ]
        assert len(places) == 3 * 11
        assert all(0 <= x <= 1000 and 0 <= y <= 400 for x, y in places)


class TestLetters:
    def letter(self, number: int, of: str | None, partition: int = 0) -> RecentDeadLetter:
        return RecentDeadLetter(
            "invalid_json", f"nr {number}", "clicks", partition, number, None, NOW, of
        )

    def test_only_those_that_name_the_experiment_the_latest_first(self) -> None:
        watched = Watched()
        watched.dead_letters = [
            self.letter(1, "search"), self.letter(2, "other"), self.letter(3, None),
            self.letter(4, "search", partition=1), self.letter(5, "search"),
        ]  # fmt: skip
        assert [letter.offset for letter in watched.page().dead_letters] == [5, 1]

    def test_are_bounded(self) -> None:
        watched = Watched()
        watched.dead_letters = [self.letter(number, "search") for number in range(50)]
        assert len(watched.page().dead_letters) == MAX_SHOWN_DEAD_LETTERS
