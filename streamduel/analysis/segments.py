"""Segments: parts of the traffic, each with its own champion, and whether they disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import structs

from streamduel.analysis.counting import Part, Rules, count
from streamduel.analysis.engine import Engine, quoted
from streamduel.analysis.findings import Judged
from streamduel.analysis.report import Finding
from streamduel.errors import readable
from streamduel.preference.segments import Disagreement, disagreement
from streamduel.records import MAX_NAME, MAX_SEGMENTS

MAX_VALUES: Final = 20
"""Segments of one kind that are analyzed, the largest: each lowers the others' confidence."""

MAX_TEXTS: Final = 10_000
"""Different texts that are read, the most frequent."""

UNNAMED: Final = "segment"
"""The kind of segments that are a string."""

Segment = tuple[str, str]
"""The kind of a segment, and its name."""


def find_segments(engine: Engine) -> list[Segment]:
    """Make the view `by_segment`, and return its segments by their number."""
    rows = engine.rows(
        "SELECT segment, sum(n) AS n FROM duels WHERE segment IS NOT NULL GROUP BY segment"
        f" ORDER BY n DESC, segment LIMIT {MAX_TEXTS}"
    )
    texts = {text: read_segment(text) for text, _ in rows}
    duels, kinds = Counter[Segment](), Counter[str]()
    for text, n in rows:
        for segment in texts[text]:
            duels[segment] += int(n)
            kinds[segment[0]] += int(n)
    segments = [
        segment
        for kind, _ in kinds.most_common(MAX_SEGMENTS)
        for segment in [each for each, _ in duels.most_common() if each[0] == kind][:MAX_VALUES]
    ]
    numbers = {segment: number for number, segment in enumerate(segments)}
    path = engine.folder / "segments.jsonl"
    with path.open("wb") as file:
        for text, of_text in texts.items():
            for segment in of_text:
                if segment in numbers:
                    line = {"segment": text, "number": numbers[segment]}
                    file.write(msgspec.json.encode(line) + b"\n")
    if segments:
        engine.rows(
            "CREATE VIEW by_segment AS SELECT s.*, m.number FROM scored AS s JOIN read_json("
            f"{quoted(str(path))}, format = 'newline_delimited', columns = {{'segment': 'VARCHAR',"
            " 'number': 'INTEGER'}) AS m ON m.segment = s.segment"
        )
    return segments


def read_segment(text: str) -> list[Segment]:
    """The segments of a record, from the text of its field.

    >>> read_segment('{"device": "phone", "class": null}'), read_segment("phone")
    ([('device', 'phone')], [('segment', 'phone')])
    """
    if text.startswith("{"):
        try:
            found = msgspec.json.decode(text)
        except msgspec.DecodeError:
            found = {}
        pairs = [(kind, str(name)) for kind, name in found.items() if name is not None]
    else:
        pairs = [(UNNAMED, text)]
    fitting = [pair for pair in pairs if pair[1] and max(map(len, pair)) <= MAX_NAME]
    return fitting[:MAX_SEGMENTS]


def judge_segments(
    engine: Engine,
    arms: Mapping[str, Sequence[str]],
    credit: str,
    rules: Rules,
    segments: Sequence[Segment],
) -> dict[str, dict[str, dict[str, Judged]]]:
    """What each segment of each experiment says: by experiment, kind and name.

    Confidence and intervals are corrected for the number of segments that are looked at.
    """
    if not segments:
        return {}
    sizes = {name: len(each) for name, each in arms.items()}
    counted = count(engine, sizes, [credit], [rules], by_segment=True)
    looks = Counter(part.experiment for part in counted)
    found: dict[str, dict[str, dict[str, Judged]]] = {}
    for part in sorted(counted, key=_order):
        kind, name = segments[part.segment or 0]
        judged = Judged(counted[part][credit], rules, looks[part.experiment])
        if judged.duels > judged.counts.alone:
            found.setdefault(part.experiment, {}).setdefault(kind, {})[name] = judged
    return found


def _order(part: Part) -> tuple[str, int]:
    return part.experiment, part.segment or 0


def findings_of(
    segments: Mapping[str, Mapping[str, Judged]], arms: Sequence[str]
) -> dict[str, dict[str, Finding]]:
    """The findings of one experiment's segments: of duels of two arms, as the service counts."""
    return {
        kind: {
            name: structs.replace(judged.finding(arms), duels=judged.duels - judged.counts.alone)
            for name, judged in of_kind.items()
        }
        for kind, of_kind in segments.items()
    }


def disagreements_of(
    segments: Mapping[str, Mapping[str, Judged]], arms: Sequence[str]
) -> dict[str, Disagreement]:
    """For each kind, whether its segments disagree by more than chance.

    They do if the intervals of a pair's win rate in two segments do not overlap. All intervals of
    all segments hold together with a probability of 95 %.
    """
    return {
        kind: disagreement(
            kind, {name: judged.pairs(arms) for name, judged in of_kind.items()}, readable
        )
        for kind, of_kind in segments.items()
        if len(of_kind) > 1
    }
