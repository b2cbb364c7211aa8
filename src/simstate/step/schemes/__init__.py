"""Runge-Kutta schemes as data: tableaus and tolerances."""
