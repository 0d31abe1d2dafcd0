"""The `load` component; see README.md."""
