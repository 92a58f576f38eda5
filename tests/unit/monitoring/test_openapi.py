"""The API conforms to its OpenAPI document, and the document is complete."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

from streamduel.monitoring import api, app, openapi
from streamduel.monitoring.page.overview import Query
from tests.unit.monitoring.fold import commit, config, duels, fold, task
from tests.unit.monitoring.served import Service

NAMES = ("search", "a/b", "Größe & Preis", "x")


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """A service that folds: then nothing may answer with a 5xx."""
    made = Service()
    made.monitoring.observer.connection(source=True)
    watched = task(config(dict.fromkeys(NAMES, ("bm25", "ltr", "dense"))))
    fold(watched, *duels("search", 0, "bm25", "ltr", "bbbtbbabb"))
    commit(made.monitoring.observer, watched)
    yield made
    made.close()


schema = schemathesis.openapi.from_dict(openapi.document())


@schema.parametrize()
@settings(
    max_examples=30,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_as_described(service: Service, case: schemathesis.Case[Any]) -> None:
    case.call_and_validate(base_url=str(service.client.base_url))


def answered(service: Service, path: str) -> Any:
    answer = service.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


def test_the_document_names_every_address_of_the_api(service: Service) -> None:
    document = answered(service, "/api/openapi.json")
    assert document == openapi.document()
    assert document["openapi"] == "3.1.0"
    routes = app._api(service.monitoring.observer, service.monitoring.history)
    addresses = {route.path.replace(":any_name", "") for route in routes} | set(app.PROBES)
    assert set(document["paths"]) == addresses - {"/api/openapi.json"}
    for path, item in document["paths"].items():
        assert "get" in item, path
        assert item["get"]["operationId"]


def test_the_document_names_the_parameters_of_the_table() -> None:
    table = openapi.document()["paths"]["/api/experiments.csv"]
    found = {it["name"]: it["schema"] for it in table["parameters"]}
    assert set(found) == {"q", "status", "sort"}
    for name in ("status", "sort"):
        for value in found[name]["anyOf"][0]["enum"]:
            text = "" if value == "name" else f"?{name}={value}"  # the order without a parameter
            assert Query.parse({name: value}).csv_address == f"/api/experiments.csv{text}"


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/api/experiments", api.Experiments),
        ("/api/experiments/a%2Fb", api.Experiments),
        ("/api/history/search", api.HistoryAnswer),
        ("/api/matrix/search", api.MatrixAnswer),
        ("/api/segments/search", api.SegmentsAnswer),
        ("/api/record/search", api.RecordAnswer),
        ("/api/examples/search", api.ExamplesAnswer),
    ],
)
def test_no_answer_has_a_field_that_is_not_described(
    service: Service, path: str, form: type[msgspec.Struct]
) -> None:
    raw = service.get(path).content
    assert msgspec.json.decode(msgspec.json.encode(msgspec.json.decode(raw, type=form))) == (
        msgspec.json.decode(raw)
    )


def test_other_methods_are_refused(service: Service) -> None:
    for path in ("/api/experiments/search", "/api/history/search", "/api/matrix/search",
                 "/api/openapi.json"):  # fmt: skip
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
            answer: httpx.Response = service.client.request(method, path)
            assert answer.status_code == 405
            assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD"}
