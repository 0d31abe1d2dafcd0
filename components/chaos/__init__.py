"""The `chaos` component; see README.md."""
