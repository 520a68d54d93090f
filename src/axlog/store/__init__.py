"""Bytes on disk: the key-value store, the log, the snapshots."""
