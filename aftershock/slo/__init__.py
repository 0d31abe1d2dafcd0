"""OpenSLO documents -> objectives -> verdicts. No I/O but files it is handed."""
