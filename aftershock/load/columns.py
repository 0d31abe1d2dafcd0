"""Lists of Python values as Arrow arrays, built from their buffers.

`pa.array` does the same, but its first act is to import pandas (0.6 s and 70 MB, only to ask whether a list is a
Series): each phase of a run is a process of its own and would pay for that in the middle of its load.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pyarrow as pa

_TYPE_CODES = {pa.int32(): "i", pa.float64(): "d", pa.float32(): "f", pa.timestamp("us", "UTC"): "q"}


def to_arrow(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An array of `kind`: one of the above, strings, booleans, or lists of any of these. None is null."""
    if pa.types.is_list(kind):
        offsets = to_arrow([*accumulate(map(len, values), initial=0)], pa.int32())
        return pa.ListArray.from_arrays(offsets, to_arrow([*chain.from_iterable(values)], kind.value_type))
    nulls = values.count(None)
    validity = _bits([value is not None for value in values]) if nulls else None
    return pa.Array.from_buffers(kind, len(values), [validity, *_buffers(values, kind)], nulls)


def _buffers(values: Sequence[Any], kind: pa.DataType) -> list[pa.Buffer]:
    """What lies behind the validity of each value; a null has anything, so it has nothing."""
    if pa.types.is_boolean(kind):
        return [_bits([bool(value) for value in values])]
    if pa.types.is_string(kind):
        texts = [(value or "").encode() for value in values]
        return [pa.py_buffer(array("i", accumulate(map(len, texts), initial=0))), pa.py_buffer(b"".join(texts))]
    return [pa.py_buffer(array(_TYPE_CODES[kind], [0 if value is None else value for value in values]))]


def _bits(flags: list[bool]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(np.array(flags, dtype=bool), bitorder="little"))
