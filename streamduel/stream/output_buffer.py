"""The assignments and dead letters of a partition that wait for the next commit."""

from __future__ import annotations

from collections import Counter

import msgspec

from streamduel.connector import LogRecord, Message
from streamduel.records import Assignment, Control, Reason, Rejected
from streamduel.stream.dead_letters import dead_letter

_encode = msgspec.json.Encoder().encode


class OutputBuffer:
    """Collects the outputs of one partition until they are committed.

    Args:
        topic: the name of the click log.
        partition: the partition.

    Attributes:
        assignments: in order.
        letters: dead letters, in order.
        dead_letters: the number of dead letters by reason, since the beginning of the click log.
        bytes: of the outputs.
    """

    def __init__(self, topic: str, partition: int) -> None:
        self._topic = topic
        self._partition = partition
        self.assignments: list[Message] = []
        self.letters: list[Message] = []
        self.dead_letters: Counter[Reason] = Counter()
        self.bytes = 0
        self._controls: list[Control] = []

    def __len__(self) -> int:
        """The number of outputs."""
        return len(self.assignments) + len(self.letters)

    def assign(self, assignment: Assignment) -> None:
        """Publish an assignment."""
        key = assignment.experiment.encode()
        message = Message(key, _encode(assignment), assignment)
        self.assignments.append(message)
        self.bytes += len(message.value)

    def reject(self, record: LogRecord, verdict: Rejected, experiment: str | None = None) -> None:
        """Make a dead letter of a record, which an experiment may count."""
        self.dead_letters[verdict.reason] += 1
        letter = dead_letter(record, verdict, self._topic, self._partition, experiment)
        self.letters.append(letter)
        self.bytes += len(letter.value)

    def act(self, control: Control) -> None:
        """Report that a control record took effect."""
        self._controls.append(control)

    def take(self) -> tuple[list[Message], list[Message], list[Control]]:
        """Assignments, dead letters and control records since the last call."""
        taken = self.assignments, self.letters, self._controls
        self.assignments, self.letters, self._controls, self.bytes = [], [], [], 0
        return taken
