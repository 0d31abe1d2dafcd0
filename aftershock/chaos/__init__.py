"""From an experiment to a ChaosEngine, and from a ChaosEngine to a fault that surely ends."""
