"""A stand-in for Litmus on a real cluster: replays on live objects what the real one showed in the recordings."""
