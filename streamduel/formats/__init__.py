"""Click logs that were not written for streamduel, translated record by record."""

from __future__ import annotations

from streamduel.formats.settings import FORMATS, Settings, SolrSettings, UbiSettings
from streamduel.formats.solr import SolrTranslator
from streamduel.formats.translator import Ignored, Translator
from streamduel.formats.ubi import UbiTranslator

__all__ = [
    "FORMATS",
    "Ignored",
    "Settings",
    "SolrSettings",
    "SolrTranslator",
    "Translator",
    "UbiSettings",
    "UbiTranslator",
    "create",
]


def create(settings: Settings) -> Translator:
    """The translator of a format.

    >>> create(UbiSettings(experiment="search"))(b'{"index": {"_index": "ubi_events"}}')
    Traceback (most recent call last):
    streamduel.formats.translator.Ignored: bulk action
    """
    if isinstance(settings, UbiSettings):
        return UbiTranslator(settings)
    return SolrTranslator(settings)
