"""The `collect` component; see README.md."""
