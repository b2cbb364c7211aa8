"""Options that several commands have, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro

from simstate.base.errors import InvalidInputError
from simstate.base.samples import check_figure_file

PLAIN_OPTIONS = (tyro.conf.DisallowNone, tyro.conf.FlagCreatePairsOff)
"""Options without a value "None", and flags without their opposite."""
Model = Annotated[
    str,
    tyro.conf.Positional,
    tyro.conf.arg(
        metavar="MODEL",
        help="An MJCF or URDF file, or the name of a model: one that ships, or one of "
        "MuJoCo Menagerie or robot_descriptions where these are installed.",
    ),
]
Engine = Annotated[
    Literal["native", "warp"],
    tyro.conf.arg(help="CPU threads in float64, or MuJoCo Warp in float32."),
]
Device = Annotated[
    str, tyro.conf.arg(help='Where the tensors are; "cuda" needs --engine warp.')
]
Seconds = Annotated[float, tyro.conf.arg(metavar="SECONDS", help="Simulated time [s].")]
Seed = Annotated[int, tyro.conf.arg(help="Seed of all that is random.")]
Json = Annotated[bool, tyro.conf.arg(help="Print JSON instead of tables.")]
Debug = Annotated[bool, tyro.conf.arg(help="Show the traceback of an error.")]


def check_writable(option: str, path: Path | None) -> None:
    """Raise before the work, not after it, if a file cannot be put there."""
    if path is None:
        return
    if path.is_dir():
        raise InvalidInputError(f"{option} {str(path)!r} is a folder: name a file.")
    if not path.absolute().parent.is_dir():
        raise InvalidInputError(
            f"{option} {str(path)!r}: there is no folder {str(path.parent)!r}."
        )


def check_plot(option: str, path: Path | None) -> None:
    """Raise before the work, not after it, if no plot can be drawn there."""
    check_writable(option, path)
    if path is not None:
        check_figure_file(path)
