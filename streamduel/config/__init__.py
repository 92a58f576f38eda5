"""The configuration: model, loading, error sentences, and the generated reference."""

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
