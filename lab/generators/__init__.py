"""Random documents, patterns and updates."""
