"""The configuration: its model, loading, messages and reference."""

from streamduel.config.loading import LoadedConfig, load
from streamduel.config.model import (
    CommitSettings,
    Config,
    DedupeSettings,
    LimitSettings,
    MonitoringSettings,
)

__all__ = [
    "CommitSettings",
    "Config",
    "DedupeSettings",
    "LimitSettings",
    "LoadedConfig",
    "MonitoringSettings",
    "load",
]
