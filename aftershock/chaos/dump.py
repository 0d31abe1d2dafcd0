"""A Kubernetes document as YAML that everybody reads alike: Python, Go and whoever opens the file."""

from __future__ import annotations

import re
from typing import Any

import yaml

from aftershock.chaos.engine import LOADER
from aftershock.errors import EngineError

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9]+([._/-][A-Za-z0-9]+)*")
_WORDS = frozenset({"yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
"""What some reader takes for no text."""


class _Dumper(yaml.SafeDumper):
    """Text in quotes unless it is a word; no anchors, for a reader should not have to look for a value elsewhere."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if plain else '"')


_Dumper.add_representer(str, _text)


def to_yaml(document: Any, source: str) -> str:
    """`document` as YAML text that has been read back. Raises EngineError where it would be read as anything else."""
    try:
        text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000_000)
        same = yaml.load(text, Loader=LOADER) == document
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise EngineError(f"{source}: cannot be written as YAML ({str(error).partition(chr(10))[0]})") from error
    if not same:
        raise EngineError(f"{source}: holds characters that YAML readers do not agree on; give plain text")
    return str(text)
