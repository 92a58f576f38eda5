"""The configuration: model, loading, error sentences, and the generated reference."""

from streamduel.config.loading import LoadedConfig, load
from streamduel.config.model import (
    Config,
    LimitSettings,
    MonitoringSettings,
)

__all__ = [
    "Config",
    "LimitSettings",
    "LoadedConfig",
    "MonitoringSettings",
    "load",
]
