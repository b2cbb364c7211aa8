"""Draws the figure of identify.md: a planted cartpole, its log, model and fit."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
from matplotlib import pyplot as plt

sys.path.insert(0, str(Path(__file__).parents[1]))
from figures import STYLE, save
from tests.study.planted_robots import cartpole

from simstate.study import identify
from simstate.study.identification.fit_report import draw_curves


def main() -> None:
    """Draw it."""
    matplotlib.use("svg")
    case = cartpole(0)
    with plt.rc_context(STYLE):
        save(draw_curves(identify(case.scene, case.log, case.free)), "identify")


if __name__ == "__main__":
    main()
