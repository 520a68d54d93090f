"""The pipeline file, its checks, and the runner that needs nothing but this process."""
