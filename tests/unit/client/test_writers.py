import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamduel.client import ClientError
from streamduel.client.writers import FileWriter, Message, Written
from tests.unit.client.bed import PATIENCE

ONE, TWO, THREE = (Message(b"search", text) for text in (b"one", b"two", b"three"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clicks.jsonl"


def test_records_are_appended_as_lines(path: Path) -> None:
    path.write_text("zero\n")
    writer = FileWriter(path)
    assert writer.write([ONE, TWO]) == Written([], 0)
    assert writer.write([THREE]) == Written([], 0)
    writer.close()
    assert path.read_text() == "zero\none\ntwo\nthree\n"


def test_an_incomplete_last_line_is_ended(path: Path) -> None:
    path.write_text("zero")
    writer = FileWriter(path)
    assert writer.write([ONE]) == Written([], 0)
    writer.close()
    assert path.read_text() == "zero\none\n"


@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.parametrize(
    ("room", "again"), [(0, [ONE, TWO]), (2, [ONE, TWO]), (4, [TWO]), (6, [TWO]), (8, [])]
)
def test_records_cut_off_by_a_full_disk_are_written_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, torn: bool, room: int, again: list[Message]
) -> None:
    path.write_text("zero" if torn else "")
    writer = FileWriter(path)
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, text: write(file, text[: room + torn]))
        left, _ = writer.write([ONE, TWO])
    assert list(left) == again
    writer.write(left)
    writer.close()
    lines = path.read_text().splitlines()
    assert [line for line in lines if line in {"one", "two"}] == ["one", "two"]


def test_a_failed_write_writes_nothing(path: Path) -> None:
    writer = FileWriter(path)
    writer.close()
    with pytest.raises(OSError, match="descriptor"):
        writer.write([ONE])


def test_a_file_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "clicks.jsonl"
    with pytest.raises(ClientError) as refused:
        FileWriter(path)
    assert str(refused.value) == (
        f"the file {path} cannot be written to: No such file or directory."
    )


def test_a_line_that_another_process_is_writing_is_not_torn(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(b'{"half')

    def other(_seconds: float) -> None:
        with path.open("ab") as file:
            file.write(b'": 1}\n')

    monkeypatch.setattr("streamduel.client.writers.time.sleep", other)
    writer = FileWriter(path)
    writer.write([Message(b"search", b"{}")])
    writer.close()
    assert path.read_bytes() == b'{"half": 1}\n{}\n'


def test_a_program_that_ends_writes_its_buffer(path: Path) -> None:
    program = (
        "import sys\n"
        "from streamduel.client import EventLog\n"
        "log = EventLog.to_file(sys.argv[1])\n"
        "for number in range(1000):\n"
        "    log.click('search', f'i-{number}', rank=0)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, timeout=PATIENCE)
    assert path.read_bytes().count(b"\n") == 1000
