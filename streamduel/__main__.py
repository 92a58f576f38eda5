"""`python -m streamduel` and the `streamduel` script."""

import os
import signal
import sys
from types import FrameType


def _terminate(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)  # the status that a shell shows for a signal


if os.getpid() == 1:  # in a container; the kernel drops a SIGTERM that process 1 does not handle
    signal.signal(signal.SIGTERM, _terminate)

try:
    from streamduel.cli import main
except KeyboardInterrupt:  # Ctrl-C during the imports shows no traceback
    sys.exit(130)

if __name__ == "__main__":
    main()
