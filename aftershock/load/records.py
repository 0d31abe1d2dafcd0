"""One row a request, as Parquet: written in parts while the load runs, in one file when it has ended.

Parts appear whole or not at all (written beside, then renamed), so whatever a killed process had flushed is readable.
Memory holds the rows of one part. The file keeps the order in which requests finished; `read_records` sorts by `seq`.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from aftershock.errors import RunDirectoryError
from aftershock.files import atomic_path
from aftershock.load.columns import to_arrow

if TYPE_CHECKING:
    import pandas

_INSTANT = pa.timestamp("us", "UTC")

SCHEMA = pa.schema(
    [
        pa.field("phase", pa.string(), nullable=False),
        pa.field("seq", pa.int32(), nullable=False),
        pa.field("item_id", pa.string(), nullable=False),
        pa.field("scheduled_at", _INSTANT, nullable=False),
        pa.field("sent_at", _INSTANT, nullable=False),
        pa.field("first_token_at", _INSTANT),
        pa.field("finished_at", _INSTANT, nullable=False),
        pa.field("latency_s", pa.float64(), nullable=False),
        pa.field("ttft_s", pa.float64()),
        pa.field("send_lag_s", pa.float64(), nullable=False),
        pa.field("inter_token_s", pa.list_(pa.float32()), nullable=False),
        pa.field("output_tokens", pa.int32(), nullable=False),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("http_status", pa.int32()),
        pa.field("error", pa.string()),
        pa.field("answer", pa.string()),
        pa.field("correct", pa.bool_()),
    ]
)

PART_S = 1.5
"""At most what a killed process loses."""

ROW_GROUP = 20_000
"""Rows that a compaction holds at a time."""


class Record(NamedTuple):
    """One request; field for field a row of SCHEMA. Instants are microseconds since the epoch."""

    phase: str
    seq: int
    item_id: str
    scheduled_at: int
    sent_at: int
    first_token_at: int | None
    finished_at: int
    latency_s: float
    ttft_s: float | None
    send_lag_s: float
    inter_token_s: list[float]
    output_tokens: int
    outcome: str
    http_status: int | None
    error: str | None
    answer: str | None
    correct: bool | None


def parts_folder(path: Path) -> Path:
    """Where the parts of the records file `path` lie while it is being made."""
    return path.with_name(f"{path.name}.parts")


class RecordWriter:
    """Collects rows and writes them as parts, in a thread, so that the load does not wait for the disk."""

    def __init__(self, path: Path) -> None:
        """For the records file `path`.

        A phase that is tried again is given the same path, for a pod cannot choose another: what an attempt that died
        left in the folder of parts is moved aside, to `<folder>.1` or the next number that is free, never removed.
        Only a finished file (an empty one is none) is another load's. Raises RunDirectoryError where there is one, or
        where the folder cannot be made.
        """
        self.folder = parts_folder(path)
        self.earlier: Path | None = None
        """Where the parts of an earlier attempt are now."""
        try:
            if path.exists() and path.stat().st_size:
                raise RunDirectoryError(f"{path}: another load's records are there; choose another folder with --runs")
            if any(_parts(self.folder)):
                self.earlier = _move_aside(self.folder)
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(self.folder, error) from error
        self._rows: list[Record] = []
        self._next_part = 0

    def append(self, record: Record) -> None:
        """Keep one row for the next part."""
        self._rows.append(record)

    async def keep_flushing(self, done: asyncio.Event) -> None:
        """Write a part every PART_S until `done` is set, and the last one then. Raises RunDirectoryError."""
        last = False
        while not last:
            with suppress(TimeoutError):
                await asyncio.wait_for(done.wait(), PART_S)
            last = done.is_set()  # read before the rows are taken: what comes while they are written is not the last
            await asyncio.to_thread(self._write, *self._take())

    def flush(self) -> None:
        """Write what was appended since the last part, at once. Raises RunDirectoryError; earlier parts stay."""
        self._write(*self._take())

    def _take(self) -> tuple[int, list[Record]]:
        """The next part's number and rows. Both are taken here and not in the thread: no two parts can meet."""
        rows, self._rows = self._rows, []
        self._next_part += 1
        return self._next_part, rows

    def _write(self, number: int, rows: list[Record]) -> None:
        if not rows:
            return
        columns = [to_arrow(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
        try:
            with atomic_path(self.folder / f"{number:06}.parquet") as temporary:
                pq.write_table(pa.Table.from_arrays(columns, schema=SCHEMA), temporary)
        except RunDirectoryError:
            self._rows[:0] = rows  # space may be made until the last flush
            raise


def compact(folder: Path, target: Path) -> None:
    """Make one file of a folder of parts, then remove the folder. Also for what a killed process left.

    Raises RunDirectoryError; then the parts are untouched.
    """
    with atomic_path(target) as temporary, pq.ParquetWriter(temporary, SCHEMA) as writer:
        batch: list[pa.Table] = []
        for part in _parts(folder):
            batch.append(pq.ParquetFile(part).read())
            if sum(table.num_rows for table in batch) >= ROW_GROUP:
                writer.write_table(pa.concat_tables(batch))
                batch.clear()
        writer.write_table(pa.concat_tables(batch) if batch else SCHEMA.empty_table())
    try:
        # Under another name first: a folder half removed must not be taken for a whole one.
        finished = folder.with_name(f".{folder.name}.compacted")
        shutil.rmtree(finished, ignore_errors=True)
        shutil.rmtree(folder.rename(finished))
    except OSError as error:
        raise _unwritable(folder, error) from error


def read_records(path: Path, columns: Sequence[str] | None = None) -> pandas.DataFrame:
    """Records by `seq`: of a finished load (its file) or of one that is running or was killed (its parts).

    `path` is the file's, there or not, or the folder of parts itself. With `columns` only these are read, and given in
    their order: answers and token gaps are most of a file. Raises RunDirectoryError where there are no records, and
    ValueError for a column that SCHEMA does not have.
    """
    wanted = SCHEMA.names if columns is None else list(columns)
    if unknown := set(wanted) - set(SCHEMA.names):
        raise ValueError(f"records have no column {', '.join(sorted(unknown))}")
    folder = path if path.is_dir() else parts_folder(path)
    if path.is_file():
        files = [path]
    elif folder.is_dir():
        files = [*_parts(folder)]
    else:
        raise RunDirectoryError(f"{path}: no records there; was the phase run?")
    read = [*dict.fromkeys([*wanted, "seq"])]
    tables = [pq.ParquetFile(file).read(read) for file in files] or [SCHEMA.empty_table().select(read)]
    frame: pandas.DataFrame = pa.concat_tables(tables).sort_by("seq").select(wanted).to_pandas()
    return frame


def _move_aside(folder: Path) -> Path:
    """Rename `folder` to the first of `<folder>.1`, `<folder>.2`, ... that is free."""
    free = (folder.with_name(f"{folder.name}.{number}") for number in count(1))
    return folder.rename(next(path for path in free if not path.exists()))


def _parts(folder: Path) -> Iterator[Path]:
    return iter(sorted(folder.glob("[0-9]*.parquet")))


def _unwritable(path: Path, error: OSError) -> RunDirectoryError:
    return RunDirectoryError(
        f"cannot write {path}: {error.strerror or error}; free space or choose another folder with --runs"
    )
