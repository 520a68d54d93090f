"""Publishers: the changes of views for people and for other systems (P3 2.3)."""
