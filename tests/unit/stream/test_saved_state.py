"""The check of a saved state knows all of its parts."""

from __future__ import annotations

from streamduel.stream.saved_state import _State
from tests.unit.stream.folding import CONTROL, DUEL, INTERLEAVING, Partition, config, text
from tests.unit.stream.test_attribution import CLICK, IMPRESSION, START, WINDOW
from tests.unit.stream.test_examples import DOCS, LEADING

SEGMENTS = {"device": ["phone"]}


def test_every_part_of_the_state_is_checked() -> None:
    """Here an experiment has all parts, also those that most leave out."""
    partition = Partition(config(search={"join_window_ms": WINDOW, "segments": SEGMENTS}))
    shown = {"client": "u-1", "segment": {"device": "phone"}}
    partition.fold_at(
        START,
        text(IMPRESSION, id="i-1", **shown),
        text(CLICK, id="c-1", impression="i-1", client="u-1"),
        text(CONTROL, id="k-1", action="reset"),
        text(CONTROL, id="k-2", action="apply", settings={"decide_every": 2}),
        *LEADING,
        text(INTERLEAVING, id="l-1", query="red shoes", docs=DOCS, client="u-1"),
    )
    partition.fold_at(START + 2 * WINDOW, text(DUEL, id="d-1"))
    state = partition.task.experiments["search"].state()
    assert set(state) == set(_State.__struct_fields__)
