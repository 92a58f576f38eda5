"""The OpenAPI document of the monitoring port, generated from the structs of its answers."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any, Final

import msgspec

import streamduel
from streamduel.monitoring.api import (
    ExamplesAnswer,
    Experiments,
    Healthy,
    HistoryAnswer,
    MatrixAnswer,
    RecordAnswer,
    Refusal,
    SegmentsAnswer,
    Unhealthy,
)
from streamduel.monitoring.experiments_csv import COLUMNS as CSV_COLUMNS
from streamduel.monitoring.metrics import STATUSES
from streamduel.monitoring.page import overview
from streamduel.records import MAX_NAME

_OF_ONE: Final[dict[str, tuple[str, type[msgspec.Struct]]]] = {
    "history": ("Past confidence and regret of an experiment", HistoryAnswer),
    "matrix": ("The preference matrix of an experiment, in counts", MatrixAnswer),
    "segments": ("What the segments of an experiment say", SegmentsAnswer),
    "record": ("What an experiment is for, and what happened to it", RecordAnswer),
    "examples": ("Impressions of the leading rankers that users decided", ExamplesAnswer),
}
"""What `/api/…/NAME` answers about one experiment, and the struct of the answer."""

_ANSWERS: Final = (
    Experiments, *(answer for _, answer in _OF_ONE.values()), Refusal, Healthy, Unhealthy,
)  # fmt: skip
_SCHEMAS: Final = "#/components/schemas/{name}"

_NAME: Final = {
    "name": "name",
    "in": "path",
    "required": True,
    "description": "The experiment's name, percent-encoded whole: a slash is `%2F`.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_NAME},
    "example": "search",
}


def _of_table(name: str, description: str, values: Iterable[str] = ()) -> dict[str, Any]:
    """A query parameter of the table; a value that is none of the known ones is ignored."""
    text = {"type": "string"}
    known = list(values)
    return {
        "name": name,
        "in": "query",
        "description": description,
        "schema": {"anyOf": [{"enum": known}, text]} if known else text,
    }


_TABLE_PARAMETERS: Final = (
    _of_table("q", "A part of the experiment's or the champion's name; all if left out."),
    _of_table("status", "The status; all if left out.", STATUSES),
    _of_table(
        "sort",
        "A column of the status page, by which to sort; `-` before it reverses the order.",
        (f"{sign}{column}" for column in overview.COLUMNS for sign in ("", "-")),
    ),
)


def document() -> dict[str, Any]:
    """The document, version 3.1 of OpenAPI.

    >>> sorted(document()["paths"])[:3]
    ['/api/examples/{name}', '/api/experiments', '/api/experiments.csv']
    """
    _, schemas = msgspec.json.schema_components(_ANSWERS, ref_template=_SCHEMAS)
    for schema in schemas.values():
        schema["description"] = inspect.cleandoc(schema["description"])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "streamduel",
            "version": streamduel.__version__,
            "summary": "Status of the experiments of a running streamduel; read only.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": _paths(),
        "components": {"schemas": schemas},
    }


def _paths() -> dict[str, Any]:
    return {
        "/api/experiments": {
            "get": _operation("experiments", "All experiments of this process", {200: Experiments})
        },
        "/api/experiments.csv": {"parameters": list(_TABLE_PARAMETERS), "get": _table()},
        "/api/experiments/{name}": _of_one("experiment", "One experiment", Experiments),
        **{f"/api/{what}/{{name}}": _of_one(what, *told) for what, told in _OF_ONE.items()},
        "/healthz": {"get": _operation("alive", "Liveness", {200: Healthy, 503: Unhealthy})},
        "/readyz": {"get": _operation("ready", "Readiness", {200: Healthy, 503: Unhealthy})},
    }


def _table() -> dict[str, Any]:
    answer = f"A line for each experiment, below one of headings: {', '.join(CSV_COLUMNS)}."
    return {
        "operationId": "table",
        "summary": "The table of experiments as CSV",
        "responses": {
            "200": {
                "description": answer,
                "content": {"text/csv": {"schema": {"type": "string"}}},
            }
        },
    }


def _of_one(identifier: str, summary: str, answer: type[msgspec.Struct]) -> dict[str, Any]:
    """A path with an experiment's name."""
    return {
        "parameters": [_NAME],
        "get": _operation(identifier, summary, {200: answer, 404: Refusal, 503: Refusal}),
    }


def _operation(
    identifier: str, summary: str, answers: dict[int, type[msgspec.Struct]]
) -> dict[str, Any]:
    return {
        "operationId": identifier,
        "summary": summary,
        "responses": {
            str(status): {
                "description": (inspect.getdoc(answer) or "").splitlines()[0],
                "content": {
                    "application/json": {"schema": {"$ref": _SCHEMAS.format(name=answer.__name__)}}
                },
            }
            for status, answer in answers.items()
        },
    }
