"""The litmus backend: has a cluster's Litmus act out a ChaosEngine, and says what really came of it."""
