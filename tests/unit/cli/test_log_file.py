"""Log files of services stay below a size, and a full disk costs no service."""

from __future__ import annotations

from pathlib import Path

from playhall.cli.log_file import LogFile


def test_lines_are_appended_over_runs(tmp_path: Path) -> None:
    for line in (b"first\n", b"second\n"):
        log = LogFile(tmp_path / "data.log")
        assert log.write(line) is None
        log.close()
    assert (tmp_path / "data.log").read_bytes() == b"first\nsecond\n"


def test_a_full_file_becomes_the_one_before(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "data.log", max_bytes=40)
    for number in range(100):
        log.write(f"line {number:03}\n".encode())
    log.close()
    assert (tmp_path / "data.log").read_text().splitlines() == [f"line {n:03}" for n in range(96, 100)]
    assert (tmp_path / "data.log.1").read_text().splitlines() == [f"line {n:03}" for n in range(92, 96)]
    assert len(list(tmp_path.iterdir())) == 2


def test_what_an_earlier_run_left_counts(tmp_path: Path) -> None:
    (tmp_path / "data.log").write_bytes(b"x" * 39)
    log = LogFile(tmp_path / "data.log", max_bytes=40)
    log.write(b"one\n")
    log.write(b"two\n")
    log.close()
    assert (tmp_path / "data.log").read_bytes() == b"two\n"


def test_a_disk_that_takes_nothing_is_told_of(tmp_path: Path) -> None:
    full = tmp_path / "full.log"
    full.symlink_to("/dev/full")
    log = LogFile(full)
    assert isinstance(log.write(b"line\n"), OSError)
    assert isinstance(LogFile(tmp_path / "no/such.log").write(b"line\n"), OSError)
    log.close()
