"""Counting: rows with derivation counts, kept by delta joins (P3 3.1 and 4; P4 4 is its Boolean
case).
"""
