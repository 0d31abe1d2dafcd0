"""What the published Litmus faults read from their environment: `catalogue.json`, in which its sources are named."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Kind(_Part):
    """What the value of a tunable has to be. Tunables without one may be any text."""

    kind: Literal["integer", "range", "choice", "choices", "list", "object", "shape", "addresses"]
    """integer: anything else is read as 0. range: a number, or two as a-b. choices: several with commas. list, object:
    JSON. shape: what its pattern says. addresses: IP addresses and blocks of them."""
    unit: str = ""
    minimum: int | None = None
    maximum: int | None = None
    decimal: bool = False
    """It goes to tc or stress-ng as it is, so a fraction is kept."""
    choices: tuple[str, ...] = ()
    any_case: bool = False
    """Capitals do not count."""
    pattern: str = ""
    example: str = ""


class Fault(_Part):
    """One fault of the catalogue."""

    scope: Literal["Namespaced", "Cluster"]
    helper: bool = Field(description="It works through privileged pods beside the target, which have to revert it")
    tunables: Mapping[str, str]
    unread: tuple[str, ...] = ()
    unreleased: tuple[str, ...] = ()

    @property
    def is_for_nodes(self) -> bool:
        """It hits a node, not pods: it has tunables that name one."""
        return bool(self.node_tunables)

    @property
    def node_tunables(self) -> tuple[str, ...]:
        """The tunables by which its node can be named."""
        return tuple(name for name in ("TARGET_NODES", "TARGET_NODE") if name in self.tunables)


class Catalogue(_Part):
    """All of it."""

    about: str
    sources: tuple[str, ...]
    reserved: frozenset[str] = Field(description="Set by the runner; another value breaks the fault's own book-keeping")
    forced: frozenset[str] = Field(description="Taken from the engine's spec, whatever the environment says")
    common: frozenset[str] = Field(description="Read by every fault")
    renamed: Mapping[str, str]
    removed: frozenset[str] = Field(description="Read by Litmus 2, not by Litmus 3")
    kinds: Mapping[str, Kind]
    faults: Mapping[str, Fault]


@cache
def catalogue() -> Catalogue:
    """The catalogue that ships with aftershock."""
    text = (files("aftershock") / "chaos" / "lint" / "catalogue.json").read_text(encoding="utf-8")
    return Catalogue.model_validate(json.loads(text))


def closest(name: str, known: Iterable[str], cutoff: float = 0.75) -> str | None:
    """What was probably meant by `name`, whatever its capitals; None if nothing is near."""
    by_capitals = {each.upper(): each for each in sorted(known)}
    close = difflib.get_close_matches(name.upper()[:100], by_capitals, n=1, cutoff=cutoff)
    return by_capitals[close[0]] if close else None
