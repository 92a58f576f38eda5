"""What a ranker service imports to close the loop: which pair, one list of two, what was clicked.

It is light: numpy and msgspec, and kafka-python only where Kafka is used.
"""

from streamduel.client.assignment import Draw
from streamduel.client.assignments import Assignments
from streamduel.client.event_log import EventLog
from streamduel.client.feed import Feed, Given, News
from streamduel.client.interleaver import Interleaver, Merged
from streamduel.client.outbox import Message, Writer, Written
from streamduel.errors import BufferFullError, ClientError
from streamduel.records import RankClick

__all__ = [
    "Assignments",
    "BufferFullError",
    "ClientError",
    "Draw",
    "EventLog",
    "Feed",
    "Given",
    "Interleaver",
    "Merged",
    "Message",
    "News",
    "RankClick",
    "Writer",
    "Written",
]
