"""A `/metrics` page as far as it matters which series are on it. Pure: text in, names and labels out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from aftershock.errors import InputError

Labels = Mapping[str, str]

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*'
_TYPE = re.compile(rf"#\s*TYPE\s+({_NAME})\s+(\w+)")
_VALUE = r"[+-]?(?:[0-9.]+(?:[eE][+-]?[0-9]+)?|Inf|NaN)"
_SAMPLE = re.compile(rf"({_NAME})\s*(?:\{{((?:{_LABEL},?)*)\}})?\s+{_VALUE}(?:\s|$)")
_LABELS = re.compile(_LABEL)
_PARTS = ("_bucket", "_sum", "_count")
"""What the samples of a histogram and of a summary are called behind its name."""


@dataclass(frozen=True)
class Page:
    """What a server exposes."""

    declared: frozenset[str]
    """Names that have a TYPE line: they are there even where nothing was counted yet."""
    samples: Mapping[str, tuple[Labels, ...]]
    """Names of samples -> the labels of each of their series."""

    def exposes(self, name: str) -> bool:
        """Whether there is a metric `name`, or a histogram or summary that has a part of this name."""
        return name in self.samples or any(
            name.removesuffix(part) in self.declared for part in ("", *_PARTS) if name.endswith(part)
        )

    def exposes_any(self, prefix: str) -> bool:
        """Whether the name of any metric begins with `prefix`."""
        return any(name.startswith(prefix) for name in (*self.declared, *self.samples))

    def labelled(self, name: str, labels: Labels) -> bool:
        """Whether a series `name` has all of `labels`."""
        return any(labels.items() <= series.items() for series in self.samples.get(name, ()))


def read_page(text: str, source: str) -> Page:
    """The page in `text`. Lines that are no lines of Prometheus' text format are left out: servers have written such.

    Raises InputError, which names `source`, if there is no line that is one.
    """
    declared: set[str] = set()
    samples: dict[str, list[Labels]] = {}
    for line in text.splitlines():
        if kind := _TYPE.match(line):
            declared.add(kind[1])
        elif sample := _SAMPLE.match(line):
            samples.setdefault(sample[1], []).append(dict(_LABELS.findall(sample[2] or "")))
    if not declared and not samples:
        raise InputError(f"{source}: is no page of metrics in Prometheus' text format; give a server's /metrics")
    return Page(frozenset(declared), {name: tuple(series) for name, series in samples.items()})
