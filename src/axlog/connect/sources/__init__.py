"""Sources: what brings updates to streams, read by positions that can be read again."""
