"""The client for ranker services: draw a pair of rankers, interleave their lists, log the clicks.

It needs msgspec; for Kafka also kafka-python, or confluent-kafka to read assignments; and scipy for
optimised interleaving.
"""

from streamduel.client.assignment import Draw
from streamduel.client.assignments import Assignments
from streamduel.client.event_log import EventLog
from streamduel.client.feeds import Feed, FeedRecord, InMemoryFeed
from streamduel.client.interleaver import Interleaver, Merged
from streamduel.client.writers import Message, Writer, Written
from streamduel.errors import BufferFullError, ClientError
from streamduel.records import RankClick

__all__ = [
    "Assignments",
    "BufferFullError",
    "ClientError",
    "Draw",
    "EventLog",
    "Feed",
    "FeedRecord",
    "InMemoryFeed",
    "Interleaver",
    "Merged",
    "Message",
    "RankClick",
    "Writer",
    "Written",
]
