"""Pytest plugin: the fixture `containers`, of an image that is built once per run.

With a Docker engine, if one answers, else with Debian's buildah and runc. Where neither can be had,
the tests of the image are named at the end of the run, and fail where it must not pass without them
(CI, STREAMDUEL_REQUIRE_IMAGE). Where the image does not build they fail always.
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
    """Return the first engine that can be had, the image built, and why the way before it failed.

    Raises:
        EngineUnavailableError: there is none; the text says why.
        BuildError: there is one, and it cannot build the image.
    """
    reasons: list[str] = []
    for way in (Docker, Debian):
        try:
            return way(), "; ".join(reasons)
        except EngineUnavailableError as error:
            reasons.append(f"{way.__name__}: {error}")
    raise EngineUnavailableError("; ".join(reasons))


def without_engine(reason: str) -> NoReturn:
    """End a fixture that cannot do without the image: the test fails where it is required."""
    sentence = f"{NO_ENGINE} ({reason})"
    if any(os.environ.get(name, "").lower() in {"1", "true"} for name in ("CI", REQUIRE)):
        pytest.fail(sentence, pytrace=False)
    pytest.skip(sentence)


@pytest.fixture(scope="session")
def containers(pytestconfig: pytest.Config) -> Iterator[Containers]:
    """Starts containers of the image."""
    try:
        engine, passed_over = obtain_engine()
    except EngineUnavailableError as error:
        without_engine(str(error))
    except BuildError as error:
        pytest.fail(f"{NOT_BUILT}: {error}", pytrace=False)
    built = f"{engine.image.size / 1e6:.0f} MB, built and run by {type(engine).__name__}"
    pytestconfig.stash[IMAGE_BUILT] = f"{built} ({passed_over})" if passed_over else built
    yield Containers(engine)
    engine.close()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say how large the image is, or name every test that was not run for want of it."""
    if IMAGE_BUILT in config.stash:
        terminalreporter.line(f"Image: {config.stash[IMAGE_BUILT]}")
    missed = [
        report.nodeid
        for report in terminalreporter.stats.get("skipped", [])
        if report.when == "setup" and NO_ENGINE in report.longreprtext
    ]
    if missed:
        title = f"NOT RUN for want of the container image: {len(missed)}"
        terminalreporter.section(title, red=True, bold=True)
        for nodeid in missed:
            terminalreporter.line(nodeid, red=True)
        terminalreporter.line(WAYS_OUT)
