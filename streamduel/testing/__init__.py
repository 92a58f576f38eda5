"""Tools to test a plug-in, or a program built on streamduel, without a broker and without waiting.

`Broker` is a click log, its consumer group and its output topics in memory. Failures are elements
of the log, so a test of a recovery is a few lines long, and no test sleeps:

>>> from streamduel.config import Config
>>> from streamduel.testing import CRASH, Broker, duel, run
>>> config = Config.model_validate({
...     "source": {}, "sink": {}, "snapshots": {},
...     "experiments": {"search": {"arms": ["bm25", "ltr-v1"], "seed": 1}},
... })
>>> duels = [duel("search", number, "bm25", "ltr-v1", "b") for number in range(20)]
>>> crashed, undisturbed = Broker([*duels[:13], CRASH, *duels[13:]]), Broker(duels)
>>> run(config, crashed), run(config, undisturbed)
(2, 1)
>>> crashed.assignments == undisturbed.assignments, crashed.snapshots == undisturbed.snapshots
(True, True)
"""

from streamduel.testing.broker import (
    CRASH,
    DUPLICATE,
    END_OF_POLL,
    FENCE,
    REBALANCE,
    UNREACHABLE,
    Broker,
    Crash,
    Fault,
    MemoryOutlet,
    MemorySource,
    run,
)
from streamduel.testing.records import Record, duel, encode

__all__ = [
    "CRASH",
    "DUPLICATE",
    "END_OF_POLL",
    "FENCE",
    "REBALANCE",
    "UNREACHABLE",
    "Broker",
    "Crash",
    "Fault",
    "MemoryOutlet",
    "MemorySource",
    "Record",
    "duel",
    "encode",
    "run",
]
