"""Symmetry of a task: mirror images of observations and actions.

`env.symmetry()` composes a signed permutation of the columns of every observation
group and of the action. Contracts state most of it: a quantity of joints is permuted as
the joints are, and a vector is polar or axial by its unit. Other terms declare it with
`mirrors`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import mujoco
import numpy as np

from simstate.base.contract import UNSAID, Contract, spread
from simstate.base.errors import InvalidInputError, ModelError, SimStateError
from simstate.entity import Quantity
from simstate.entity.mirror import (
    AXES,
    EntityMirror,
    SignedPermutation,
    vector_signs,
)
from simstate.entity.model_mirror import ModelMirror
from simstate.env.contracts import Declaration
from simstate.env.entity_cfg import SceneEntityCfg

if TYPE_CHECKING:
    from simstate.env.env import Env
    from simstate.env.groups import ObservationGroup, ObservationTerm

Function = TypeVar("Function", bound=Callable[..., Any])
_AXIAL = ("rad", "N·m", "kg·m²/s")
"""Units of axial vectors start with these."""
STATES = 8
"""Random states from which the physics is compared with its mirror image."""
TOLERANCE = 1e-6
"""Largest relative difference of the velocities after a step. Sums over mirrored limbs
are in another order, so that they differ in the last bits."""


class Symmetry:
    """The mirror image of a task."""

    def __init__(self, env: Env, groups: Sequence[ObservationGroup]) -> None:
        self.env = env
        self.cfg = env.cfg.symmetry
        self._mirrors: dict[str, EntityMirror] = {}
        self.action = SignedPermutation((), ()).joined(
            *(
                _labelled(f"action term {name!r}", name, term.mirror, self)
                for name, term in env.actions.items()
            )
        )
        """Signed permutation of the columns of an action."""
        self.observations = {
            group.name: SignedPermutation((), ()).joined(
                *(self._of_term(term) for term in group.terms)
            )
            for group in groups
        }
        """Signed permutation of the columns of each observation group."""

    @property
    def normal(self) -> str:
        """Normal of the plane of symmetry."""
        return self.cfg.normal

    def of(self, entity: str) -> EntityMirror:
        """Return the mirror images of the parts of an entity."""
        if entity not in self._mirrors:
            found = self.env.scene[entity]
            declared = self.cfg.joints if found.is_robot else None
            self._mirrors[entity] = EntityMirror(found, self.normal, declared)
        return self._mirrors[entity]

    def joints(self, cfg: SceneEntityCfg) -> SignedPermutation:
        """Return the signed permutation of columns of chosen joints.

        Positions are relative to the default pose, which must be symmetric.
        """
        mirror = self.of(cfg.name)
        found = mirror.columns_of(cfg.names_of("joint"), mirror.joint)
        rest = mirror.entity.data.default_joint_pos[0]
        pose = {
            name: float(rest[mirror.entity.joint_names.index(name)])
            for name in cfg.names_of("joint")
        }
        for name in pose:
            other, sign = mirror.joint(name)
            if abs(pose[name] - sign * pose[other]) > 1e-6:
                raise ModelError(
                    f"The default pose is not symmetric: joint {name!r} is at "
                    f"{pose[name]:g}, and its mirror image {other!r} at "
                    f"{pose[other]:g} instead of {sign * pose[name]:g}."
                )
        return found

    def components(
        self, names: Sequence[str], contracts: Sequence[Contract]
    ) -> SignedPermutation:
        """Return the signs of columns that are components, such as "lin_vel_x"."""
        signs = list[float]()
        each_contract = spread(contracts, len(names)) or [UNSAID] * len(names)
        for name, contract in zip(names, each_contract, strict=True):
            axis = name[-1:]
            is_component = axis in AXES and name[-2:-1] in ("", "_", ".", " ", "/", "r")
            if not is_component or contract.axes in ("–", "not declared"):
                raise InvalidInputError(
                    f"its column {name!r} does not state how it is mirrored"
                )
            each = vector_signs(self.normal, is_axial(contract.unit))
            signs.append(each[AXES.index(axis)])
        return SignedPermutation(tuple(range(len(signs))), tuple(signs))

    def vector(self, unit: str) -> SignedPermutation:
        """Return the signs of the components x, y and z of a vector in this unit."""
        return SignedPermutation((0, 1, 2), vector_signs(self.normal, is_axial(unit)))

    def contacts(self, sensor_name: str, unit: str = "") -> SignedPermutation:
        """Return the signed permutation of a contact sensor's elements.

        One column each, or with a unit the components of a vector.
        """
        names = self.env.sim.contacts[sensor_name].element_names
        index = list[int]()
        for name in names:
            entity, _, body = name.rpartition("/")
            bodies = self.of(entity).bodies if entity in self.env.scene else {}
            other = f"{entity}/{bodies.get(body, body)}"
            if body not in bodies or other not in names:
                raise InvalidInputError(
                    f"the sensor {sensor_name!r} has {name!r}, and not the mirror "
                    "image of it, a body"
                )
            index.append(names.index(other))
        found = SignedPermutation(tuple(index), (1.0,) * len(index))
        signs = vector_signs(self.normal, is_axial(unit)) if unit else (1.0,)
        return _spread(found, signs)

    def _of_term(self, term: ObservationTerm) -> SignedPermutation:
        found = _labelled(term.label, term.path, self._of_function, term)
        if len(found) != term.width:
            raise InvalidInputError(
                f"The {term.label} has {term.width} columns, and mirrors {len(found)}."
            )
        _check_processing(term, found)
        return found.repeated(term.history)

    def _of_function(self, term: ObservationTerm) -> SignedPermutation:
        params = cast("Mapping[str, Any]", term.params)
        rule = getattr(term.function, "mirror", None)
        if rule is not None:
            return rule(self, **params)
        declared: Any = getattr(term.function, "contract", None)
        contract = declared.value if isinstance(declared, Declaration) else declared
        chosen = next(
            (p for p in params.values() if isinstance(p, SceneEntityCfg)), None
        )
        if isinstance(contract, Quantity) and chosen is not None:
            found = self._of_quantity(contract, chosen)
            if found is not None:
                return found
        if isinstance(contract, Contract) and contract.axes in ("world", "root link"):
            return self.components(term.names(), [contract] * term.width)
        raise InvalidInputError("it does not state how its columns are mirrored")

    def _of_quantity(
        self, quantity: Quantity, chosen: SceneEntityCfg
    ) -> SignedPermutation | None:
        """Return the rule of a quantity's shape and unit; None: it has none."""
        shape, unit = quantity.shape, quantity.unit
        if shape == ("num_joints",):
            return self.joints(chosen)
        if shape == (3,):
            return self.vector(unit)
        mirror, signs = self.of(chosen.name), vector_signs(self.normal, is_axial(unit))
        if shape == ("num_sites", 3):
            names = chosen.names_of("site")
            return _spread(mirror.columns_of(names, mirror.site), signs)
        if shape == ("num_bodies", 3):
            names = chosen.names_of("body")
            return _spread(mirror.columns_of(names, mirror.body), signs)
        return None

    def check_physics(self) -> float:
        """Compare steps from random states with those from their mirror images.

        Return the largest relative difference of the velocities. Raise if it exceeds
        rounding errors: the model's physics is not symmetric.

        The comparison uses MuJoCo's Newton solver until convergence, because an earlier
        result depends on the order of contacts. With a terrain, contacts are disabled:
        no terrain is its own mirror image.
        """
        model = self._checked_model()
        mirror = ModelMirror(model, [self.of(name) for name in self.env.scene])
        start = self.env.sim.data.qpos[0].cpu().double().numpy()
        random = np.random.default_rng(0)
        worst, where = 0.0, 0
        for k in range(STATES):
            qvel, ctrl = random.normal(0, 0.3, model.nv), random.normal(0, 1, model.nu)
            qpos = start.copy()
            mujoco.mj_integratePos(model, qpos, qvel, 0.3 * k / STATES)
            ends = list[Any]()
            for q, v, u in (
                (qpos, qvel, ctrl),
                (mirror.qpos(qpos), mirror.qvel(qvel), mirror.ctrl(ctrl)),
            ):
                data = mujoco.MjData(model)
                data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
                for _ in range(2):
                    mujoco.mj_step(model, data)
                ends.append(data.qvel.copy())
            gaps = np.abs(mirror.qvel(ends[0]) - ends[1]) / (1.0 + np.abs(ends[1]))
            if gaps.max() > worst:
                worst, where = float(gaps.max()), int(gaps.argmax())
        if worst > TOLERANCE:
            joint = model.joint(int(model.dof_jntid[where])).name
            raise ModelError(
                f"The physics is not symmetric in the plane {self.normal} = 0: after "
                f"two steps from a mirrored state, the velocity of joint {joint!r} "
                f"differs from the mirror image by {worst:.2g} (relative). Masses, "
                "inertias, geoms, limits and actuators of both sides must be mirror "
                "images of each other.",
                name=joint,
            )
        return worst

    def _checked_model(self) -> mujoco.MjModel:
        model = copy.copy(self.env.sim.model)
        model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON.value
        model.opt.iterations, model.opt.tolerance = 100, 1e-12
        if self.env.cfg.scene.terrain is not None:
            model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT.value
        return model


def mirrors(rule: Callable[..., SignedPermutation]) -> Callable[[Function], Function]:
    """Declare how the columns of an observation term are mirrored.

    `rule(symmetry, **params)` returns the signed permutation of the columns; see the
    methods of `Symmetry`.
    """

    def mark(term: Function) -> Function:
        is_class = isinstance(cast("object", term), type)
        term.mirror = staticmethod(rule) if is_class else rule  # pyright: ignore[reportFunctionMemberAccess]
        return term

    return mark


def unchanged(symmetry: Symmetry, **params: object) -> SignedPermutation:
    """Keep one column, such as a height."""
    del symmetry, params
    return SignedPermutation.identity(1)


def is_axial(unit: str) -> bool:
    """Return True if a vector in this unit is axial: angles, their rates, torques."""
    return unit.startswith(_AXIAL)


def _spread(elements: SignedPermutation, signs: tuple[float, ...]) -> SignedPermutation:
    """Return the signed permutation of vectors that belong to elements."""
    width = len(signs)
    return SignedPermutation(
        tuple(width * i + j for i in elements.index for j in range(width)),
        signs * len(elements),
    )


def _labelled(
    label: str, name: str, rule: Callable[..., SignedPermutation], *args: Any
) -> SignedPermutation:
    """Return the result of a rule; an error names the term."""
    try:
        return rule(*args)
    except SimStateError as error:
        raise error.with_message(
            f"The {label} has no mirror image: {str(error).rstrip('.')}. Declare it "
            "with @mirrors (simstate.env.symmetry), or train without symmetric.",
            name,
        ) from error


def _check_processing(term: ObservationTerm, mirror: SignedPermutation) -> None:
    """Raise unless clip and scale treat columns and their mirror images alike."""
    scale = term.scale if isinstance(term.scale, tuple) else None
    if scale and any(scale[k] != scale[i] for k, i in enumerate(mirror.index)):
        raise InvalidInputError(
            f"The {term.label} scales columns and their mirror images differently: "
            f"{scale}."
        )
    if term.clip and min(mirror.sign) < 0.0 and term.clip[0] != -term.clip[1]:
        raise InvalidInputError(
            f"The {term.label} is clipped to {term.clip}, and its mirror image has the "
            "opposite sign: use a range (−limit, limit).",
            name="clip",
        )
