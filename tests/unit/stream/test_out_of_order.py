"""What the order of a click log has cost: counted once, over restarts."""

from __future__ import annotations

import json
import random

from streamduel.stream.tallies import OutOfOrder
from streamduel.testing import Record
from tests.unit.stream.folding import DUEL, config, text
from tests.unit.stream.restarts import run
from tests.unit.stream.test_attribution import CLICK, IMPRESSION, START, WINDOW


def click_log(records: int) -> list[Record]:
    """Impressions and clicks, many of them some windows behind, or without a partner."""
    rng, log, now = random.Random(5), list[Record](), START
    for number in range(records):
        now += rng.choice((0, 50, 400))
        ts = now - rng.choice((0, 0, 2 * WINDOW))
        if rng.random() < 0.4:
            value = text(IMPRESSION, id=f"i-{number}", ts=ts)
        else:
            partner = number + rng.randint(-9, 3)
            value = text(CLICK, id=f"c-{number}", impression=f"i-{partner}", ts=ts)
        log.append(Record(number, value, now))
    return log


def test_the_counts_are_those_of_an_undisturbed_process() -> None:
    log, settings = click_log(300), config(search={"join_window_ms": WINDOW})
    undisturbed = run(settings, log, [], set())
    cuts = list(range(1, len(log), 7))
    assert run(settings, log, cuts, set(cuts)) == undisturbed
    state = json.loads(undisturbed.entries["experiment/search"])["state"]
    found = OutOfOrder(**state["disorder"])
    assert found.clicks == sum(b'"click"' in (it.value or b"") for it in log)
    assert min(found.late, found.expired, found.impressions) > 10


def test_an_impression_behind_survives_a_restart_before_the_first_click() -> None:
    log = [
        Record(0, text(DUEL), START + 2 * WINDOW),
        Record(1, text(IMPRESSION, id="i", ts=START), START + 2 * WINDOW),
        Record(2, text(CLICK, id="c", impression="i"), START + 2 * WINDOW),
    ]
    settings = config(search={"join_window_ms": WINDOW})
    assert run(settings, log, [2], {2}) == run(settings, log, [2], set())


def test_a_log_without_clicks_has_the_state_of_earlier_releases() -> None:
    log = [Record(0, text(IMPRESSION, id="i-1"), START)]
    output = run(config(), log, [], set())
    assert "disorder" not in json.loads(output.entries["experiment/search"])["state"]
