"""The fold of hostile records: its time per MB, for each class of them.

python benchmarks/hostile.py [--quick]
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, islice
from typing import Any, Final

from benchmarks import records as made
from benchmarks.fold import POLL
from benchmarks.measure import Spread, in_turns, ratios
from benchmarks.records import Record, configuration, fresh_task
from benchmarks.report import Goal, Result, alone
from streamduel.service import GC_THRESHOLDS

LARGE: Final = 1_000_000
"""Bytes of a large record: Kafka's own limit, nearly."""

AT_MOST: Final = 20.0
"""Milliseconds per MB, the bound of large records; a small record has a cost of its own."""

RATIO: Final = 5.0
"""A small hostile record against a plain duel, each: it costs by its number, not by its bytes."""

METHOD: Final = """\
Records in memory, as many MB of each class as of plain duels; a new `PartitionTask` per repetition,
which makes dead letters and is not committed. Processor time per MB of records; all classes
alternate; median (min–max), the ratio to plain duels within each turn. Large records, of a MB each,
must take at most {at_most:g} ms per MB. A small one is a dead letter, or a decoded record, whatever
its bytes: each must take at most {ratio:g} times as long as a plain duel."""

Maker = Callable[[int], bytes]
"""Makes the record of a number."""


def _document(number: int, kind: str = "duel", **fields: Any) -> bytes:
    base = {"type": kind, "id": f"h-{number}", "experiment": "search"}
    return json.dumps(base | {"a": "ranker-0", "b": "ranker-1"} | fields).encode()


def _filled(fields: str, text: str, kind: str = "duel") -> Maker:
    """Large records with a field that is filled with a text."""
    body = text * (LARGE // len(text))

    def make(number: int) -> bytes:
        head = f'{{"type":"{kind}","id":"h-{number}","experiment":"search","a":"ranker-0"'
        return f'{head},"b":"ranker-1","winner":"a",{fields % body}}}'.encode()

    return make


def _same(value: bytes) -> Maker:
    return lambda _: value


def _pattern(number: int) -> bytes:
    teams = ["ab"[number >> rank & 1] for rank in range(17)]
    return _document(number, "impression", teams=teams)


def _patterns_of_1000(number: int) -> bytes:
    teams = [*("ab"[number >> rank & 1] for rank in range(17)), *["a"] * 983]
    return _document(number, "impression", teams=teams)


HALF: Final = LARGE // 2

CHANCES: Final = '"teams":["a"],"clicks":[],"chances":[%s0]'

LARGE_CLASSES: Final[dict[str, Maker]] = {
    "open brackets": _same(b"[" * LARGE),
    "matched brackets": _same(b"[" * HALF + b"]" * HALF),
    "objects in objects": _same(b'{"a":' * (LARGE // 6) + b"1" + b"}" * (LARGE // 6)),
    "brackets in a string": _filled('"x":"%s"', "[{"),
    "brackets behind quotes": _filled('"x":"%s"', '\\"['),
    "small objects in a list": _filled('"x":[%s{}]', "{},"),
    "long `teams`": _filled('"clicks":[],"teams":[%s"a"]', '"a",', "interleaving"),
    "long `clicks`": _filled('"teams":["a"],"clicks":[%s0]', "0,", "interleaving"),
    "long `chances`": _filled(CHANCES, "0.5,", "interleaving"),
    "slow `chances`": _filled(CHANCES, "1e-310,", "interleaving"),
    "signs of slow numbers": _filled('"x":["%s"]', "e-"),
    "a long string": _filled('"query":"%s"', "x"),
    "a long id": _filled('"id":"%s"', "x"),
    "a long arm": _filled('"b":"%s"', "ranker-"),
    "a long experiment": _filled('"experiment":"%s"', "search"),
    "escapes": _filled('"query":"%s"', "\\u0041"),
    "text that is not ASCII": _filled('"query":"%s"', "é"),
    "invalid UTF-8 at the end": lambda number: _filled('"x":"%s"', "x")(number)[:-2] + b'\xff"}',
    "invalid UTF-8": _same(b"\xff" * LARGE),
    "a huge number": _filled('"ts":%s', "9"),
    "a huge fraction": _filled('"x":0.%s', "9"),
    "numbers": _filled('"x":[%s0]', "1e308,"),
    "many fields": lambda _: b"{" + b",".join(b'"f%d":0' % at for at in range(90_000)) + b"}",
    "one field, many times": _filled('%s"x":0', '"winner":"a",'),
    "patterns of 1,000 teams": _patterns_of_1000,
    "blanks": _same(b" " * LARGE),
    "zeros": _same(bytes(LARGE)),
}

SMALL_CLASSES: Final[dict[str, Maker]] = {
    "unknown arms": lambda number: _document(number, b=f"rankerr-{number}", winner="a"),
    "unknown experiments": lambda number: _document(number, experiment=f"serch-{number}"),
    "unknown types": lambda number: _document(number, f"dual-{number}"),
    "a wrong winner": lambda number: _document(number, winner=f"c-{number}"),
    "ids of 256 characters": lambda number: _document(number, id=f"{number:0256}", winner="a"),
    "no JSON": lambda number: b"junk %d " % number * 10,
    "invalid UTF-8, small": lambda number: b'{"type":"duel","id":"%d","x":"\xff"}' % number,
    "200 brackets": _same(b"[" * 200),
    "`null`": _same(b"null"),
    "patterns of 17 teams": _pattern,
    "pending clicks": lambda number: _document(number, "click", impression=f"i-{number}", rank=0),
    "markers": lambda number: b'{"type":"control_marker","id":"%d"}' % number,
}


def log_of(make: Maker, size: int) -> list[Record]:
    """A click log of about so many bytes."""

    def values() -> Iterator[bytes]:
        left = size
        for number in count():
            if left <= 0:
                return
            value = make(number)
            left -= len(value)
            yield value

    return made.records(values())


def plain(size: int) -> list[Record]:
    """Plain duels of about so many bytes."""
    [first] = islice(made.duel_values(1, 6), 1)
    return made.records(made.duel_values(size // len(first), 6))


def fold_seconds(log: Sequence[Record]) -> float:
    """Fold the whole click log."""
    task = fresh_task(configuration(6, 100))
    batches = [log[start : start + POLL] for start in range(0, len(log), POLL)]
    began = time.process_time()
    for batch in batches:
        task.fold(batch)
    return time.process_time() - began


def measure(quick: bool) -> list[Result]:
    """Measure all classes in turn."""
    gc.set_threshold(*GC_THRESHOLDS)
    size = (2 if quick else 5) * LARGE
    classes = {**LARGE_CLASSES, **SMALL_CLASSES}
    logs = {"plain duels": plain(size)} | {
        name: log_of(make, size) for name, make in classes.items()
    }
    runs = {f"hostile: {name}": partial(fold_seconds, log) for name, log in logs.items()}
    fold_seconds(logs["plain duels"])  # what is computed once in a process
    found = dict(zip(logs, in_turns(runs, 3 if quick else 9).values(), strict=True))
    rows, goals = [], []
    for name, log in logs.items():
        megabytes = sum(len(record.value) for record in log) / 1e6
        spread = Spread.of([1000 * seconds / megabytes for seconds in found[name]])
        ratio = ratios(found[name], found["plain duels"])
        shorter = len(logs["plain duels"]) / len(log)
        each = Spread(*(shorter * value for value in ratio))
        bounds: list[Goal] = []
        if name in LARGE_CLASSES:
            bounds.append(Goal(f"the fold of {name}", spread.median, at_most=AT_MOST, unit="ms/MB"))
        elif name in SMALL_CLASSES:
            bounds.append(Goal(f"{name} ÷ plain, each", each.median, at_most=RATIO))
        goals += bounds
        cells = [f"{1e6 * megabytes / len(log):,.0f}", spread.text(1), ratio.text()]
        by_number = "" if name in LARGE_CLASSES else each.text()
        rows.append([name, *cells, by_number, ", ".join(goal.bound for goal in bounds)])
    method = METHOD.format(at_most=AT_MOST, ratio=RATIO)
    columns = ["records", "bytes each", "fold, ms per MB", "÷ plain", "÷ plain, each", "goal"]
    return [Result("Hostile records", method, columns, rows, goals)]


if __name__ == "__main__":
    alone(measure, __doc__)
