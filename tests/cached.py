"""Downloads and builds that tests make once per machine, in the user's cache directory."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock


def cached(name: str, make: Callable[[Path], Path]) -> Path:
    """The directory of that name in the cache, made now if it does not exist.

    Any number of processes may call this at once: one makes it, the others wait, and a directory
    with the final name is always complete.

    Args:
        name: contains everything that the content depends on.
        make: receives an empty directory, and returns the directory within it to keep; its time
            must be bounded, because others wait for it.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "streamduel-tests"
    made = cache / name
    if made.is_dir():
        return made
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / "lock"):
        if not made.is_dir():
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                make(Path(scratch)).rename(made)
    return made
