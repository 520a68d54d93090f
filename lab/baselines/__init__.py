"""Maintenance algorithms of earlier work, kept to compare with; the product does not use them."""
