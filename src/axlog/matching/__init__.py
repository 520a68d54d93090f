"""Matching: a program evaluated on trees and on messages, interpreted or as generated code."""
