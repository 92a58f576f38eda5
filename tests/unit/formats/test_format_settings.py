"""The settings of each format, and the sentences about mistakes in them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from streamduel.config.messages import mistakes as found_by
from streamduel.formats import FORMATS


def mistakes(name: str, section: dict[str, Any]) -> list[str]:
    model = FORMATS[name]
    with pytest.raises(ValidationError) as caught:
        model.model_validate({"name": name, **section})
    return [it.sentence for it in found_by(caught.value, model, ("source", "format"))]


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_has_its_translator_and_needs_nothing_but_its_name(name: str) -> None:
    assert FORMATS[name].model_validate({"name": name}) == FORMATS[name]()
    assert "translate" in vars(FORMATS[name])


@pytest.mark.parametrize("name", FORMATS)
def test_every_key_has_a_description(name: str) -> None:
    model, fields = FORMATS[name], FORMATS[name].model_fields["fields"].annotation
    assert fields is not None
    described = model.model_fields | fields.model_fields
    silent = [key for key, field in described.items() if not field.description]
    assert silent == ["name", "fields"]


@pytest.mark.parametrize(
    ("name", "section", "sentence"),
    [
        ("ubi", {"sides": "event"}, "source.format.sides must be 'query' or 'events' (found"
         " 'event'); did you mean 'events'?"),
        ("ubi", {"pair": ["bm25"]}, "source.format.pair must be a list of 2 entries, or null"
         " (found a list of 1)."),
        ("ubi", {"pair": ["x", "x"]}, "source.format.pair must be two arms (found 'x' twice)."),
        ("ubi", {"first_ordinal": 2}, "source.format.first_ordinal must be an integer from 0 to 1"
         " (found 2)."),
        ("ubi", {"click": {}}, "unknown key 'source.format.click'; did you mean 'clicks'? Allowed"
         " there: applications, arms, clicks, clicks_by, experiment, fields, first_ordinal, name,"
         " pair, shown, sides."),
        ("ubi", {"fields": {"doc": "a..b"}}, "source.format.fields.doc[0] must be a string of at"
         " most 256 characters that matches ^[^.]+(\\.[^.]+)*$ (found 'a..b')."),
        ("ubi", {"clicks": {"click": ""}}, "source.format.clicks.click must be a string of 1 to 64"
         " characters (found '')."),
        ("solr", {"rerank_docs": 0}, "source.format.rerank_docs must be an integer from 1 to 2^53"
         " (found 0)."),
    ],
    ids=range(8),
)  # fmt: skip
def test_a_mistake_is_one_sentence(name: str, section: dict[str, Any], sentence: str) -> None:
    assert mistakes(name, section) == [sentence]
