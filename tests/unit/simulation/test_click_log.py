"""The generated click log: reproducible, with its preferences and its faults."""

import hashlib
import json
import math
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from streamduel.errors import ConfigurationError
from streamduel.simulation.click_log import BREAKAGES, TEAMS, ClickLog, write_click_log
from streamduel.simulation.matrices import ARXIV, ARXIV_RANKERS

RECORDS = 200_000

# Changes only with the generator; then it must be changed here deliberately.
SHA256_OF_A_THOUSAND = "6e4226230cbcb22b90a0613891d874757544bcec7855f72333aa0984ce7a9928"

# With 196,800 impressions, a fifteenth per pair, 92 % decided: about 12,000 duels per pair.
# Hoeffding: all fifteen rates are within 0.024 of the truth but for one seed in ten thousand.
BAND = math.sqrt(math.log(2 * 15 / 1e-4) / (2 * 11_500))
# The 0.0005 and 0.9995 quantiles of the chi-square distribution with 15 degrees of freedom.
CHI_SQUARE = (3.108, 39.719)


class Written(NamedTuple):
    log: ClickLog
    lines: list[bytes]
    sound: list[dict[str, Any]]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    path = tmp_path_factory.mktemp("log") / "clicks.jsonl"
    log = write_click_log(path, RECORDS)
    lines = path.read_bytes().splitlines()
    first_seen = list(dict.fromkeys(lines))
    return Written(log, lines, [json.loads(line) for line in first_seen if not complaint(line)])


def complaint(line: bytes) -> str | None:
    """The reason code that the contract gives a line, by a reading of its own; None if sound."""
    try:
        record = json.loads(line)
    except ValueError:
        return "invalid_json"
    if not isinstance(record, dict):
        return "invalid_record"
    if record.get("experiment") != "search":
        return "unknown_experiment"
    if not fits(record):
        return "invalid_record"
    if not {record["a"], record["b"]} <= set(ARXIV_RANKERS):
        return "unknown_arm"
    return None


def fits(record: dict[str, Any]) -> bool:
    teams, clicks = record.get("teams"), record.get("clicks")
    return (
        record.get("type") == "interleaving"
        and isinstance(record.get("id"), str)
        and 1 <= len(record["id"]) <= 256
        and isinstance(record.get("ts"), int)
        and isinstance(record.get("a"), str)
        and isinstance(record.get("b"), str)
        and record["a"] != record["b"]
        and isinstance(teams, list)
        and all(team in {"a", "b"} for team in teams)
        and isinstance(clicks, list)
        and all(isinstance(rank, int) and 0 <= rank < len(teams) for rank in clicks)
    )


def credit(record: dict[str, Any]) -> int:
    """Clicks on a's documents less clicks on b's."""
    return sum(1 if record["teams"][rank] == "a" else -1 for rank in record["clicks"])


def wins_of(sound: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    """How often the first of two arms beat the second."""
    wins: Counter[tuple[str, str]] = Counter()
    for record in sound:
        difference = credit(record)
        if difference:
            a, b = record["a"], record["b"]
            wins[(a, b) if difference > 0 else (b, a)] += 1
    return wins


def test_the_preferences_are_preferences() -> None:
    assert len(ARXIV) == len(ARXIV_RANKERS) == 6
    for i, j in combinations(range(6), 2):
        assert ARXIV[i][j] + ARXIV[j][i] == pytest.approx(1)
    assert all(p > 0.5 for p in ARXIV[0][1:]), "the first ranker beats all others"


def test_one_seed_gives_the_same_bytes_on_every_machine(tmp_path: Path) -> None:
    path = tmp_path / "clicks.jsonl"
    write_click_log(path, 1000, 7)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == SHA256_OF_A_THOUSAND


def test_another_seed_gives_another_log(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    write_click_log(one, 1000, 1)
    write_click_log(other, 1000, 2)
    assert not set(one.read_bytes().splitlines()) & set(other.read_bytes().splitlines())


def test_a_longer_log_continues_a_shorter_one(tmp_path: Path) -> None:
    short, long = tmp_path / "short", tmp_path / "long"
    write_click_log(short, 300)
    write_click_log(long, 6000)
    unbroken = [line for line in short.read_bytes().splitlines() if not complaint(line)]
    missing = set(unbroken) - set(long.read_bytes().splitlines())
    assert len(missing) <= 6000 * 0.002, "only what the longer one breaks may differ"


def test_every_line_is_valid_or_broken_as_planned(written: Written) -> None:
    complaints = Counter(complaint(line) for line in written.lines)
    sound = complaints.pop(None)
    assert complaints == written.log.dead_letters
    assert sum(complaints.values()) == 400
    assert sound == written.log.impressions + written.log.duplicates
    assert written.log.records == len(written.lines) == RECORDS


def test_every_kind_of_breakage_occurs(written: Written) -> None:
    per_kind = 400 // len(BREAKAGES)
    expected = Counter({reason: 0 for _, reason, _ in BREAKAGES})
    for breakage in BREAKAGES:
        expected[breakage.reason] += per_kind
    assert expected == written.log.dead_letters


def test_an_id_comes_twice_only_on_a_duplicate(written: Written) -> None:
    ids = [record["id"] for record in written.sound]
    assert len(ids) == len(set(ids)) == written.log.impressions
    assert written.log.duplicates == 2000


def test_a_duplicate_comes_a_little_later(written: Written) -> None:
    seen: dict[bytes, int] = {}
    distances = []
    for number, line in enumerate(written.lines):
        if line in seen:
            distances.append(number - seen[line])
        else:
            seen[line] = number
    assert len(distances) == 2000
    assert max(distances) < 600


def test_stream_time_advances_20_times_a_second(written: Written) -> None:
    times = [record["ts"] for record in written.sound]
    assert times == sorted(set(times))
    # The gap's standard deviation is 45 ms; over 197,600 gaps four of them are 0.4 ms.
    assert (times[-1] - times[0]) / len(times) == pytest.approx(50, abs=0.8)


def test_winners_follow_the_preferences(written: Written) -> None:
    wins = wins_of(written.sound)
    chi_square = 0.0
    for i, j in combinations(range(6), 2):
        won, lost = (
            wins[ARXIV_RANKERS[i], ARXIV_RANKERS[j]],
            wins[ARXIV_RANKERS[j], ARXIV_RANKERS[i]],
        )
        p, n = ARXIV[i][j], won + lost
        assert n > 11_500, "all pairs are covered alike"
        assert won / n == pytest.approx(p, abs=BAND)
        chi_square += (won - n * p) ** 2 / (n * p * (1 - p))
    assert CHI_SQUARE[0] < chi_square < CHI_SQUARE[1]


def test_one_impression_in_twelve_is_a_tie(written: Written) -> None:
    ties = sum(credit(record) == 0 for record in written.sound)
    assert ties == written.log.ties
    assert ties / written.log.impressions == pytest.approx(0.08, abs=0.003)
    assert any(record["clicks"] for record in written.sound if credit(record) == 0)


def test_the_teams_are_drafted_with_a_fair_coin_per_round(written: Written) -> None:
    assert len(set(TEAMS)) == 32
    assert all(set(json.loads(teams)[i : i + 2]) == {"a", "b"} for teams in TEAMS for i in (0, 8))
    drafts = Counter(tuple(record["teams"]) for record in written.sound)
    assert len(drafts) == 32
    # Five standard deviations of a count around 197,600 / 32.
    assert all(abs(count - 6175) < 5 * 77.4 for count in drafts.values())


def test_upper_ranks_are_clicked_more(written: Written) -> None:
    clicks = Counter(rank for record in written.sound for rank in record["clicks"])
    rounds = [clicks[2 * r] + clicks[2 * r + 1] for r in range(5)]
    assert rounds == sorted(rounds, reverse=True)
    assert rounds[-1] > 0


def test_progress_adds_up_to_all_lines(tmp_path: Path) -> None:
    steps: list[int] = []
    write_click_log(tmp_path / "made" / "clicks.jsonl", 10_000, progress=steps.append)
    assert sum(steps) == 10_000
    assert len(steps) > 1


def test_the_smallest_log_is_one_impression(tmp_path: Path) -> None:
    log = write_click_log(tmp_path / "clicks.jsonl", 1)
    assert (log.impressions, log.duplicates, log.dead_letters) == (1, 0, {})


def test_an_unfinished_log_replaces_no_file(tmp_path: Path) -> None:
    path = tmp_path / "clicks.jsonl"
    path.write_text("as it was")

    def give_up(lines: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_click_log(path, 10, progress=give_up)
    assert path.read_text() == "as it was"


@pytest.mark.parametrize("arms", [ARXIV_RANKERS[:5], ARXIV_RANKERS[:5] + ARXIV_RANKERS[:1]])
def test_other_than_six_different_arms_are_refused(tmp_path: Path, arms: tuple[str, ...]) -> None:
    with pytest.raises(ConfigurationError, match="arms must be 6 different names"):
        write_click_log(tmp_path / "clicks.jsonl", arms=arms)


def test_an_empty_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"records must be at least 1 \(found 0\)"):
        write_click_log(tmp_path / "clicks.jsonl", 0)


@pytest.mark.parametrize("name", ["local.yaml", "kafka.yaml"])
def test_the_shipped_configurations_name_the_rankers_of_the_log(name: str) -> None:
    path = Path(__file__).parents[3] / "configs" / name
    arms = yaml.safe_load(path.read_text())["experiments"]["search"]["arms"]
    assert sorted(arms) == sorted(ARXIV_RANKERS)
    assert arms[0] != ARXIV_RANKERS[0], (
        "a champion that is listed first would be found by doing nothing"
    )
