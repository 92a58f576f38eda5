"""Click logs of other programs, translated to streamduel's own records.

A new format is a file here with its settings, which translate records, and a line in `FORMATS`.

>>> UbiSettings(experiment="search").translate(b'{"index": {"_index": "ubi_events"}}')
Traceback (most recent call last):
streamduel.formats.base.Ignored: bulk action
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from streamduel.formats.base import FormatSettings, Ignored, Translator
from streamduel.formats.solr import SolrSettings
from streamduel.formats.ubi import UbiSettings

__all__ = [
    "FORMATS",
    "FormatSettings",
    "Ignored",
    "SolrSettings",
    "Translator",
    "UbiSettings",
]

FORMATS: Final[Mapping[str, type[FormatSettings]]] = MappingProxyType(
    {"ubi": UbiSettings, "solr": SolrSettings}
)
"""The settings of each format by its name."""
