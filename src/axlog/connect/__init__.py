"""From outside systems to streams, and from views to outside systems."""
