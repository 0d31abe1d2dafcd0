"""Does an inference service keep its SLO under chaos? The library behind the pipeline and the command line."""

__version__ = "0.1.0"
