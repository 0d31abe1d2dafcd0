"""Server-sent events, cut from a byte stream as WHATWG's HTML standard says, at the cost of a few splits.

Bytes stay bytes until an event is whole, so a UTF-8 character may lie across any number of chunks.
"""

from __future__ import annotations

MAX_EVENT_BYTES = 1 << 20
"""No token needs a mebibyte: beyond it the stream is no event stream and memory must not pay for it."""

_BOM = b"\xef\xbb\xbf"


class EventTooLongError(ValueError):
    """More than MAX_EVENT_BYTES without the end of an event."""


class EventStream:
    """Feed it what the socket gave; it returns the data of each event that is now complete."""

    def __init__(self) -> None:
        self._line = b""  # the line that has not ended yet
        self._data: list[bytes] = []  # data lines of the event that has not ended yet
        self._size = 0  # bytes in _data
        self._after_cr = False  # an LF that comes first now belongs to a CR that already ended its line
        self._at_start = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """Data of the events that end in `chunk`, in order. Raises EventTooLongError."""
        if self._after_cr or b"\r" in chunk:
            chunk = self._unify(chunk)
        lines = (self._line + chunk).split(b"\n")
        self._line = lines.pop()
        if self._at_start and (lines or len(self._line) >= len(_BOM)):
            self._drop_bom(lines)
        events = []
        for line in lines:
            if line:
                self._take(line)
            elif self._data:
                events.append(b"\n".join(self._data))
                self._data.clear()
                self._size = 0
        if len(self._line) + self._size > MAX_EVENT_BYTES:
            raise EventTooLongError(f"an event of more than {MAX_EVENT_BYTES} bytes")
        return events

    def _take(self, line: bytes) -> None:
        """One line of an event; comments (":...") and the fields event, id and retry say nothing to us."""
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value[1:] if value[:1] == b" " else value)
            self._size += len(value)

    def _unify(self, chunk: bytes) -> bytes:
        """CR LF and CR end lines as LF does. A CR at the end of a chunk ends its line at once, whatever follows."""
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        if chunk.endswith(b"\r"):
            self._after_cr = True
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _drop_bom(self, lines: list[bytes]) -> None:
        self._at_start = False
        if lines:
            lines[0] = lines[0].removeprefix(_BOM)
        else:
            self._line = self._line.removeprefix(_BOM)
