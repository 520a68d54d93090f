"""The laws of axlog, run on random cases."""
