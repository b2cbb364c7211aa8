"""Parameters that MuJoCo's compiler has taken for fixed, for the sake of a shortcut.

A body whose COM is at its origin, along its axes, and that carries no other moving body
compiles as "simple": its mass matrix is taken for diagonal from then on. A COM that
moves later would give wrong motion, in MuJoCo Warp without a word.
"""

from __future__ import annotations

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, listed
from simstate.base.ids import Index
from simstate.engine.engine import model_value
from simstate.scene.objects import OBJECTS_OF_FIELDS

_TOLERANCE = 1e-7
"""Below what MuJoCo itself takes for a moved frame, and what float32 keeps of one."""


class Shortcuts:
    """The elements of a model whose frames must stay as compiled."""

    def __init__(self, model: mujoco.MjModel, device: torch.device) -> None:
        self._model = model
        simple = np.asarray(model.body_simple) != 0
        simple[0] = False
        # One dof alone has a diagonal mass matrix wherever its axis is.
        coupled = simple & (np.asarray(model.body_dofnum) > 1)
        kind = np.asarray(model.jnt_type)
        free, ball = mujoco.mjtJoint.mjJNT_FREE.value, mujoco.mjtJoint.mjJNT_BALL.value
        joints = coupled[model.jnt_bodyid]
        frozen = {
            "body_ipos": simple,
            "body_iquat": simple,
            "jnt_pos": joints & (kind != free),
            "jnt_axis": joints & (kind != free) & (kind != ball),
        }
        self._frozen: dict[str, tuple[Tensor, Tensor]] = {}
        """By parameter: which elements must keep their values, and these values."""
        for name, mask in frozen.items():
            if mask.any():
                self._frozen[name] = (
                    torch.as_tensor(mask, device=device),
                    torch.as_tensor(model_value(model, name), device=device),
                )

    @property
    def parameters(self) -> frozenset[str]:
        """The parameters of which some elements must keep their values."""
        return frozenset(self._frozen)

    def check(
        self, name: str, values: Tensor, elements: Index | None, then: str
    ) -> None:
        """Raise if these values of some elements are not the compiled ones; (n, E, …).

        `then` is what the message ends with.
        """
        if name not in self._frozen:
            return
        frozen, compiled = self._frozen[name]
        if elements is not None:
            frozen, compiled = frozen[elements], compiled[elements]
        moved = (values - compiled.to(values.dtype)).abs().amax(-1) > _TOLERANCE
        moved &= frozen
        if bool(moved.any()):
            ids = torch.arange(len(model_value(self._model, name)), device=moved.device)
            ids = ids if elements is None else ids[elements]
            raise self._error(name, ids[moved.any(0)].cpu().numpy(), then)

    def _error(self, name: str, ids: np.ndarray, then: str) -> InvalidInputError:
        kind = OBJECTS_OF_FIELDS[name.partition("_")[0]]
        names = [mujoco.mj_id2name(self._model, kind.value, int(k)) for k in ids]
        known = [
            label or f"{kind.name} {k}" for label, k in zip(names, ids, strict=True)
        ]
        return InvalidInputError(
            f"{name} of {listed(known)} must stay as it was compiled: MuJoCo took a "
            'shortcut for bodies that are "simple" (their centre of mass is at their '
            "origin), and would compute wrong motion. Compile them without it: "
            'EntityCfg(com_varies=True), or <body simple="false"> in MJCF. '
            f"{then}"
        )
