"""The commit: outputs, dead letters, snapshot and offsets become visible together, or not at all.

One order, here and nowhere else:

1. `begin`: open the commit.
2. `write`: assignments and dead letters, not visible yet (Kafka), or cut back at the next start
   because no snapshot knows of them (files).
3. `save`: the snapshot, which says up to which offset and, on files, up to which byte of the
   outputs it is true.
4. `finish`: the offsets, and the one step that makes all of it visible.

A crash before the last step leaves the previous commit in force, and the log is folded again
from there with the same result; a crash after it loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamduel.connector import Failpoint, Outlet, PartitionCommit, no_failpoint


def commit(
    outlet: Outlet, commits: Sequence[PartitionCommit], failpoint: Failpoint = no_failpoint
) -> None:
    """Make the work of some partitions visible.

    Args:
        outlet: the sink and the snapshot store that share the commit.
        commits: one for each partition that has changed.
        failpoint: called by name between the steps.

    Raises:
        Fenced: this process no longer owns the partitions; nothing is visible.
    """
    failpoint("before begin")
    outlet.sink.begin()
    failpoint("before write")
    outlet.sink.write(commits)
    failpoint("before save")
    outlet.snapshots.save(commits)
    failpoint("before finish")
    outlet.sink.finish(commits)
    failpoint("after finish")
