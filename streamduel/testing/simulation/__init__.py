"""A deterministic simulation: the service on a model of Kafka, with a nemesis, from one seed.

A schedule runs the real `Runner` in several simulated processes, on a model of a Kafka cluster with
transactions, fencing, rebalances, retention, compaction and read_committed. Between any two calls
of a connector another process may act, and the nemesis may kill, pause, replace or cut off a
process, lose or delay a request, or hold back what a transaction made. In the end, everything that
readers see must be that of an undisturbed run, byte for byte. A seed determines all of it.

>>> from streamduel.testing.simulation import simulate
>>> simulate(seed=7) == simulate(seed=7)
True

`python -m streamduel.testing.simulation --seeds 0:10000` runs many schedules; a failure names its
seed. Needs greenlet: `pip install 'streamduel[testing]'`.
"""

from streamduel.testing.simulation.schedule import Failure, Outcome, Schedule


def simulate(seed: int) -> Outcome:
    """Run one schedule.

    Args:
        seed: determines the configuration, the click log, every choice and every fault.

    Raises:
        Failure: readers see something else than after an undisturbed run, or the service does not
            get to the end after the last fault.
    """
    return Schedule(seed).run()


__all__ = ["Failure", "Outcome", "Schedule", "simulate"]
