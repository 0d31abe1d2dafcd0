"""The `judge` component; see README.md."""
