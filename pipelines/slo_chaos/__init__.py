"""One fault against one service, held against one SLO document."""
