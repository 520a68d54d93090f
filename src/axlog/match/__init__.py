"""Matching: what views want of messages, as generated code."""
