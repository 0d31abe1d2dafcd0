"""The `render` component; see README.md."""
