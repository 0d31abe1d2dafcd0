"""Faults on the way between the gateway and a replica: kinds, what each one does, and which are active."""
