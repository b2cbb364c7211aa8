"""Schemes for stochastic differential equations."""
