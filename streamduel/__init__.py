"""streamduel finds the best of K rankers from the clicks of the people who use them.

Public are the names below, and what the pages in `docs/api` list. Packages are imported when they
are first used, because ranker services install the client without the dependencies of the service.

>>> import streamduel
>>> streamduel.policies.create("rucb", n_arms=6, seed=7).propose(1).tolist()
[[5, 0]]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from streamduel.errors import (
    ClientError,
    ConfigurationError,
    ConnectorError,
    InterleavingError,
    PolicyError,
    PreferenceError,
    SnapshotError,
    StreamduelError,
)

if TYPE_CHECKING:
    from streamduel import client, interleaving, policies, simulation, testing
    from streamduel.config import LoadedConfig, load
    from streamduel.service import StopSignal, serve

__version__ = "0.2.0.dev0"

__all__ = [
    "ClientError",
    "ConfigurationError",
    "ConnectorError",
    "InterleavingError",
    "LoadedConfig",
    "PolicyError",
    "PreferenceError",
    "SnapshotError",
    "StopSignal",
    "StreamduelError",
    "__version__",
    "client",
    "interleaving",
    "load",
    "policies",
    "serve",
    "simulation",
    "testing",
]

_PACKAGES: Final = frozenset({"client", "interleaving", "policies", "simulation", "testing"})
_MODULES: Final = {
    "LoadedConfig": "streamduel.config",
    "StopSignal": "streamduel.service",
    "load": "streamduel.config",
    "serve": "streamduel.service",
}


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"streamduel.{name}")
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'streamduel' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
