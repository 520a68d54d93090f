"""The pipeline file: its model, its checks and its schema."""
