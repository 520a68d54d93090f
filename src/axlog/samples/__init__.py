"""Sample documents and messages, for `axlog generate` and `axlog demo`."""
