"""A ranker service with simulated users, which serves the pairs of the newest assignment.

    python docs/examples/ranker_service.py [BOOTSTRAP_SERVERS [IMPRESSIONS [PER_SECOND]]]

For configs/kafka.yaml. Users are simulated with the win rates that were measured on arXiv; a real
service interleaves the lists of the two rankers and logs the clicks (see search_service.py).
"""

import json
import math
import random
import sys
import time
import uuid

from kafka import KafkaConsumer, KafkaProducer

from streamduel.simulation.matrices import ARXIV, ARXIV_RANKERS

BOOTSTRAP = sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"
IMPRESSIONS = int(sys.argv[2]) if len(sys.argv) > 2 else 200_000
PER_SECOND = float(sys.argv[3]) if len(sys.argv) > 3 else math.inf  # unlimited
EXPERIMENT = "search"

users = random.Random(7)
win_rate = {(ARXIV_RANKERS[i], ARXIV_RANKERS[j]): ARXIV[i][j] for i in range(6) for j in range(6)}
plan = {"epoch": 0, "champion": "?", "pairs": [{"a": "bm25", "b": "bm25", "share": 1}]}

assignments = KafkaConsumer(
    "assignments", bootstrap_servers=BOOTSTRAP, isolation_level="read_committed",
    auto_offset_reset="earliest", enable_auto_commit=False,
)  # fmt: skip
clicks = KafkaProducer(bootstrap_servers=BOOTSTRAP, linger_ms=5)

for impression in range(IMPRESSIONS):
    if impression % 500 == 0:  # a larger epoch replaces a smaller one
        clicks.flush()
        wait = 200 if plan["epoch"] else 10_000
        for records in assignments.poll(timeout_ms=wait).values():
            for record in records:
                found = json.loads(record.value)
                if found["experiment"] == EXPERIMENT and found["epoch"] > plan["epoch"]:
                    plan = found
        time.sleep(500 / PER_SECOND)
    if impression % 10_000 == 0:
        print(f"{impression:>7} impressions, epoch {plan['epoch']:>5}, champion {plan['champion']}")
    pair = users.choices(plan["pairs"], [pair["share"] for pair in plan["pairs"]])[0]
    # In either order, so that a fault of one side is not taken for a ranker.
    a, b = users.sample((pair["a"], pair["b"]), 2)
    if 1000 * time.time() >= (plan.get("valid_until") or math.inf):  # streamduel is silent
        a = b = plan["fallback"]
    winner = None if a == b else "a" if users.random() < win_rate[a, b] else "b"
    duel = {"type": "duel", "id": str(uuid.uuid4()), "experiment": EXPERIMENT,
            "a": a, "b": b, "winner": winner}  # fmt: skip
    clicks.send("clicks", key=EXPERIMENT.encode(), value=json.dumps(duel).encode())

clicks.close()
assignments.close()
