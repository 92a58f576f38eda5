import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from streamduel.client import ClientError, writers
from streamduel.client.writers import OVERHEAD_BYTES, Message, Outbox, Written
from tests.unit.client.bed import PATIENCE, eventually

ROOM = 1 << 20


def message(number: int) -> Message:
    return Message(b"search", b"%d" % number)


class Notebook:
    """A writer with planned results, which writes while its gate is open."""

    def __init__(self, *plans: Written | Exception) -> None:
        self.plans = list(plans)
        self.batches: list[list[int]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.closed = False

    def write(self, messages: Sequence[Message]) -> Written:
        self.entered.set()
        assert self.gate.wait(PATIENCE)
        self.batches.append([int(each.value) for each in messages])
        plan = self.plans.pop(0) if self.plans else Written()
        if isinstance(plan, Exception):
            raise plan
        return plan

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(writers, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(writers, "MAX_PAUSE", 0.004)
    monkeypatch.setattr(writers, "GRACE_SECONDS", PATIENCE)  # a busy machine is not what is tested
    yield
    eventually(lambda: "streamduel-outbox" not in {each.name for each in threading.enumerate()})


def test_records_are_written_in_order() -> None:
    notebook = Notebook()
    box = Outbox(notebook, ROOM)
    for number in range(2500):
        assert box.put(message(number))
    box.close(PATIENCE)
    assert [number for batch in notebook.batches for number in batch] == list(range(2500))
    assert max(map(len, notebook.batches)) <= writers.MAX_BATCH
    assert notebook.closed
    assert (box.written, box.waiting, box.dropped) == (2500, 0, 0)


def test_records_put_during_a_write_form_the_next_batch() -> None:
    notebook = Notebook()
    notebook.gate.clear()
    box = Outbox(notebook, ROOM)
    box.put(message(0))
    assert notebook.entered.wait(PATIENCE)
    for number in range(1, 6):
        box.put(message(number))
    assert box.waiting == 6
    notebook.gate.set()
    box.close(PATIENCE)
    assert notebook.batches == [[0], [1, 2, 3, 4, 5]]


def test_failed_records_are_retried_first(caplog: pytest.LogCaptureFixture) -> None:
    notebook = Notebook(OSError("away"), Written(again=[message(0)]), Written())
    notebook.gate.clear()
    box = Outbox(notebook, ROOM)
    box.put(message(0))
    assert notebook.entered.wait(PATIENCE)
    box.put(message(1))
    notebook.gate.set()
    box.close(PATIENCE)
    assert notebook.batches == [[0], [0], [0], [1]]
    assert (box.written, box.waiting, box.dropped) == (2, 0, 0)
    assert "the event log cannot be written to: away" in caplog.text


def test_pauses_grow_until_a_record_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    wait = threading.Event.wait

    def waited(event: threading.Event, timeout: float | None = None) -> bool:
        if threading.current_thread().name == "streamduel-outbox" and timeout != PATIENCE:
            pauses.append(timeout or 0)
        return wait(event, timeout)

    monkeypatch.setattr(threading.Event, "wait", waited)
    away = OSError("away")
    some = Written(again=[message(1)])
    notebook = Notebook(away, away, away, away, some, away)
    notebook.gate.clear()
    box = Outbox(notebook, ROOM)
    box.put(message(0))
    assert notebook.entered.wait(PATIENCE)
    notebook.plans.insert(0, Written())
    box.put(message(1))
    box.put(message(2))
    notebook.gate.set()
    box.close(PATIENCE)
    assert notebook.batches == [[0], *[[1, 2]] * 5, *[[1]] * 2]
    assert pauses == [0.001, 0.002, 0.004, 0.004, 0.001]


def test_refused_records_are_counted_and_dropped() -> None:
    notebook = Notebook()
    notebook.gate.clear()
    box = Outbox(notebook, ROOM)
    box.put(message(0))
    assert notebook.entered.wait(PATIENCE)
    notebook.plans = [Written(), Written(again=[message(3)], refused=1)]
    for number in (1, 2, 3):
        box.put(message(number))
    notebook.gate.set()
    box.close(PATIENCE)
    assert notebook.batches == [[0], [1, 2, 3], [3]]
    assert (box.written, box.waiting, box.dropped) == (3, 0, 1)


def test_the_capacity_is_in_bytes_and_writing_frees_it() -> None:
    notebook = Notebook()
    notebook.gate.clear()
    box = Outbox(notebook, capacity=3 * (OVERHEAD_BYTES + len(b"search") + 1))
    assert [box.put(message(number)) for number in range(4)] == [True, True, True, False]
    assert (box.waiting, box.dropped) == (3, 1)
    notebook.gate.set()
    assert box.flush(PATIENCE)
    assert box.put(message(4))
    box.close(PATIENCE)
    assert (box.written, box.waiting, box.dropped) == (4, 0, 1)


def test_flush_waits_for_the_records_put_before_it() -> None:
    notebook = Notebook()
    notebook.gate.clear()
    box = Outbox(notebook, ROOM)
    box.put(message(0))
    assert not box.flush(0.01)
    notebook.gate.set()
    assert box.flush(PATIENCE)
    assert box.written == 1
    assert box.flush(0)
    box.close(PATIENCE)


def test_records_not_written_in_time_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    notebook = Notebook(*[OSError("away")] * 10_000)
    box = Outbox(notebook, ROOM)
    for number in range(3):
        box.put(message(number))
    eventually(lambda: len(notebook.batches) > 3)
    box.close(0)
    assert (box.written, box.waiting, box.dropped) == (0, 0, 3)
    assert "3 records of the event log could not be written in time" in caplog.text
    assert notebook.closed


def test_records_behind_the_last_batch_are_dropped() -> None:
    notebook = Notebook()
    notebook.gate.clear()
    box = Outbox(notebook, ROOM)
    box.put(message(0))
    assert notebook.entered.wait(PATIENCE)
    box.put(message(1))
    closing = threading.Thread(target=box.close, args=(0,))
    closing.start()
    assert box._expired.wait(PATIENCE)
    notebook.gate.set()  # within GRACE_SECONDS
    closing.join(PATIENCE)
    assert (box.written, box.waiting, box.dropped) == (1, 0, 1)


def test_close_does_not_wait_for_a_blocked_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "GRACE_SECONDS", 0)
    notebook = Notebook()
    notebook.gate.clear()
    box = Outbox(notebook, ROOM)
    box.put(message(0))
    assert notebook.entered.wait(PATIENCE)
    box.close(0)
    assert (box.written, box.waiting, box.dropped) == (0, 0, 1)
    notebook.gate.set()
    eventually(lambda: notebook.closed)
    assert (box.written, box.waiting, box.dropped) == (0, 0, 1)


def test_after_close_records_are_refused() -> None:
    box = Outbox(Notebook(), ROOM)
    box.close(PATIENCE)
    box.close(PATIENCE)
    with pytest.raises(ClientError, match="closed"):
        box.put(message(0))


def test_close_wakes_those_who_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "GRACE_SECONDS", 0)
    notebook = Notebook()
    notebook.gate.clear()
    box = Outbox(notebook, ROOM)
    assert box.put(message(0))
    assert notebook.entered.wait(PATIENCE)
    flushed: list[bool] = []
    flushing = threading.Thread(target=lambda: flushed.append(box.flush(2 * PATIENCE)))
    flushing.start()
    box.close(0)
    flushing.join(PATIENCE)
    assert flushed == [False]
    notebook.gate.set()


FORKED = """
import os, sys, threading
from streamduel.client import ClientError
from streamduel.client.writers import FileWriter, Message, Outbox

box = Outbox(FileWriter(sys.argv[1]), 1 << 20)
held, forked = threading.Event(), threading.Event()

def hold():
    with box._changed:
        held.set()
        forked.wait()

holder = threading.Thread(target=hold)
holder.start()
held.wait()
if os.fork() == 0:
    for use in (lambda: box.put(Message(b"search", b"child")), lambda: box.flush(10)):
        try:
            use()
        except ClientError as error:
            print(error)
    box.close(10)
    sys.exit()
forked.set()
_, status = os.wait()
holder.join()
box.put(Message(b"search", b"parent"))
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_a_forked_process_is_refused_even_if_the_lock_was_held(tmp_path: Path) -> None:
    path = tmp_path / "clicks.jsonl"
    ran = subprocess.run(
        [sys.executable, "-c", FORKED, str(path)],
        check=True, stdout=subprocess.PIPE, text=True, timeout=PATIENCE,
    )  # fmt: skip
    sentence = "this event log was created before the process forked; create one in each process."
    assert ran.stdout.splitlines() == [sentence, sentence]
    assert path.read_text() == "parent\n"


INTERRUPTED = """
import os, signal, sys
from collections import deque
from streamduel.client import writers
from streamduel.client.writers import FileWriter, Message, Outbox

class Interrupted(deque):
    def append(self, message):  # where `put` has the lock
        super().append(message)
        signal.raise_signal(signal.SIGTERM)

def end(*_):
    if sys.argv[2] == "sys.exit":
        sys.exit()
    box.close(float(sys.argv[3]))
    os._exit(box.dropped)

writers.EXIT_SECONDS = float(sys.argv[3])
box = Outbox(FileWriter(sys.argv[1]), 1 << 20)
box._buffer = Interrupted()
signal.signal(signal.SIGTERM, end)
box.put(Message(b"search", b"one"))
"""


@pytest.mark.parametrize("end", ["close", "sys.exit"])
def test_a_signal_handler_that_interrupts_put_has_the_buffer_written(
    tmp_path: Path, end: str
) -> None:
    path = tmp_path / "clicks.jsonl"
    command = [sys.executable, "-c", INTERRUPTED, str(path), end, str(PATIENCE)]
    subprocess.run(command, check=True, timeout=2 * PATIENCE)
    assert path.read_text() == "one\n"


CLOSE_INTERRUPTED = """
import atexit, os, signal, sys, threading, time
from streamduel.client import writers
from streamduel.client.writers import FileWriter, Message, Outbox

class Slow(FileWriter):
    def write(self, messages):
        closing.wait()
        while not stopped:  # a signal that comes just before `close` waits does not interrupt it
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.05)
        ending.wait()
        return super().write(messages)

def stop(*_):
    if not stopped:
        stopped.append(True)
        sys.exit()

stopped = []
closing, ending = threading.Event(), threading.Event()
writers.EXIT_SECONDS = float(sys.argv[2])
box = Outbox(Slow(sys.argv[1]), 1 << 20)
atexit.register(ending.set)  # runs before the exit handler of the outbox
signal.signal(signal.SIGTERM, stop)
box.put(Message(b"search", b"one"))
closing.set()
box.close(float(sys.argv[2]))
"""


def test_a_close_that_is_interrupted_is_repeated_at_the_end_of_the_program(tmp_path: Path) -> None:
    path = tmp_path / "clicks.jsonl"
    command = [sys.executable, "-c", CLOSE_INTERRUPTED, str(path), str(PATIENCE)]
    subprocess.run(command, check=True, timeout=2 * PATIENCE)
    assert path.read_text() == "one\n"
