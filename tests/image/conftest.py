"""Pytest plugin: the fixture `containers`, of an image that is built once per run.

The engine is Docker if it answers, else Debian's buildah and runc. Without an engine the tests of
the image are listed at the end of the run, and fail if CI or STREAMDUEL_REQUIRE_IMAGE is set. An
image that does not build always fails them.
"""

import os
from collections.abc import Iterator
from typing import Final, NoReturn

import pytest

from tests.image.container import Containers
from tests.image.debian import Debian
from tests.image.docker import Docker
from tests.image.engine import BuildError, Engine, EngineUnavailableError

REQUIRE: Final = "STREAMDUEL_REQUIRE_IMAGE"
NO_ENGINE: Final = "the container image could not be built for this test"
NOT_BUILT: Final = "the container image does not build"
WAYS_OUT: Final = """\
Either of these builds and runs it:
  1. start a Docker engine;
  2. on Debian, as root: apt-get install buildah mmdebstrap runc."""
IMAGE_BUILT = pytest.StashKey[str]()


def obtain_engine() -> tuple[Engine, str]:
    """Return the first available engine, with the image built, and why others were not used.

    Raises:
        EngineUnavailableError: no engine is available.
        BuildError: the image does not build.
    """
    reasons: list[str] = []
    for kind in (Docker, Debian):
        try:
            return kind(), "; ".join(reasons)
        except EngineUnavailableError as error:
            reasons.append(f"{kind.__name__}: {error}")
    raise EngineUnavailableError("; ".join(reasons))


def skip_or_fail(reason: str) -> NoReturn:
    """Skip the test, or fail it where the image is required."""
    sentence = f"{NO_ENGINE} ({reason})"
    if any(os.environ.get(name, "").lower() in {"1", "true"} for name in ("CI", REQUIRE)):
        pytest.fail(sentence, pytrace=False)
    pytest.skip(sentence)


@pytest.fixture(scope="session")
def containers(pytestconfig: pytest.Config) -> Iterator[Containers]:
    """Starts containers of the image."""
    try:
        engine, skipped = obtain_engine()
    except EngineUnavailableError as error:
        skip_or_fail(str(error))
    except BuildError as error:
        pytest.fail(f"{NOT_BUILT}: {error}", pytrace=False)
    built = f"{engine.image.size / 1e6:.0f} MB, built and run by {type(engine).__name__}"
    pytestconfig.stash[IMAGE_BUILT] = f"{built} ({skipped})" if skipped else built
    yield Containers(engine)
    engine.close()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the image's size, or every test that did not run without the image."""
    if IMAGE_BUILT in config.stash:
        terminalreporter.line(f"Image: {config.stash[IMAGE_BUILT]}")
    missed = [
        report.nodeid
        for report in terminalreporter.stats.get("skipped", [])
        if report.when == "setup" and NO_ENGINE in report.longreprtext
    ]
    if missed:
        title = f"NOT RUN without the container image: {len(missed)}"
        terminalreporter.section(title, red=True, bold=True)
        for nodeid in missed:
            terminalreporter.line(nodeid, red=True)
        terminalreporter.line(WAYS_OUT)
