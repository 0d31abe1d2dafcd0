"""The `gate` component; see README.md."""
