"""The litmus backend and the command on a live cluster."""
