"""What can go wrong, by name; each message is one sentence: what, found, allowed, nearest."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import lru_cache


class StreamduelError(Exception):
    """Anything that streamduel itself refuses; the command line shows it without a traceback."""


class ConfigurationError(StreamduelError):
    """A configuration that cannot be run; the command line exits with status 2."""


class PolicyError(StreamduelError, ValueError):
    """A policy was asked, told or configured something outside what it allows."""


class PreferenceError(StreamduelError, ValueError):
    """Preferences that cannot be used, or not so; the command line exits with status 2."""


class InterleavingError(StreamduelError, ValueError):
    """Rankings or lengths that cannot be interleaved, or clicks that cannot be credited."""


class ClientError(StreamduelError):
    """A ranker service asked for what cannot be, or wanted to log what streamduel would refuse."""


class BufferFullError(ClientError):
    """Nothing was logged: too many records wait to be written already."""


class SnapshotError(StreamduelError):
    """A snapshot that does not fit the configuration or the log it is asked to go on with."""


class ConnectorError(StreamduelError):
    """The outside world is not as the configuration says, and waiting will not mend it."""


class UncertainError(ConnectorError):
    """What was to be written may have been written or not; only the id tells a repetition."""


class Fenced(StreamduelError):  # noqa: N818 - the field's word for it
    """This process no longer owns what it tried to commit; nothing of the commit is visible.

    The runner forgets its unfinished work, and whoever owns the partitions now repeats it.
    """


def nearest(name: str, allowed: Iterable[str]) -> str:
    """The closest allowed name as `; did you mean 'x'?`, or an empty string.

    >>> nearest("rubc", ["rucb", "ccb"])
    "; did you mean 'rucb'?"
    >>> nearest("RUCB", ["rucb", "ccb"])
    "; did you mean 'rucb'?"
    >>> nearest("entirely different", ["rucb", "ccb"])
    ''
    """
    return _nearest(name, tuple(allowed))


@lru_cache(maxsize=128)  # a service that names a wrong arm names the same one in every record
def _nearest(name: str, allowed: tuple[str, ...]) -> str:
    by_small = {known.lower(): known for known in reversed(allowed)}
    close = difflib.get_close_matches(name.lower(), list(by_small), n=1)
    return f"; did you mean '{by_small[close[0]]}'?" if close else ""
