"""Prometheus -> pandas: what every objective was in every phase, and the time line of the run."""
