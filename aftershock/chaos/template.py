"""Fault templates: one file a fault, found by its name, with everything there is to say about the fault in its header.

A template is a ChaosEngine with holes. It holds no logic: only the names of values, each the whole of one YAML scalar.
So there is no branch in which a tunable could get lost, and what is rendered can be compared with what was meant.
`litmus_templates/README.md` says how to write one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any, Literal

import yaml
from jinja2 import StrictUndefined, TemplateSyntaxError, nodes
from jinja2.sandbox import SandboxedEnvironment
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from aftershock.chaos.engine import LOADER
from aftershock.chaos.parameters import Parameter, closest, shorten
from aftershock.errors import TemplateError
from aftershock.files import data_folder

SUFFIX = ".yaml.j2"

FRAME = (
    "engine_name",
    "run_id",
    "chaos_namespace",
    "namespace",
    "label",
    "kind",
    "service_account",
    "status_check_timeout",
)
"""What every template is given besides its own parameters; lower case, so that they cannot be mistaken for tunables."""

TARGET = ("namespace", "label", "kind")
"""What of the frame names pods. Faults of nodes have no place for it: they name a node."""

STATUS_CHECK_TIMEOUT = "STATUS_CHECK_TIMEOUT"
"""The one parameter that Litmus reads from the engine's spec, not from the environment: status_check_timeout."""

DURATION = "TOTAL_CHAOS_DURATION"

WIDTH = 110
"""Columns of the descriptions; wider text is folded."""

_COMMON = (DURATION, "RAMP_TIME", STATUS_CHECK_TIMEOUT)
_LONGEST_FAULT_S = 86_400
_HEADER = re.compile(r"\A\{#---\n(.*?)\n---#\}\n", re.DOTALL)
_NO_JSON_BUT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON takes as they are and YAML does not, or reads as the end of a line."""


class Rule(BaseModel):
    """One rule of the role that the fault's service account needs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    api_groups: tuple[str, ...] = Field(alias="apiGroups")
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


class FaultTemplate(BaseModel):
    """A fault: the header of its template, and the source of the template. Frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=40)
    summary: str = Field(min_length=10, description="What it does, in one line")
    layer: Literal["workload", "resource", "storage", "network", "application", "node"]
    stage: Literal["warm-up", "steady-state", "long-tail"] = Field(description="Where in its life the service is hit")
    scope: Literal["Namespaced", "Cluster"]
    tells: str = Field(min_length=10, description="What the run tells about an inference service")
    local: str = Field(min_length=10, description="What the local backend really does")
    parameters: dict[str, Parameter]
    rbac: tuple[Rule, ...] = Field(min_length=1)
    source: str

    @property
    def hits_nodes(self) -> bool:
        """It hits nodes, not pods."""
        return self.layer == "node"

    @property
    def service_account(self) -> str:
        """The one that `deploy/` makes for faults of its layer."""
        return "aftershock-node-chaos" if self.hits_nodes else "aftershock-pod-chaos"


def list_faults(folder: Path | None = None) -> list[FaultTemplate]:
    """Every fault there is a template for, by name. Raises TemplateError if one of them is broken."""
    return [_read(path) for path in _files(folder).values()]


def load_fault(name: str, folder: Path | None = None) -> FaultTemplate:
    """The fault called `name`. Raises TemplateError, naming those known, if there is none."""
    files = _files(folder)
    if name not in files:
        raise TemplateError(f"unknown fault {shorten(name)}{closest(name, files)}")
    return _read(files[name])


def list_text() -> str:
    """The catalogue: one line a fault with its name, layer, stage and summary."""
    rows = [("FAULT", "LAYER", "STAGE", "WHAT IT DOES")]
    rows += [(fault.name, fault.layer, fault.stage, fault.summary) for fault in list_faults()]
    return "\n".join(_table(rows))


def describe(fault: FaultTemplate) -> str:
    """All there is to know about a fault before it is let loose: the header of its template, for people."""
    sections = [
        f"{fault.name}: {fault.summary}",
        f"Layer: {fault.layer}. Stage: {fault.stage}. Scope: {fault.scope}.",
        f"What it tells about an inference service\n{_paragraph(fault.tells)}",
        f"What the local backend does\n{_paragraph(fault.local)}",
        f"Parameters (aftershock render {fault.name} -p NAME=VALUE)\n{_parameters(fault)}",
        f"What its service account may do in a cluster\n{_rules(fault.rbac)}",
    ]
    return "\n\n".join(sections)


def environment() -> SandboxedEnvironment:
    """Jinja as templates get it. Values are quoted on their way out, so no template can forget to."""
    return SandboxedEnvironment(
        undefined=StrictUndefined,
        autoescape=False,
        finalize=as_scalar,
        trim_blocks=True,
        keep_trailing_newline=True,
    )


def as_scalar(value: object) -> str:
    """`value` as one YAML scalar, whatever is in it. A JSON string is one, but for a few characters."""
    if isinstance(value, int):
        return json.dumps(value)
    if isinstance(value, str):
        return _NO_JSON_BUT_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))
    raise TemplateError(
        f"a template was given {type(value).__name__} {shorten(str(value))}; only text and integers fit"
    )


def _files(folder: Path | None) -> dict[str, Path]:
    paths = sorted((folder or data_folder("litmus_templates")).glob(f"*{SUFFIX}"))
    return {path.name.removesuffix(SUFFIX): path for path in paths}


def _read(path: Path) -> FaultTemplate:
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TemplateError(f"{path}: cannot be read ({error})") from error
    match = _HEADER.match(source)
    if not match:
        raise TemplateError(f"{path}:1: must start with a header between {{#--- and ---#}}, each on a line of its own")
    header = _header(path, match[1])
    try:
        template = FaultTemplate.model_validate({**header, "source": source})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise TemplateError(f"{path}: {where}: {first['msg'].removeprefix('Value error, ')}") from error
    _check(path, template)
    return template


def _header(path: Path, text: str) -> dict[str, Any]:
    try:
        header = yaml.load(text, Loader=LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 2}" if mark else ""
        raise TemplateError(f"{path}{line}: header is not YAML ({getattr(error, 'problem', error)})") from error
    if not isinstance(header, dict):
        raise TemplateError(f"{path}:2: header must be a mapping")
    return header


def _check(path: Path, template: FaultTemplate) -> None:
    """What holds between the parts of a template, and is worth knowing before a user chooses it."""
    if template.name != path.name.removesuffix(SUFFIX):
        raise TemplateError(f"{path}: name is {template.name!r}, must be that of the file")
    for name in _COMMON:
        if name not in template.parameters:
            raise TemplateError(f"{path}: parameters: {name} is missing; every fault has it")
    if (template.parameters[DURATION].maximum or 0) > _LONGEST_FAULT_S:
        raise TemplateError(f"{path}: {DURATION}: maximum must be at most {_LONGEST_FAULT_S} s; faults are finite")
    for name, parameter in template.parameters.items():
        for other in (parameter.at_most, parameter.instead_of):
            if other and other not in template.parameters:
                raise TemplateError(f"{path}: {name} refers to {other}, which is no parameter")
    names = _names(path, template.source)
    expected = {*FRAME, *template.parameters} - {STATUS_CHECK_TIMEOUT}
    if template.hits_nodes:
        expected -= {*TARGET}
    for name in sorted(names ^ expected):
        what = "is not placed in the template" if name in expected else "is neither a parameter nor given to templates"
        raise TemplateError(f"{path}: {name} {what}")


def _names(path: Path, source: str) -> set[str]:
    """The names of the values in a template. Raises TemplateError if it holds anything but text and such names."""
    try:
        tree = environment().parse(source)
    except TemplateSyntaxError as error:
        raise TemplateError(f"{path}:{error.lineno}: {error.message}") from error
    names: set[str] = set()
    for output in tree.body:
        for node in output.nodes if isinstance(output, nodes.Output) else [output]:
            if isinstance(node, nodes.Name):
                names.add(node.name)
            elif not isinstance(node, nodes.TemplateData):
                raise TemplateError(
                    f"{path}:{node.lineno}: a template holds text and {{{{ NAME }}}} only, not {type(node).__name__}"
                )
    return names


def _parameters(fault: FaultTemplate) -> str:
    rows = [("NAME", "TYPE", "DEFAULT", "UNIT", "ALLOWED")]
    for name, parameter in fault.parameters.items():
        default = parameter.default or ("required" if parameter.required else "-")
        rows.append((name, parameter.type, default, parameter.unit or "-", parameter.bounds()))
    head, *lines = _table(rows, indent=2)
    out = [head]
    for line, parameter in zip(lines, fault.parameters.values(), strict=True):
        out += [line, _paragraph(parameter.help, indent=6)]
    return "\n".join(out)


def _rules(rules: Sequence[Rule]) -> str:
    rows = []
    for rule in rules:
        groups = ", ".join(group or "core" for group in rule.api_groups)
        rows.append((groups, ", ".join(rule.resources), ", ".join(rule.verbs)))
    return "\n".join(_table(rows, indent=2))


def _table(rows: Sequence[tuple[str, ...]], indent: int = 0) -> list[str]:
    """Rows with their columns aligned; the last one is folded under itself."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)][:-1]
    margin = indent + sum(widths) + 2 * len(widths)
    lines = []
    for *cells, last in rows:
        start = " " * indent + "".join(f"{cell:<{width}}  " for cell, width in zip(cells, widths, strict=True))
        lines.append(_folded(last, start, " " * margin))
    return lines


def _paragraph(text: str, indent: int = 2) -> str:
    margin = " " * indent
    return _folded(" ".join(text.split()), margin, margin)


def _folded(text: str, first: str, rest: str) -> str:
    """Folded between words; the name of a fault is one."""
    return fill(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
