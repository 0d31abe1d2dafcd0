"""Any ChaosEngine, read for what Litmus would make of it: every hazard by file and line, and the safe ones mended."""
