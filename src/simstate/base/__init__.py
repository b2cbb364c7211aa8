"""Foundations of the other packages: errors, checked values, ids, files."""
