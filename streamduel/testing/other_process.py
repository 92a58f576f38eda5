"""Calls a function in another process, where the order of hashes is another one."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any, Final

_CODE: Final = (
    "import json, pickle, sys; sys.path[:] = json.loads(sys.argv[1]);"
    "function, arguments = pickle.load(sys.stdin.buffer);"
    "print(json.dumps(function(*arguments)))"
)


def in_another_process(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what an importable function returns there, after a round trip through JSON.

    Raises:
        AssertionError: it failed there; the message begins with `what`.
    """
    run = subprocess.run(  # noqa: S603 - the code above
        [sys.executable, "-c", _CODE, json.dumps(sys.path)],
        input=pickle.dumps((function, arguments)),
        env={**os.environ, "PYTHONHASHSEED": "12345"},
        check=False,
        capture_output=True,
    )
    assert run.returncode == 0, f"{what} in another process: {run.stderr.decode()}"
    return json.loads(run.stdout)
