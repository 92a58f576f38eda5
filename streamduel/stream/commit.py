"""The commit: outputs, dead letters, snapshot and offsets become visible together, or not at all.

Only this module has the order of the steps:

1. `write`: assignments, dead letters and the snapshot; none of it is visible yet.
2. `finish`: the one step that makes all of it visible, with the offsets.

A crash before `finish` leaves the previous commit valid, and the click log is folded again from
there with the same result; a crash after it loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamduel.connector import Failpoint, Outlet, PartitionCommit, no_failpoint


def commit(
    outlet: Outlet, commits: Sequence[PartitionCommit], failpoint: Failpoint = no_failpoint
) -> None:
    """Make the outputs and the state of some partitions visible.

    Args:
        outlet: where they are written.
        commits: one for each partition that has changed.
        failpoint: called between the steps.

    Raises:
        Fenced: this process no longer owns the partitions.
    """
    failpoint("before write")
    outlet.write(commits)
    failpoint("before finish")
    outlet.finish(commits)
    failpoint("after finish")
