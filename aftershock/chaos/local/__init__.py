"""The local backend: does to processes of the embedded stack what Litmus does to pods."""
