"""Steppers, what acts on the worlds, and what happens on the way."""
