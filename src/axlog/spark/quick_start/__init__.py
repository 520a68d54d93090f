"""What makes a start of Spark fast, and nothing else of Spark needs: for tests, demos, short runs.

    classes.py          an archive of Java's classes, and the class path that it needs
    worker_preload.py   fork Spark's Python processes from a preloaded one
    worker_launcher.py  the program that Spark starts instead of Python

Only `session(quick=True)` uses it. Without it Spark runs as it was installed.
"""
