"""Compiles every pipeline into the package beside it: `python -m pipelines.compile`."""

from pathlib import Path

from kfp import compiler

from pipelines.slo_chaos.pipeline import slo_chaos

PIPELINES = {"slo_chaos": slo_chaos}


def main() -> None:
    """Write each `pipelines/<name>/pipeline.yaml`."""
    for name, pipeline in PIPELINES.items():
        compiler.Compiler().compile(pipeline, str(Path(__file__).parent / name / "pipeline.yaml"))


if __name__ == "__main__":
    main()
