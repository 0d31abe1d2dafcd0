"""Every error that leaves the library, as one tree. The command line prints one line of it and exits with its code.

    AftershockError
    ├── InputError                what the user gave is wrong                        exit 2
    │   ├── ExperimentError       a parameter, flag, variable or experiment file
    │   ├── TemplateError         a fault template or one of its parameters
    │   ├── EngineError           a ChaosEngine that cannot be what was meant
    │   ├── SpecError             an SLO document: file, line, path and reason
    │   └── DatasetError          a data set: file, line and field
    ├── GateError                 the verdict is not PASS, and that was to fail       exit 1
    └── InfrastructureError       the surroundings failed, so there is no verdict    exit 4
        ├── StackError            a part of the embedded stack
        ├── TargetError           the inference service cannot be reached at all
        ├── ChaosError            the fault could not be injected, watched or reverted
        ├── PrometheusError       no answer from Prometheus
        ├── StoreError            the object store
        ├── RunDirectoryError     the run directory cannot be written (disk full, no rights)
        └── PipelineError         Kubeflow Pipelines or its local runner

A message says what was wrong, where, and what to do, in one line. Foreign exceptions are mapped at one edge (`from`).
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process tells its caller; scripts and CI jobs rely on these."""

    PASS = 0
    FAIL = 1
    BAD_INPUT = 2
    INCONCLUSIVE = 3
    """Also NO_DATA: nothing was proven either way."""
    INFRASTRUCTURE = 4
    INTERRUPTED = 130
    """Ctrl-C (128 + SIGINT), as shells have it."""
    TERMINATED = 143
    """SIGTERM (128 + 15)."""


class AftershockError(Exception):
    """Root of the tree."""

    exit_code: ExitCode = ExitCode.INFRASTRUCTURE


class InputError(AftershockError):
    """What the user gave is wrong; nothing was started."""

    exit_code = ExitCode.BAD_INPUT


class ExperimentError(InputError):
    """A parameter of the experiment: its name, its value and what is allowed."""


class TemplateError(InputError):
    """A fault template, or a parameter of one."""


class EngineError(InputError):
    """A ChaosEngine that cannot do what was meant."""


class SpecError(InputError):
    """An SLO document; the message starts with `file:line: path:`."""


class DatasetError(InputError):
    """A data set; the message starts with `file:line: field:`."""


class GateError(AftershockError):
    """The run worked, its verdict is not PASS, and the user asked for that to fail the pipeline."""

    exit_code = ExitCode.FAIL


class InfrastructureError(AftershockError):
    """The surroundings failed; there is no verdict, and none is made up."""


class StackError(InfrastructureError):
    """A part of the embedded stack did not start, or ended."""


class TargetError(InfrastructureError):
    """The inference service does not answer at all."""


class ChaosError(InfrastructureError):
    """The fault could not be injected, watched or reverted. `code` is Litmus' errorCode where there is one."""

    def __init__(self, message: str, code: str = "GENERIC_ERROR") -> None:
        super().__init__(message)
        self.code = code


class PrometheusError(InfrastructureError):
    """Prometheus does not answer, or refuses."""


class StoreError(InfrastructureError):
    """The object store does not answer, or refuses."""


class RunDirectoryError(InfrastructureError):
    """The run directory cannot be written."""


class PipelineError(InfrastructureError):
    """Kubeflow Pipelines, or its local runner, failed for a reason that is none of the above."""
