"""Where the files of one cluster lie, and what is named after its directory."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from aftershock.errors import InputError
from aftershock.stack.prometheus import cache_folder

REPOSITORY = Path(__file__).parents[3]
LONGEST_DIRECTORY = 70
"""Unix sockets lie in the directory, and the kernel allows their paths 107 bytes."""


def cluster_cache() -> Path:
    """Where the programs of all clusters are kept, and the cluster of `make cluster`."""
    return cache_folder() / "cluster"


def default_directory() -> Path:
    """The directory of the cluster that is meant where none is named."""
    return cluster_cache() / "run"


@dataclass(frozen=True)
class Layout:
    """One cluster's directory. All that the cluster writes lies below it; the next start of the cluster empties it."""

    directory: Path

    @classmethod
    def of(cls, directory: Path) -> Layout:
        """Raises InputError where the path is too long for sockets in it."""
        absolute = directory.absolute()
        if len(str(absolute)) > LONGEST_DIRECTORY:
            raise InputError(
                f"--directory {absolute}: {len(str(absolute))} characters, and sockets in it allow "
                f"{LONGEST_DIRECTORY}; choose a shorter one"
            )
        return cls(absolute)

    @property
    def name(self) -> str:
        """Of the network namespace and the cgroup: the same for the same directory, and another for any other."""
        return f"aftershock-{hashlib.sha256(str(self.directory).encode()).hexdigest()[:10]}"

    @property
    def lock(self) -> Path:
        """Held while the cluster starts or stops; beside the directory, because that goes."""
        return self.directory.with_name(f".{self.directory.name}.lock")

    @property
    def state(self) -> Path:
        """What runs."""
        return self.directory / "state.json"

    @property
    def programs(self) -> Path:
        """First on the PATH of everything in the cluster: links to the programs it is to use."""
        return self.directory / "bin"

    @property
    def pki(self) -> Path:
        """Keys, certificates and kubeconfigs."""
        return self.directory / "pki"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.pki / "admin.kubeconfig"

    @property
    def containerd_socket(self) -> Path:
        """Where containerd listens."""
        return self.directory / "containerd.sock"

    def log(self, daemon: str) -> Path:
        """What a daemon writes on standard output and error."""
        return self.directory / "logs" / f"{daemon}.log"
