"""A temporary Apache Kafka broker: `python -m tests.broker [PORT]`, until Ctrl-C."""

import contextlib
import signal
import sys
import threading

from tests.broker.local_kafka import LocalKafka

# A process that a shell starts in the background ignores SIGINT, and Python does not change that.
signal.signal(signal.SIGINT, signal.default_int_handler)
PORT = int(sys.argv[1]) if len(sys.argv) > 1 else 9092
with contextlib.suppress(KeyboardInterrupt), LocalKafka(port=PORT) as kafka:
    print(
        f"Apache Kafka on {kafka.bootstrap_servers}; Ctrl-C ends it and removes its data.",
        flush=True,
    )
    threading.Event().wait()
