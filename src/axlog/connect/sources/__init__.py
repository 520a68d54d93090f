"""Sources: they bring updates to streams, read by positions that can be read again."""
