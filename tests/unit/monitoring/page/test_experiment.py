"""The content of an experiment's page."""

from __future__ import annotations

import json

import numpy as np
import pytest

from streamduel.monitoring.history import History
from streamduel.monitoring.page.experiment import EVIDENCE_MARK, MAX_SHOWN_DEAD_LETTERS
from streamduel.monitoring.page.heat_map import MAX_SHOWN_ARMS, heat_map, ranking
from streamduel.monitoring.recent_dead_letters import RecentDeadLetter
from streamduel.monitoring.views import DELTA
from streamduel.preference.evidence import intervals
from streamduel.testing import Record, encode
from tests.unit.monitoring.fold import STREAM_TIME, duels, fold
from tests.unit.monitoring.page.watched import ARMS, NOW, Watched, control, counted, plain


class TestMatrix:
    def test_a_cell_describes_the_duels_in_words(self) -> None:
        watched = Watched()
        matrix = watched.fold(counted("ltr", "bm25", 700, 300)).matrix
        assert matrix.arms == ("ltr", "dense", "bm25")
        cell = matrix.rows[0].cells[2]
        lower, upper = intervals(watched.view.wins, DELTA)
        assert (cell.text, cell.shade, cell.decided) == ("70", "win4", True)
        assert plain(cell.words) == (
            f"ltr against bm25: won 700 of 1,000 duels, 70.0 %. 95 % at any time: "
            f"{100 * lower[1, 0]:.1f} % to {100 * upper[1, 0]:.1f} %. "
            f"Confidence that it is better: 99.9 %."
        )
        other = matrix.rows[2].cells[0]
        assert (other.text, other.shade, other.decided) == ("30", "lose4", True)
        assert "won 300 of 1,000 duels" in other.words
        assert "Confidence that it is worse: 99.9" in other.words

    @pytest.mark.parametrize(
        ("won", "shade"),
        [(500, "even"), (509, "even"), (511, "win1"), (489, "lose1"), (535, "win2"),
         (580, "win3"), (420, "lose3"), (660, "win4"), (0, "lose4"), (1000, "win4")],
    )  # fmt: skip
    def test_the_colour_shows_the_distance_from_even(self, won: int, shade: str) -> None:
        watched = Watched()
        watched.fold(counted("ltr", "bm25", won, 1000 - won))
        cell = heat_map(watched.view, [1, 0, 2]).rows[0].cells[1]
        assert cell.shade == shade

    def test_pairs_without_duels_and_undecided_pairs(self) -> None:
        rows = Watched().fold(counted("ltr", "bm25", 1, 1)).matrix.rows
        cells = {
            (row.arm, other.arm): cell
            for row in rows
            for other, cell in zip(rows, row.cells, strict=True)
        }
        assert cells["dense", "ltr"].words == "dense against ltr: no duel yet."
        assert cells["dense", "ltr"].text == "·"
        assert cells["ltr", "bm25"].words.endswith("It is undecided which is better.")
        assert not cells["ltr", "bm25"].decided
        assert cells["ltr", "ltr"].shade == "same"

    @pytest.mark.parametrize("lost", range(380, 470, 5))
    def test_a_champion_is_sure_exactly_when_its_row_is_bold(self, lost: int) -> None:
        watched = Watched()
        page = watched.fold(
            counted("ltr", "bm25", 1000 - lost, lost), counted("ltr", "dense", 700, 300)
        )
        row = page.matrix.rows[0]
        assert row.arm == "ltr"
        assert all(cell.decided for cell in row.cells[1:]) == page.sure

    def test_half_wins_are_shown(self) -> None:
        rows = Watched().fold(counted("ltr", "bm25", 3, 1, ties=1)).matrix.rows
        assert "won 3.5 of 5 duels" in rows[0].cells[2].words

    def test_of_many_arms_the_best_are_shown_with_intervals_valid_for_all(self) -> None:
        arms = tuple(f"arm{number:03d}" for number in range(300))
        watched = Watched(arms)
        page = watched.fold(
            counted("arm250", "arm007", 900, 100), counted("arm123", "arm008", 90, 10)
        )
        assert len(page.matrix.arms) == len(page.arms) == MAX_SHOWN_ARMS
        assert page.matrix.left_out == 300 - MAX_SHOWN_ARMS
        assert {"arm250", "arm123"} <= set(page.matrix.arms)
        shown = ranking(watched.view)[:MAX_SHOWN_ARMS]
        part = watched.view.verdict.bounds(shown)
        whole = [each[np.ix_(shown, shown)] for each in intervals(watched.view.wins, DELTA)]
        np.testing.assert_allclose(part, whole)

    def test_the_champion_leads_the_ranking(self) -> None:
        watched = Watched()
        watched.fold(*duels("search", 0, "ltr", "dense", "aaaa"), control("pause"))
        assert ranking(watched.view)[0] == watched.view.champion


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

    def test_paused_and_finished_experiments(self) -> None:
        assert Watched().fold(control("pause")).verdict.startswith("Paused; only the champion is")
        watched = Watched(stop={"confidence": 0.95})
        page = watched.fold(counted("ltr", "bm25", 700, 300), counted("ltr", "dense", 650, 350))
        assert (page.view.status, plain(page.verdict)) == (
            "finished",
            "Finished; only the champion is served. "
            "ltr is the Condorcet winner with at least 99.9 % confidence.",
        )

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

    def test_a_batch_shows_its_progress(self) -> None:
        watched = Watched(policy={"name": "c2b", "horizon": 100_000, "rounds": 4})
        page = watched.page()
        assert page.assigned is not None
        assert page.view.batch is not None
        assert page.assigned.batch_percent == 0.0
        wanted = page.assigned.pairs[0]
        half = (wanted.remaining or 0) // 2
        then = watched.fold(counted(wanted.a, wanted.b, half, 0)).assigned
        assert then is not None
        assert then.batch_percent is not None
        assert 0 < then.batch_percent <= 50


class TestWhy:
    def test_says_what_the_policy_compares(self) -> None:
        page = Watched(policy={"name": "rucb"}).fold(counted("ltr", "bm25", 70, 30))
        assert page.assigned is not None
        pair = page.assigned.pairs[0]
        assert pair.a in page.view.why
        assert pair.b in page.view.why
        assert "strongest challenger" in page.view.why

    def test_says_the_quota_of_a_batch(self) -> None:
        page = Watched(policy={"name": "c2b", "horizon": 100_000, "rounds": 4}).page()
        assert page.assigned is not None
        pairs = page.assigned.pairs
        wanted = sum(pair.remaining or 0 for pair in pairs)
        assert f"with {wanted:,} duels to come, {pairs[0].remaining:,} of them" in page.view.why

    def test_says_why_one_ranker_is_served_alone(self) -> None:
        assert "is paused: only the champion" in Watched().fold(control("pause")).view.why
        page = Watched(stop={"confidence": 0.5}).fold(
            counted("ltr", "bm25", 70, 40), counted("ltr", "dense", 70, 40)
        )
        assert page.view.why == "Exploration has ended: only the champion, ltr, is served."
        page = Watched(policy={"name": "rucb"}).fold(
            counted("ltr", "bm25", 9000, 1000), counted("ltr", "dense", 9000, 1000)
        )
        assert page.view.why.startswith("No other ranker is worth a comparison now: 1 of 3 are")

    def test_says_that_a_pair_is_frozen(self) -> None:
        page = Watched(guardrails={"freeze_pair": ["bm25", "ltr"]}).page()
        assert page.view.why.startswith("A guardrail has frozen bm25 and ltr")


class TestChecks:
    def test_a_healthy_experiment_has_no_problems(self) -> None:
        outcomes = {check.result for check in Watched().page().checks}
        assert outcomes == {"ok", "unknown"}

    def test_unfair_interleaving_is_a_problem(self) -> None:
        watched = Watched()
        for number in range(100):
            fold(watched.task, impression(number, ["a", "b", "a"]))
        watched.commit()
        check = watched.check("interleave fairly")
        assert check.result == "problem"
        assert "Do not trust the champion" in check.sentence
        assert plain(check.sentence).startswith("Side a has more top ranks than fair coins")

    def test_the_favoured_ranker_is_named(self) -> None:
        watched = Watched()
        for number in range(400):
            a, b = [("bm25", "ltr"), ("dense", "bm25"), ("ltr", "dense"), ("dense", "ltr")][
                number % 4
            ]
            top = "b" if b == "ltr" or (a != "ltr" and number % 8 < 4) else "a"
            fold(watched.task, impression(number, [top, "a" if top == "b" else "b"], a=a, b=b))
        watched.commit()
        assert watched.check("interleave fairly").sentence.startswith("The ranker ltr has more top")

    def test_unassigned_impressions_are_a_problem(self) -> None:
        watched = Watched(guardrails={"freeze_pair": ["bm25", "ltr"]})
        for number in range(100):
            sides = ["a", "b"] if number % 2 else ["b", "a"]
            fold(watched.task, impression(number, sides, b="dense"))
        watched.commit()
        assert watched.check("follow assignments").result == "problem"
        assert "100 of 100 impressions (100.0" in watched.check("follow assignments").sentence

    def test_dead_letters_are_a_problem(self) -> None:
        watched = Watched()
        watched.fold(
            *duels("search", 0, "ltr", "nobody", "aa"), *duels("search", 5, "ltr", "bm25", "a")
        )
        assert watched.check("valid").result == "problem"
        assert watched.check("valid").sentence.startswith("2 of 3 became dead letters")

    def test_unjoined_clicks_are_a_problem(self) -> None:
        watched = Watched()
        click = {"type": "click", "experiment": "search", "impression": "?", "rank": 0}
        watched.fold(*(encode({**click, "id": f"c{number}"}) for number in range(3)))
        assert watched.view.open["clicks"] == 3
        assert watched.check("joined").result == "ok"
        much_later = STREAM_TIME + 10**9
        watched.task.fold([Record(watched.task.next_offset, impression(1, ["a", "b"]), much_later)])
        watched.commit()
        check = watched.check("joined")
        assert check.result == "problem"
        assert check.sentence.startswith("0 clicks are late, 3 are unjoined")

    def test_a_stopped_partition_is_a_problem(self) -> None:
        watched = Watched()
        watched.metrics.lagging({0: 0})
        assert watched.check("folded").result == "ok"
        watched.metrics.lagging({0: 1200})
        watched.clock.now += 61
        check = watched.check("folded")
        assert check.result == "problem"
        assert "Partition 0 has a lag of 1,200 records" in check.sentence

    def test_an_open_transaction_is_named(self) -> None:
        watched = Watched()
        watched.metrics.lagging({0: 1200})
        watched.metrics.stable_offset_lagging({0: 1200})
        assert watched.check("folded").result == "ok", "it may end in time"
        watched.clock.now += 61
        check = watched.check("folded")
        assert check.result == "problem"
        assert "behind an open transaction of a producer, and nothing was read" in check.sentence
        watched.metrics.stable_offset_lagging({0: 1199})
        assert "the partition has stopped" in watched.check("folded").sentence

    def test_capped_records_are_a_problem(self) -> None:
        watched = Watched(max_per_client=19)
        records = [
            encode({**json.loads(each), "client": "crawler"})
            for each in duels("search", 0, "bm25", "ltr", "a" * 21)
        ]
        watched.fold(*records[:20])
        assert watched.check("clients").result == "ok"
        watched.fold(records[20])
        check = watched.check("clients")
        assert check.result == "problem"
        assert check.sentence.startswith("2 of 21 records were beyond the limit")

    def test_time_outliers_are_a_problem(self) -> None:
        watched = Watched()
        watched.fold(*duels("search", 0, "bm25", "ltr", "ab" * 20))
        assert watched.check("Clocks").result == "ok"
        assert watched.check("Clocks").sentence.startswith("0 records of partition 0 had")
        (wrong,) = duels("search", 100, "bm25", "ltr", "a")
        next_offset = watched.task.next_offset
        watched.task.fold([Record(next_offset, wrong, STREAM_TIME + 10**9)])
        watched.fold(*duels("search", 200, "bm25", "ltr", "ab" * 20))
        assert watched.check("Clocks").result == "problem"
        assert watched.check("Clocks").sentence.startswith("1 records of partition 0 had")

    def test_missing_records_are_a_problem_with_a_fallback(self) -> None:
        watched = Watched(guardrails={"fallback": {"arm": "bm25", "idle_ms": 60_000}})
        assert watched.check("arrive").result == "unknown", "none so far"
        watched.fold(*duels("search", 0, "bm25", "ltr", "a"))
        assert watched.check("arrive").result == "ok"
        watched.clock.now += 61
        assert watched.check("arrive").result == "problem"

    def test_a_cycle_is_a_problem_for_a_condorcet_policy(self) -> None:
        cycle = [counted(a, b, 900, 100) for a, b in
                 (("bm25", "ltr"), ("ltr", "dense"), ("dense", "bm25"))]  # fmt: skip
        watched = Watched()
        assert watched.check("Condorcet").result == "ok"
        watched.fold(*cycle)
        assert watched.check("Condorcet").result == "problem"
        other = Watched(policy={"name": "ccb"})
        other.fold(*cycle)
        assert not [check for check in other.page().checks if "Condorcet" in check.title]


def impression(number: int, teams: list[str], a: str = "bm25", b: str = "ltr") -> bytes:
    return json.dumps(
        {"type": "interleaving", "experiment": "search", "id": f"i{number}", "a": a, "b": b,
         "teams": teams, "clicks": []}
    ).encode()  # fmt: skip


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
