"""The command line: what it says, what it leaves behind, and its exit status."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.console import Console

from streamduel import __version__, cli, policies
from tests.logs import ARMS, duel, values
from tests.unit.config.configurations import GOOD, changed, written

LOG = [value for _, value in values(21, 2000, poison=0.005)]
SECONDS = 60
"""Far more than anything here takes, on a machine with other things to do."""

COMMAND = [sys.executable, "-c", "from streamduel.cli import main; main()"]


class Said(NamedTuple):
    """What a command has said, and its exit status."""

    status: int
    out: str
    err: str


Streamduel = Callable[..., Said]


@pytest.fixture
def streamduel(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Streamduel:
    """The command line, in this process: all but `run`, which listens to signals."""

    def call(*arguments: object) -> Said:
        monkeypatch.setattr("sys.argv", ["streamduel", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setattr(cli, "out", Console(width=200))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert isinstance(ended.value.code, int)
        return Said(ended.value.code, *capsys.readouterr())

    return call


def run(config: Path, *options: str) -> Said:
    """`streamduel run`, in a process of its own."""
    done = subprocess.run(
        [*COMMAND, "run", str(config), *options],
        capture_output=True, text=True, check=False, timeout=SECONDS,
    )  # fmt: skip
    return Said(done.returncode, done.stdout, done.stderr)


def configure(folder: Path, changes: Mapping[str, Any] | None = None) -> Path:
    path = folder / "search.yaml"
    arms = {"experiments.search.arms": list(ARMS), "experiments.search.seed": 7}
    path.write_text(written(changed({**arms, **(changes or {})}, GOOD)))
    return path


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the service has folded a log to its end; not to be changed."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "clicks.jsonl").write_bytes(b"".join(value + b"\n" for value in LOG))
    said = run(configure(folder), "--until-end")
    assert said.status == 0, said.err
    return folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return shutil.copytree(finished, tmp_path / "copy")


def lines(folder: Path, name: str = "assignments.jsonl") -> list[bytes]:
    return (folder / "out" / name).read_bytes().splitlines(keepends=True)


def inspected(streamduel: Streamduel, folder: Path) -> dict[str, Any]:
    said = streamduel("inspect", folder / "search.yaml", "--json")
    assert said.status == 0
    report: dict[str, Any] = json.loads(said.out)
    return report


# Help.


def test_without_arguments_it_teaches(streamduel: Streamduel) -> None:
    said = streamduel()
    assert said.status == 2
    for command in ("run", "validate", "inspect", "replay", "policies"):
        assert f" {command} " in said.out + said.err


@pytest.mark.parametrize("option", ["--help", "-h"])
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("run", ["--until-end", "SIGTERM", "exits with status 0", "CONFIG"]),
        ("validate", ["Check a configuration and start nothing"]),
        ("inspect", ["--json", "Show the newest snapshots"]),
        ("replay", ["Exits with 0 when all are equal", "exits with 1"]),
        ("policies", ["--json", "List every policy"]),
    ],
)
def test_each_command_says_what_it_does(
    streamduel: Streamduel, command: str, words: list[str], option: str
) -> None:
    said = streamduel(command, option)
    assert said.status == 0
    for word in words:
        assert word in " ".join(said.out.split())


def test_it_says_which_version_it_is(streamduel: Streamduel) -> None:
    assert streamduel("--version") == (0, f"streamduel {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rnu"], "No such command 'rnu'"),
        (["run"], "Missing argument 'CONFIG'"),
        (["validate", "a.yaml", "b.yaml"], "unexpected extra argument"),
        (["inspect", "a.yaml", "--jsno"], "No such option"),
    ],
)
def test_a_mistake_on_the_command_line_ends_with_status_2(
    streamduel: Streamduel, arguments: list[str], words: str
) -> None:
    said = streamduel(*arguments)
    assert said.status == 2
    assert words in said.err
    assert not said.out


# What starts nothing.


def test_validate_says_what_is_configured_and_makes_no_file(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    config = configure(tmp_path)
    assert streamduel("validate", config) == (
        0, f"{config} is valid: 1 experiment, files to files.\n", "",
    )  # fmt: skip
    assert list(tmp_path.iterdir()) == [config]


def test_validate_counts_experiments(streamduel: Streamduel, tmp_path: Path) -> None:
    config = configure(tmp_path, {"experiments.ads": {"arms": ["x", "y"]}})
    assert " is valid: 2 experiments, " in streamduel("validate", config).out


def test_policies_are_listed_for_people(streamduel: Streamduel) -> None:
    said = streamduel("policies")
    assert said.status == 0
    text = " ".join(said.out.split())
    for name in policies.names():
        policy = policies.get(name)
        assert f"{name}: {policy.summary}" in text
        assert policy.paper in text
        for parameter in policy.declared.values():
            assert f"{parameter.name} ({parameter.symbol}): {parameter.meaning}; " in text
            assert parameter.allowed in text


def test_policies_are_listed_for_programs(streamduel: Streamduel) -> None:
    said = streamduel("policies", "--json")
    listed = {policy["name"]: policy for policy in json.loads(said.out)}
    assert list(listed) == policies.names()
    assert listed["rucb"]["parameters"]["alpha"] == {
        "symbol": "α", "default": 0.51, "allowed": "a finite number greater than 0.5",
        "meaning": policies.get("rucb").declared["alpha"].meaning,
    }  # fmt: skip
    assert listed["rucb"].keys() == {"name", "summary", "paper", "parameters"}


# run, inspect.


def test_run_until_end_folds_the_log_and_shows_who_leads(finished: Path, folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    said = run(folder / "search.yaml", "--until-end")
    assert said.status == 0
    assert "champion" in said.out
    assert f"outputs: {folder / 'out'}" in said.out
    assert f"snapshots: {folder / 'state'}" in said.out
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert after == before, "a second run had nothing to do"


def test_run_goes_on_where_it_stopped(finished: Path, tmp_path: Path) -> None:
    config = configure(tmp_path)
    for end in (700, 701, 2000):
        log = b"".join(value + b"\n" for value in LOG[:end])
        (tmp_path / "clicks.jsonl").write_bytes(log)
        assert run(config, "--until-end").status == 0
    assert lines(tmp_path) == lines(finished)
    assert lines(tmp_path, "dead_letters.jsonl") == lines(finished, "dead_letters.jsonl")


def test_run_reads_standard_input(finished: Path, tmp_path: Path) -> None:
    config = configure(tmp_path, {"source.path": "-"})
    with (finished / "clicks.jsonl").open("rb") as log:
        done = subprocess.run(
            [*COMMAND, "run", str(config), "--until-end"],
            stdin=log, capture_output=True, check=False, timeout=SECONDS,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert lines(tmp_path) == lines(finished)


def test_inspect_for_programs_has_what_they_rely_on(streamduel: Streamduel, folder: Path) -> None:
    report = inspected(streamduel, folder)
    search = report["experiments"]["search"]
    assert search["arms"] == list(ARMS)
    assert (search["status"], search["policy"]) == ("running", "rucb")
    assert search["offset"] == {"topic": "clicks.jsonl", "partition": 0, "next": len(LOG)}
    assert search["state_hash"].startswith("sha256:")
    last = json.loads(lines(folder)[-1])
    assert (search["epoch"], search["champion"]) == (last["epoch"], last["champion"])
    tallies = search["tallies"]
    assert tallies.keys() == {"accepted", "duplicate", "dead_letter", "late", "unjoined"}
    unnamed = sum(report["dead_letters"].values()) - tallies["dead_letter"]
    assert sum(tallies.values()) + unnamed == len(LOG)
    assert sum(map(sum, search["wins"])) <= search["duels"]
    assert sum(report["dead_letters"].values()) == len(lines(folder, "dead_letters.jsonl"))


def test_inspect_for_people_shows_the_same(streamduel: Streamduel, folder: Path) -> None:
    search = inspected(streamduel, folder)["experiments"]["search"]
    said = streamduel("inspect", folder / "search.yaml")
    assert said.status == 0
    assert f"search: champion {search['champion']}" in said.out
    assert f"{search['duels']:,} duels" in said.out
    assert all(arm in said.out for arm in ARMS)
    assert "dead letters" in said.out


def test_inspect_shows_who_never_met_and_that_nothing_was_refused(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    (tmp_path / "clicks.jsonl").write_bytes(duel("search", 1, "bm25", "ltr-v1", "a") + b"\n")
    config = configure(tmp_path)
    assert run(config, "--until-end").status == 0
    said = streamduel("inspect", config)
    assert said.out.count("never met") == len(ARMS) - 2
    assert "1 accepted" in said.out
    assert said.out.endswith("No dead letters.\n")


def test_inspect_before_the_first_run_says_so(streamduel: Streamduel, tmp_path: Path) -> None:
    config = configure(tmp_path)
    said = streamduel("inspect", config)
    assert (said.status, said.out) == (
        0, "There is no snapshot yet: has `streamduel run` been started?\n",
    )  # fmt: skip
    assert inspected(streamduel, tmp_path) == {"experiments": {}, "dead_letters": {}}


def test_a_log_that_is_not_there_is_told_so(folder: Path) -> None:
    (folder / "clicks.jsonl").unlink()
    assert run(folder / "search.yaml", "--until-end") == (
        1, "",
        f"streamduel: source.path {folder / 'clicks.jsonl'} cannot be read: "
        f"No such file or directory.\n",
    )  # fmt: skip


# replay.


def replay(streamduel: Streamduel, folder: Path) -> Said:
    return streamduel("replay", folder / "search.yaml")


def test_replay_finds_an_honest_run_equal(streamduel: Streamduel, folder: Path) -> None:
    assert replay(streamduel, folder) == (
        0,
        f"{len(LOG)} records folded again, {len(lines(folder))} assignments equal, states equal.\n",
        "",
    )


def test_replay_changes_nothing(streamduel: Streamduel, folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    replay(streamduel, folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def rewrite(folder: Path, published: list[bytes]) -> None:
    (folder / "out" / "assignments.jsonl").write_bytes(b"".join(published))


@pytest.mark.parametrize("epoch", [1, 20, -1])
def test_replay_shows_a_changed_byte(streamduel: Streamduel, folder: Path, epoch: int) -> None:
    published = lines(folder)
    index = epoch - 1 if epoch > 0 else len(published) - 1
    honest = published[index]
    published[index] = honest.replace(b'"share":1.0', b'"share":0.9')
    assert published[index] != honest
    rewrite(folder, published)
    said = replay(streamduel, folder)
    assert said == (
        1,
        f"epoch {index + 1} of 'search' differs:\n"
        f"  published: {published[index].decode()}  the log says: {honest.decode()}",
        "",
    )


@pytest.mark.parametrize("index", [0, 20, -1])
def test_replay_misses_a_dropped_line(streamduel: Streamduel, folder: Path, index: int) -> None:
    published = lines(folder)
    dropped = published.pop(index)
    rewrite(folder, published)
    epoch = json.loads(dropped)["epoch"]
    assert replay(streamduel, folder) == (
        1,
        f"epoch {epoch} of 'search' differs:\n  published: nothing\n"
        f"  the log says: {dropped.decode()}",
        "",
    )


def test_replay_notices_a_line_published_twice(streamduel: Streamduel, folder: Path) -> None:
    published = lines(folder)
    rewrite(folder, [*published[:5], published[4], *published[5:]])
    assert replay(streamduel, folder) == (1, "epoch 5 of 'search' was published twice.\n", "")


def test_replay_notices_an_invented_line(streamduel: Streamduel, folder: Path) -> None:
    published = lines(folder)
    invented = published[3].replace(b'"epoch":4,', b'"epoch":9999,')
    rewrite(folder, [*published[:5], invented, *published[5:]])
    said = replay(streamduel, folder)
    assert said.status == 1
    assert " of 'search' differs:\n" in said.out


def test_what_was_appended_and_never_committed_is_no_difference(
    streamduel: Streamduel, folder: Path
) -> None:
    """A process that was killed leaves such lines; the next one cuts them off."""
    published = lines(folder)
    rewrite(folder, [*published, published[-1]])
    assert replay(streamduel, folder).status == 0
    assert run(folder / "search.yaml", "--until-end").status == 0
    assert lines(folder) == published


@pytest.mark.parametrize(
    ("found", "wanted"), [(b'"accepted":', b'"accepted":1'), (b'"duels":', b'"duels":1')]
)
def test_replay_notices_a_changed_state(
    streamduel: Streamduel, folder: Path, found: bytes, wanted: bytes
) -> None:
    path = folder / "state" / "snapshot.json"
    path.write_bytes(path.read_bytes().replace(found, wanted, 1))
    said = replay(streamduel, folder)
    assert said.status == 1
    assert said.out.startswith("the state of 'search' differs: the snapshot has sha256:")


def test_replay_notices_a_changed_log(streamduel: Streamduel, folder: Path) -> None:
    log = folder / "clicks.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"winner": "a"', b'"winner": "b"', 1))
    assert replay(streamduel, folder).status == 1


def test_replay_notices_a_log_that_lost_its_end(streamduel: Streamduel, folder: Path) -> None:
    (folder / "clicks.jsonl").write_bytes(b"".join(value + b"\n" for value in LOG[:1000]))
    said = replay(streamduel, folder)
    assert said.status == 1
    assert said.out.endswith("  the log says: nothing\n")


def test_replay_misses_the_whole_file(streamduel: Streamduel, folder: Path) -> None:
    (folder / "out" / "assignments.jsonl").unlink()
    assert replay(streamduel, folder).status == 1


def test_replay_without_a_snapshot_has_nothing_to_compare(
    streamduel: Streamduel, folder: Path
) -> None:
    shutil.rmtree(folder / "state")
    assert replay(streamduel, folder) == (
        2, "",
        "streamduel: there is no snapshot yet, so there is nothing to compare a replay to.\n",
    )  # fmt: skip


def test_replay_says_whom_it_left_out(streamduel: Streamduel, folder: Path) -> None:
    configure(folder, {"experiments": {"ads": {"arms": ["x", "y"]}}})
    assert replay(streamduel, folder).err == (
        "'search' is not configured any more and was not checked.\n"
    )


# What may not change.


@pytest.mark.parametrize("command", ["run", "replay"])
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"experiments.search.arms": [*ARMS[1:], ARMS[0]]},
            'arms must stay ["bm25","ltr-v1","ltr-v2","ltr-v3","dense","hybrid"] while the '
            'experiment runs (found ["ltr-v1","ltr-v2","ltr-v3","dense","hybrid","bm25"])',
        ),
        (
            {"experiments.search.policy": {"name": "rucb", "alpha": 0.6}},
            'policy must stay {"name":"rucb"} while the experiment runs (found '
            '{"name":"rucb","alpha":0.6})',
        ),
        (
            {"experiments.search.policy": {"name": "rucb", "champion_set": True}},
            'policy must stay {"name":"rucb"} while the experiment runs (found '
            '{"name":"rucb","champion_set":true})',
        ),
        (
            {"experiments.search.decide_every": 9},
            "decide_every must stay 1 while the experiment runs (found 9)",
        ),
    ],
    ids=["arms", "alpha", "policy", "decide_every"],
)
def test_a_running_experiment_may_not_change(
    streamduel: Streamduel, folder: Path, command: str, changes: dict[str, Any], sentence: str
) -> None:
    config = configure(folder, changes)
    said = run(config) if command == "run" else streamduel(command, config)
    assert said == (
        2, "",
        f"streamduel: experiments.search.{sentence}; restore the value, or start afresh under a "
        f"new experiment name.\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: b"", "cannot be read: "),
        (lambda text: text[: len(text) // 2], "cannot be read: "),
        (lambda text: text.replace(b'"format":1', b'"format":2'), "has format 2; "),
    ],
    ids=["empty", "cut-off", "newer"],
)
def test_a_damaged_snapshot_is_refused(
    streamduel: Streamduel, folder: Path, damage: Callable[[bytes], bytes], words: str
) -> None:
    path = folder / "state" / "snapshot.json"
    path.write_bytes(damage(path.read_bytes()))
    for said in (run(folder / "search.yaml"), streamduel("inspect", folder / "search.yaml")):
        assert said.status == 2
        assert said.err.startswith("streamduel: the snapshot")
        assert words in said.err


# Signals and locks.


class Service:
    """`streamduel run` in the background; `wait_for` ends with it."""

    def __init__(self, config: Path) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "run", str(config)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Look again and again until a condition holds; the service must stay alive."""
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < deadline, "the condition never held"
            try:
                self.process.wait(timeout=0.01)
            except subprocess.TimeoutExpired:
                continue
            raise AssertionError(self.process.communicate()[1])

    def has_read(self, path: Path) -> bool:
        """Whether it has read a file to its end, as the operating system knows it."""
        return _positions(self.process.pid, path) == {path.stat().st_size}

    def stop(self, number: int) -> Said:
        """Send a signal, and wait no longer than an orchestrator does."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=10)
        return Said(self.process.returncode, out, err)


def _positions(pid: int, path: Path) -> set[int]:
    """How far each of a process's descriptors of a file has come."""
    found = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if link.samefile(path):
                info = Path(f"/proc/{pid}/fdinfo/{link.name}").read_text()
                found.add(int(info.split()[1]))
        except OSError:  # closed in the meantime, or no file
            continue
    return found


@pytest.fixture
def start() -> Iterator[Callable[[Path], Service]]:
    started: list[Service] = []

    def begin(config: Path) -> Service:
        started.append(Service(config))
        return started[-1]

    yield begin
    for service in started:
        service.process.kill()
        service.process.communicate()


on_linux = pytest.mark.skipif(not Path("/proc/self/fdinfo").exists(), reason="needs /proc")


@on_linux
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_commits_what_is_done_and_ends_with_status_0(
    finished: Path, folder: Path, start: Callable[[Path], Service], streamduel: Streamduel,
    number: int,
) -> None:  # fmt: skip
    shutil.rmtree(folder / "out")
    shutil.rmtree(folder / "state")
    service = start(configure(folder, {"commit": {"interval_ms": 60_000}}))
    service.wait_for(lambda: service.has_read(folder / "clicks.jsonl"))
    assert service.stop(number) == (0, "", "")
    assert inspected(streamduel, folder)["experiments"]["search"]["offset"]["next"] == len(LOG)
    assert lines(folder) == lines(finished)


@on_linux
def test_a_log_is_followed_as_it_grows(
    finished: Path, tmp_path: Path, start: Callable[[Path], Service]
) -> None:
    log = tmp_path / "clicks.jsonl"
    log.write_bytes(b"")
    service = start(configure(tmp_path))
    for begin in range(0, len(LOG), 500):
        with log.open("ab") as file:
            file.write(b"".join(value + b"\n" for value in LOG[begin : begin + 500]))
        service.wait_for(lambda: service.has_read(log))
    assert service.stop(signal.SIGTERM).status == 0
    assert lines(tmp_path) == lines(finished)


def test_a_second_process_on_the_same_folder_is_refused(
    folder: Path, start: Callable[[Path], Service]
) -> None:
    lock = folder / "state" / ".lock"
    lock.unlink()
    first = start(folder / "search.yaml")
    first.wait_for(lock.exists)
    service = start(folder / "search.yaml")
    assert service.process.wait(timeout=SECONDS) == 1
    assert service.process.communicate() == (
        "",
        f"streamduel: another streamduel keeps its snapshots in {folder / 'state'}; each needs a "
        f"folder of its own.\n",
    )
    assert first.stop(signal.SIGTERM).status == 0


@on_linux
def test_inspect_and_replay_disturb_nobody(
    folder: Path, start: Callable[[Path], Service], streamduel: Streamduel
) -> None:
    service = start(folder / "search.yaml")
    service.wait_for(lambda: service.has_read(folder / "clicks.jsonl"))
    assert streamduel("inspect", folder / "search.yaml").status == 0
    assert replay(streamduel, folder).status == 0
    assert service.stop(signal.SIGTERM).status == 0
