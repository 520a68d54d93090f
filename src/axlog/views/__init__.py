"""Views: rows kept exact by maintainers, and the changes they emit."""
