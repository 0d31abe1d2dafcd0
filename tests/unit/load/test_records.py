"""Records survive what can happen to the process that writes them."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aftershock.errors import RunDirectoryError
from aftershock.load.columns import to_arrow
from aftershock.load.records import SCHEMA, Record, RecordWriter, compact, parts_folder, read_records

AT = 1_767_225_600_123_456
INSTANT = datetime(2026, 1, 1, 0, 0, 0, 123_456, tzinfo=UTC)


def record(seq: int, *, ok: bool = True) -> Record:
    return Record(
        phase="chaos",
        seq=seq,
        item_id=f"item-{seq}",
        scheduled_at=AT,
        sent_at=AT + 1,
        first_token_at=AT + 2 if ok else None,
        finished_at=AT + 3,
        latency_s=0.1 + seq,
        ttft_s=0.05 if ok else None,
        send_lag_s=1e-4,
        inter_token_s=[0.5, 0.25] if ok else [],
        output_tokens=3 if ok else 0,
        outcome="ok" if ok else "refused",
        http_status=200 if ok else None,
        error=None if ok else "Connection refused",
        answer="Grüße \N{SNOWMAN}" if ok else None,
        correct=seq % 4 == 0 if ok else None,
    )


def test_what_is_written_is_read_in_schedule_order(tmp_path: Path) -> None:
    path = tmp_path / "records" / "chaos.parquet"
    writer = RecordWriter(path)
    for seq in (2, 0):
        writer.append(record(seq))
    writer.flush()
    writer.append(record(1, ok=False))
    writer.flush()
    for stage in ("parts", "one file"):
        frame = read_records(path)
        assert list(frame["seq"]) == [0, 1, 2], stage
        first, failed = frame.iloc[0], frame.iloc[1]
        assert first["scheduled_at"].to_pydatetime() == INSTANT
        assert str(frame["scheduled_at"].dtype) == "datetime64[us, UTC]"
        assert list(first["inter_token_s"]) == [0.5, 0.25]
        assert (first["answer"], first["correct"], first["http_status"]) == ("Grüße \N{SNOWMAN}", True, 200)
        assert (failed["outcome"], failed["error"]) == ("refused", "Connection refused")
        assert failed[["first_token_at", "ttft_s", "http_status", "answer", "correct"]].isna().all()
        if stage == "parts":
            compact(writer.folder, path)
    assert list(tmp_path.rglob("*")) == [path.parent, path]
    assert pq.read_schema(path).equals(SCHEMA)


def test_no_records_are_an_empty_frame_with_all_columns(tmp_path: Path) -> None:
    path = tmp_path / "baseline.parquet"
    writer = RecordWriter(path)
    writer.flush()
    assert list(read_records(path).columns) == SCHEMA.names
    compact(writer.folder, path)
    assert list(read_records(path).columns) == SCHEMA.names


def test_the_records_of_another_load_are_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "baseline.parquet"
    writer = RecordWriter(path)
    writer.append(record(0))
    writer.flush()
    compact(writer.folder, path)
    with pytest.raises(RunDirectoryError, match="another load's records are there"):
        RecordWriter(path)
    assert len(read_records(path)) == 1
    assert list(tmp_path.iterdir()) == [path]


def test_parts_of_an_attempt_that_died_are_moved_aside(tmp_path: Path) -> None:
    path = tmp_path / "baseline.parquet"
    path.touch()  # an output that is declared, not written
    folders = [parts_folder(path).with_name(f"baseline.parquet.parts.{number}") for number in (1, 2)]
    for attempt in range(3):
        writer = RecordWriter(path)
        assert writer.earlier == (folders[attempt - 1] if attempt else None)
        for seq in range(attempt + 1):
            writer.append(record(seq))
        writer.flush()
    assert [len(read_records(folder)) for folder in folders] == [1, 2]
    compact(writer.folder, path)
    assert len(read_records(path)) == 3


def test_an_attempt_that_wrote_nothing_leaves_nothing_to_move(tmp_path: Path) -> None:
    path = tmp_path / "baseline.parquet"
    RecordWriter(path)
    assert RecordWriter(path).earlier is None
    assert list(tmp_path.iterdir()) == [parts_folder(path)]


def test_some_columns_are_read_in_the_order_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "chaos.parquet"
    writer = RecordWriter(path)
    for seq in (2, 0, 1):
        writer.append(record(seq))
        writer.flush()
    for stage in ("parts", "one file"):
        frame = read_records(path, ["latency_s", "outcome"])
        assert list(frame.columns) == ["latency_s", "outcome"], stage
        assert list(frame["latency_s"]) == [0.1, 1.1, 2.1], stage
        assert list(read_records(path, ["seq"]).columns) == ["seq"], stage
        if stage == "parts":
            compact(writer.folder, path)
    with pytest.raises(ValueError, match="no column latency_ms"):
        read_records(path, ["latency_ms"])
    writer = RecordWriter(tmp_path / "empty.parquet")
    assert list(read_records(tmp_path / "empty.parquet", ["ttft_s"]).columns) == ["ttft_s"]


def test_rows_that_come_while_a_part_is_written_are_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aftershock.load.records.PART_S", 0.01)
    path = tmp_path / "baseline.parquet"
    writer = RecordWriter(path)
    for seq in range(20_000):
        writer.append(record(seq))

    async def load() -> None:
        done = asyncio.Event()
        flushing = asyncio.create_task(writer.keep_flushing(done))
        while not any(writer.folder.iterdir()):  # the first part is being written
            await asyncio.sleep(0)
        writer.append(record(20_000))
        done.set()
        await flushing

    asyncio.run(load())
    assert len(read_records(path)) == 20_001


WRITE_FOREVER = """
import sys
from itertools import count
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_records import record
from aftershock.load.records import RecordWriter
writer = RecordWriter(Path(sys.argv[1]))
for part in count():
    for seq in range(part * 100, part * 100 + 100):
        writer.append(record(seq))
    writer.flush()
    print(part * 100 + 100, flush=True)
"""


def test_what_was_flushed_is_readable_after_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "chaos.parquet"
    command = [sys.executable, "-c", WRITE_FOREVER, str(path), str(Path(__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(5):
            flushed = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        flushed = max([flushed, *map(int, process.stdout.read().split())])
    found = read_records(path)
    assert len(found) >= flushed >= 500
    assert list(found["seq"]) == list(range(len(found)))
    compact(parts_folder(path), path)
    assert len(read_records(path)) == len(found)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_compaction_that_fails_leaves_the_parts(tmp_path: Path) -> None:
    path = tmp_path / "chaos.parquet"
    writer = RecordWriter(path)
    writer.append(record(0))
    writer.flush()
    blocked = tmp_path / "folder"
    blocked.mkdir()
    with pytest.raises(RunDirectoryError, match=f"cannot write {blocked}"):
        compact(writer.folder, blocked)
    assert len(read_records(path)) == 1


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunDirectoryError, match=r"cannot write .*--runs"):
        RecordWriter(tmp_path / "file" / "chaos.parquet")


def test_no_records_at_all(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="no records there"):
        read_records(tmp_path / "chaos.parquet")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, -(2**31), 2**31 - 1], pa.int32()),
        ([None, 1, None, *range(20)], pa.int32()),
        ([0.1, float("inf"), -0.0], pa.float64()),
        ([None, None], pa.float64()),
        ([AT, None], pa.timestamp("us", "UTC")),
        (["", "Grüße", None, "\N{SNOWMAN}" * 3, "\0"], pa.string()),
        ([True, None, False] * 11, pa.bool_()),
        ([[], [0.5], [1.0, 2.0, 3.0], []], pa.list_(pa.float32())),
        ([], pa.string()),
        ([], pa.list_(pa.float32())),
    ],
)
def test_our_arrays_are_those_of_pyarrow(values: list[object], kind: pa.DataType) -> None:
    array = to_arrow(values, kind)
    array.validate(full=True)
    assert array.equals(pa.array(values, kind))


def test_the_load_starts_light() -> None:
    """Each phase is a process of its own; these cost it up to a second and 100 MB, in the middle of a run."""
    script = (
        "import sys, aftershock.load.runner\n"
        "heavy = {'pandas', 'scipy', 'kfp', 'kubernetes', 'prometheus_client', 'jinja2'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_writing_does_not_import_pandas(tmp_path: Path) -> None:
    script = WRITE_FOREVER.replace("for part in count()", "for part in range(2)") + (
        "from aftershock.load.records import compact\n"
        "compact(writer.folder, Path(sys.argv[1]))\n"
        "assert 'pandas' not in sys.modules\n"
    )
    path = tmp_path / "chaos.parquet"
    subprocess.run([sys.executable, "-c", script, path, Path(__file__).parent], check=True, timeout=60)
    assert len(read_records(path)) == 200
