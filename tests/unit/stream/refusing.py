"""The dead letter of an invalid record."""

from __future__ import annotations

from typing import Any

from tests.unit.stream.folding import DUEL, Partition, config, letters, text


def told(it: object) -> str:
    """The name of a case: the sentence, not the record."""
    return it if isinstance(it, str) else ""


def dead_letter(value: bytes | None, key: bytes | None = None, **parts: Any) -> dict[str, Any]:
    """The dead letter of a value, folded between two valid records."""
    before, after = text(DUEL, id="before"), text(DUEL, id="after", winner="b")
    disturbed, undisturbed = Partition(config(**parts)), Partition(config(**parts))
    commit = disturbed.fold(before, value, after, key=key)
    others = [undisturbed.fold(before)]
    undisturbed.task.next_offset = 2
    others.append(undisturbed.fold(after))
    (letter,) = letters(commit)
    assert letter["offset"] == 1
    assert disturbed.tallies()["accepted"] == 2
    assert disturbed.knows() == undisturbed.knows()
    assert commit.assignments == [message for other in others for message in other.assignments]
    return letter


def verdict(value: bytes | None, **parts: Any) -> tuple[str, str]:
    letter = dead_letter(value, **parts)
    return letter["reason"], letter["error"]
