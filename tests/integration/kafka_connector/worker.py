"""A process that commits twice, and kills itself in the second commit at the step it is told."""

import json
import os
import signal
import sys
from contextlib import closing

from tests.integration.kafka_connector.bed import Bed, commit, gain, start, work


def main() -> None:
    bed = Bed(**json.loads(sys.argv[1]))
    deadly, instance = sys.argv[2:]
    armed = False

    def die(step: str) -> None:
        if armed and step == deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    source = bed.source(instance=instance)
    start(source, gain(source))
    outlet = bed.outlet(source, die, transaction_timeout_ms=3000)
    with closing(source):
        commit(outlet, work(0, 10, "first "))
        armed = True
        outlet.write([work(0, 20, "second ")])
        outlet._transactions._producer.flush()
        die("everything written")
        outlet.finish([work(0, 20, "second ")])


if __name__ == "__main__":
    main()
