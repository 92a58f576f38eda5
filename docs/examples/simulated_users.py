"""Simulated users of the search service: they search for a dish and click on dishes they like.

    python simulated_users.py [HOST:PORT [SEARCHES]]

A dish of 80 votes is liked by four users of five. Of the dishes they like on the first page, they
click on the most popular one. The seed makes the users reproducible, whatever they are shown.
"""

import json
import random
import sys
import time
from http.client import HTTPConnection
from urllib.parse import urlencode

from search_service import VOTES

ADDRESS = sys.argv[1] if len(sys.argv) > 1 else "localhost:8000"
SEARCHES = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
PAUSE = 0.005  # seconds: time for streamduel to publish the next assignment

users = random.Random(7)
service = HTTPConnection(ADDRESS)


def ask(method: str, path: str, **parameters: object) -> bytes:
    """Send a request; the body of the answer."""
    service.request(method, f"{path}?{urlencode(parameters)}")
    answer = service.getresponse()
    text = answer.read()
    if answer.status >= 400:
        sys.exit(f"{path} answered with status {answer.status}: {text.decode()}")
    return text


both = clicks = 0
for number in range(1, SEARCHES + 1):
    query = users.choice(list(VOTES))
    liked = {dish for dish, votes in VOTES.items() if users.random() < votes / 100}
    found = json.loads(ask("GET", "/search", query=query, session=f"user {number}"))
    if found["impression"]:  # otherwise one ranker was served alone
        both += 1
        if clicked := liked.intersection(found["results"]):
            rank = found["results"].index(max(clicked, key=lambda dish: VOTES[dish]))
            ask("POST", "/click", impression=found["impression"], rank=rank)
            clicks += 1
    if number % 500 == 0:
        print(f"{number:>5} searches, the last 500: {both:>3} of both rankers, {clicks:>3} clicks")
        both = clicks = 0
    time.sleep(PAUSE)
