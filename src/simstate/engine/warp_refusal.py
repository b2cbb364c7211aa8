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
"""Prefixes of its messages about physics options, and entries of SceneCfg.options."""


def refusal(error: Exception) -> ModelError:
    """Return the error for a model that MuJoCo Warp rejects, with the remedy."""
    text = str(error).rstrip(".")
    remedy = "use engine='native', which supports all models"
    for start, option in _OPTIONS.items():
        if text.startswith(start):
            remedy = (
                f"override it in the scene, SceneCfg(options={{{option}}}), or use "
                "engine='native'"
            )
    return ModelError(
        f"MuJoCo Warp does not support this model: {text}. Remedy: {remedy}.",
        name="warp",
    )
