"""Clicks that are lost because the click log is not in the order of time."""

from __future__ import annotations

from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0)]


class Disorder(msgspec.Struct):
    """Counts of an experiment, which decide nothing.

    A record is behind if its own time is before stream time by more than the join window: in the
    order of time, it would have come earlier.

    Attributes:
        clicks: all of them.
        late: clicks behind that did not find their impression open.
        expired: pending clicks whose impression did not arrive in time.
        impressions: impressions behind; an expired click may have waited for one of them.
    """

    clicks: Count = 0
    late: Count = 0
    expired: Count = 0
    impressions: Count = 0

    @property
    def lost(self) -> int:
        """How many clicks the order has lost, approximately.

        >>> Disorder(clicks=9, late=2, expired=3).lost, Disorder(9, 2, 3, impressions=1).lost
        (2, 5)
        """
        return self.late + (self.expired if self.impressions else 0)
