"""The SLO documents that ship with aftershock, and how a name becomes a text. Reads `slo_specs`, writes nothing.

    slo_specs/chat.yaml                      what users of a chat see, from what the load generator counts
    slo_specs/servers/objectives/chat.yaml   what a server should tell meanwhile: SLOs that refer to indicators
    slo_specs/servers/vllm.yaml              how that is asked of a vLLM: the indicators

`chat` is the first, `chat-vllm` all three in one text. An objective for which a server has no indicator is left out.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from aftershock.errors import SpecError
from aftershock.files import data_folder

TEXT_SOURCE = "slo"
"""What errors call a text that came from no file."""

_SEPARATOR = re.compile(r"^---\s*\n", re.MULTILINE)
_HEAD = re.compile(r"\A(?:#.*\n)+")


def known_specs() -> list[str]:
    """Names of the documents that stand for themselves."""
    return _names(_folder())


def known_uses() -> list[str]:
    """Those of them that can be joined with a server."""
    return _names(_folder() / "servers" / "objectives")


def known_servers() -> list[str]:
    """The servers that they can be joined with."""
    return _names(_folder() / "servers")


def known_text() -> str:
    """All names, for a message."""
    return f"{', '.join(known_specs())}, and joined with a server, as chat-vllm (aftershock slos lists them)"


def list_text() -> str:
    """The catalogue: one line a document, and with which servers it can be joined."""
    names = known_specs()
    width = max(map(len, names))
    lines = [f"{name:{width}}  {_summary(name)}" for name in names]
    uses, servers = ", ".join(known_uses()), ", ".join(known_servers())
    return "\n".join(
        [*lines, "", f"With the server's own view beside it, as chat-vllm: {uses}", f"joined with one of: {servers}"]
    )


def locate(ref: str) -> tuple[str, str]:
    """Text and source of `ref`: a name, a file, or the YAML text itself. Raises SpecError."""
    if "\n" in ref and "apiVersion" in ref:
        return ref, TEXT_SOURCE
    if ref in known_specs():
        return _read(_folder() / f"{ref}.yaml", f"slo_specs/{ref}.yaml"), f"slo_specs/{ref}.yaml"
    if joined := _parts(ref):
        use, server = joined
        return join(use, _read(_folder() / "servers" / f"{server}.yaml", f"slo_specs/servers/{server}.yaml")), ref
    if not ref or "\n" in ref or ("/" not in ref and not ref.endswith((".yaml", ".yml")) and not Path(ref).is_file()):
        raise SpecError(f"{ref!r}: no such SLO spec; known are {known_text()}; or give a YAML file")
    return _read(Path(ref), ref), ref


def join(use: str, indicators: str) -> str:
    """The document `use` with the objectives for its server that `indicators`, a text of SLIs, can measure.

    Raises SpecError for a name that is no use.
    """
    if use not in known_uses():
        raise SpecError(f"{use!r}: cannot be joined with a server; give one of {', '.join(known_uses())}")
    known = {_name(document): document for document in _documents(indicators)}
    text = _read(_folder() / "servers" / "objectives" / f"{use}.yaml", f"slo_specs/servers/objectives/{use}.yaml")
    objectives = {_reference(document): document for document in _documents(text) if _reference(document) in known}
    parts = [_read(_folder() / f"{use}.yaml", f"slo_specs/{use}.yaml"), *objectives.values()]
    return "---\n".join([*parts, *(known[name] for name in objectives)])


def _parts(ref: str) -> tuple[str, str] | None:
    """Use and server of a joined name; None if it is none."""
    for use in known_uses():
        server = ref.removeprefix(f"{use}-")
        if server != ref and server in known_servers():
            return use, server
    return None


def _documents(text: str) -> list[str]:
    """Its documents, without what is said of the file they are in."""
    return [part for part in map(_without_head, _SEPARATOR.split(text)) if part.strip()]


def _without_head(part: str) -> str:
    return _HEAD.sub("", part, count=1)


def _name(document: str) -> str:
    return str(yaml.safe_load(document)["metadata"]["name"])


def _reference(document: str) -> str:
    return str(yaml.safe_load(document)["spec"]["indicatorRef"])


def _summary(name: str) -> str:
    """How its comment begins."""
    head = _read(_folder() / f"{name}.yaml", f"slo_specs/{name}.yaml").partition("apiVersion")[0]
    words = " ".join(head.replace("#", " ").split())
    return re.split(r"[.:,] ", words)[0]


def _folder() -> Path:
    return data_folder("slo_specs")


def _names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.yaml"))


def _read(path: Path, source: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise SpecError(f"{source}: cannot be read ({reason}); give a YAML file or one of {known_text()}") from error
