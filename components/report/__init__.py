"""The `report` component; see README.md."""
