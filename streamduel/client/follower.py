"""The thread that follows a feed, whatever happens to the other end of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from streamduel.client.feed import Feed, News

log = logging.getLogger(__name__)

FIRST_PAUSE: Final = 1.0
"""Seconds after a failure: what is restarted in an orderly way is back soon."""

LONGEST_PAUSE: Final = 30.0
"""Seconds: what is away for long is not hammered, and is followed again half a minute after it is
back. Until then the last assignment holds."""

JOIN_SECONDS: Final = 5.0
"""A poll returns within a second. What takes longer dies with the process: it is a daemon."""


class Follower:
    """Polls a feed in a daemon thread of its own until `close`.

    Args:
        feed: what to poll.
        take: called with each piece of news, from the thread.
    """

    def __init__(self, feed: Feed, take: Callable[[News], None]) -> None:
        self._feed = feed
        self._take = take
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="streamduel-follower", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        pause = 0.0
        while not self._closing.is_set():
            try:
                for news in self._feed.poll():
                    self._take(news)
                    if self._closing.is_set():  # a long history need not be read to its end
                        break
            except Exception as error:  # no mishap of a feed may end the following
                pause = min(LONGEST_PAUSE, 2 * pause or FIRST_PAUSE)
                log.warning(
                    "assignments cannot be read, the last ones hold; next try in %.0f s: %s",
                    pause,
                    reason(error),
                )
            else:
                if pause:
                    log.info("assignments can be read again")
                pause = 0.0
            self._closing.wait(pause or self._feed.every)
        self._feed.close()

    def close(self) -> None:
        """Stop following."""
        self._closing.set()
        self._thread.join(JOIN_SECONDS)


def reason(error: BaseException) -> str:
    """The error in a few words."""
    return str(error) or type(error).__name__
