"""A search service on streamduel: it interleaves two rankers and logs the clicks.

    KAFKA=localhost:9092 uvicorn --app-dir docs/examples search_service:app
    ASSIGNMENTS=out/assignments.jsonl CLICKS=clicks.jsonl uvicorn … (the same, without Kafka)

docs/client.md has the configuration of streamduel for it.
"""

import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Query

from streamduel.client import Assignments, ClientError, Draw, EventLog, Interleaver

PAGE, PAGES = 3, 4  # documents per page, pages
VOTES = {
    "apple pie": 80, "apple strudel": 64, "carrot cake": 71, "cherry pie": 35, "lemon cake": 52,
    "lemon tart": 47, "mushroom pie": 18, "onion soup": 59, "onion tart": 23, "pea soup": 12,
    "plum cake": 41, "pumpkin soup": 66,
}  # fmt: skip


def by_votes(query: str) -> list[str]:
    """Dishes with any of the words, the most popular first."""
    words = set(query.split())
    return sorted((dish for dish in VOTES if words & set(dish.split())), key=lambda d: -VOTES[d])


def by_words(query: str) -> list[str]:
    """Dishes with more of the words first."""
    words = set(query.split())
    return sorted(sorted(by_votes(query)), key=lambda dish: -len(words & set(dish.split())))


RANKERS = {"words": by_words, "votes": by_votes}
interleaver = Interleaver(length=PAGES * PAGE)
client: dict[str, Any] = {}


def connect() -> tuple[Assignments, EventLog]:
    """Connect to Kafka or to files; a session keeps its pair for ten minutes."""
    defaults = {"recipes": "words"}  # before the first assignment
    if servers := os.environ.get("KAFKA"):
        assignments = Assignments.from_kafka(servers, defaults=defaults, keep=600)
        return assignments, EventLog.to_kafka(servers)
    assignments = Assignments.from_file(os.environ["ASSIGNMENTS"], defaults=defaults, keep=600)
    return assignments, EventLog.to_file(os.environ["CLICKS"])


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Connect when a worker process starts, and write buffered records when it ends."""
    client["assignments"], client["events"] = connect()
    with client["assignments"], client["events"]:
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/search")
def search(
    query: str,
    session: str,
    page: Annotated[int, Query(ge=0, lt=PAGES)] = 0,
    impression: Annotated[str, Query(max_length=256)] = "",
) -> dict[str, Any]:
    """A page of results; requests for further pages, and clicks, repeat its `impression`."""
    draw = client["assignments"].draw("recipes", sticky_key=session)
    if not {draw.a, draw.b} <= RANKERS.keys():  # an arm that is not deployed here
        draw = Draw("words", "words", draw.epoch)
    impression = impression or str(uuid.uuid4())
    lists = RANKERS[draw.a](query), RANKERS[draw.b](query)
    shown = interleaver.merge(draw, *lists, sticky_key=impression)
    if page == 0:
        client["events"].impression("recipes", draw, shown, record_id=impression)
    rank = page * PAGE
    named = impression if shown.docs and not draw.alone else None  # None: do not log clicks
    return {"impression": named, "rank": rank, "results": shown.docs[rank : rank + PAGE]}


@app.post("/click", status_code=204)
def click(impression: str, rank: Annotated[int, Query(ge=0, lt=PAGES * PAGE)]) -> None:
    """Log a click; ranks are counted over all pages, from 0."""
    try:
        client["events"].click("recipes", impression, rank=rank)
    except ClientError as error:
        raise HTTPException(400, str(error)) from None
