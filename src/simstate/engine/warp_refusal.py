"""Remedies for a model that MuJoCo Warp rejects."""

from __future__ import annotations

from simstate.base.errors import ModelError

_OPTIONS = {
    "mjSOL_": "'solver': 'Newton'",
    "mjINT_": "'integrator': 'implicitfast'",
    "mjCONE_": "'cone': 'pyramidal'",
    "mjDSBL_": "'disableflags': …",
    "mjENBL_": "'enableflags': …",
    "Dense ": "'jacobian': 'sparse'",
    "noslip ": "'noslip_iterations': 0",
}
"""Starts of its messages on physics options, and the entries of SceneCfg.options."""


def refusal(error: Exception) -> ModelError:
    """The error for a model that MuJoCo Warp refuses, with the way round."""
    text = str(error).rstrip(".")
    remedy = "use engine='native', which takes all of MuJoCo"
    for start, option in _OPTIONS.items():
        if text.startswith(start):
            remedy = (
                f"say otherwise in the scene, SceneCfg(options={{{option}}}), or use "
                "engine='native'"
            )
    return ModelError(
        f"MuJoCo Warp does not take this model: {text}. Remedy: {remedy}.",
        name="warp",
    )
