"""What tests fetch or build once per machine, and keep in the user's cache directory."""

import fcntl
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def made_once(name: str, make: Callable[[Path], Path]) -> Path:
    """Return the directory of that name in the cache, made now if it is not there.

    Any number of processes may ask at once: one makes it, the others wait, and a directory with
    the final name is always complete.

    Args:
        name: says all that the content depends on, so that another content has another name.
        make: is given an empty directory, and returns the directory within it that is to be kept;
            its time must be bounded, since others wait for it.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "streamduel-tests"
    made = cache / name
    if made.is_dir():
        return made
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.is_dir():
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                make(Path(scratch)).rename(made)
    return made
