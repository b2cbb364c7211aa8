"""Every dynamics reading of a simulation compared with MuJoCo's C functions."""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np
import torch

from simstate import Simulation

Pair = tuple[str, np.ndarray, np.ndarray]
"""What is compared, what we say, and what MuJoCo says."""


def load(sim: Simulation, world: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Plain MuJoCo, evaluated at a world's present state."""
    data = mujoco.MjData(sim.model)
    row = sim.state[world].cpu().to(torch.float64).numpy().copy()
    mujoco.mj_setState(sim.model, data, row, mujoco.mjtState.mjSTATE_INTEGRATION.value)
    mujoco.mj_forward(sim.model, data)
    return sim.model, data


def jacobians(sim: Simulation, world: int) -> Iterator[Pair]:
    """Jacobians and their rates of all bodies, sites and geoms of all entities."""
    model, data = load(sim, world)
    nv = model.nv
    for entity in sim.scene.values():
        cases: list[tuple[str, str, object, int, np.ndarray]] = []
        for name, body in zip(*_elements(entity.index.bodies), strict=True):
            cases.append((name, "link", "link", body, data.xpos[body].copy()))
            cases.append((name, "com", "com", body, data.xipos[body].copy()))
            local = np.array([0.1, -0.3, 0.2])
            point = data.xpos[body] + data.xmat[body].reshape(3, 3) @ local
            cases.append((name, "point", local, body, point))
        for name, site in zip(*_elements(entity.index.sites), strict=True):
            if name not in entity.body_names:
                body = int(model.site_bodyid[site])
                cases.append((name, "site", "link", body, data.site_xpos[site].copy()))
        for name, geom in zip(*_elements(entity.index.geoms), strict=True):
            if name not in (*entity.body_names, *entity.site_names):
                body = int(model.geom_bodyid[geom])
                cases.append((name, "geom", "link", body, data.geom_xpos[geom].copy()))
        for name, label, at, body, point in cases:
            expected, rate = np.zeros((2, 6, nv))
            mujoco.mj_jac(model, data, expected[:3], expected[3:], point, body)
            got = entity.jacobian(name, at)[world]
            yield f"J {name} {label}", _np(got), expected
            mujoco.mj_jacDot(model, data, rate[:3], rate[3:], point, body)
            got = entity.jacobian_dot(name, at)[world]
            yield f"J̇ {name} {label}", _np(got), rate


def dynamics(sim: Simulation, world: int) -> Iterator[Pair]:
    """What `sim.dynamics` says of one world."""
    model, data = load(sim, world)
    own, nv = sim.dynamics, model.nv
    full = np.zeros((nv, nv))
    mujoco.mj_fullM(model, data, full)
    yield "mass_matrix", _np(own.mass_matrix[world]), full
    yield "bias", _np(own.bias_force[world]), data.qfrc_bias
    still = mujoco.MjData(model)
    still.qpos[:] = data.qpos
    still.mocap_pos[:], still.mocap_quat[:] = data.mocap_pos, data.mocap_quat
    mujoco.mj_forward(model, still)
    gravity = np.zeros(nv)
    mujoco.mj_rne(model, still, 0, gravity)
    yield "gravity", _np(own.gravity_force[world]), gravity
    yield "coriolis", _np(own.coriolis_force[world]), data.qfrc_bias - gravity
    yield "passive", _np(own.passive_force[world]), data.qfrc_passive
    mujoco.mj_energyPos(model, data)
    mujoco.mj_energyVel(model, data)
    yield "potential", _np(own.potential_energy[world]), data.energy[0]
    yield "kinetic", _np(own.kinetic_energy[world]), data.energy[1]
    mujoco.mj_subtreeVel(model, data)
    mujoco.mj_rnePostConstraint(model, data)
    moving = slice(1, None)
    mass = model.body_mass[moving]
    com = (mass[:, None] * data.xipos[moving]).sum(0) / mass.sum()
    yield "com", _np(own.com_pos_w[world]), com
    total = data.subtree_linvel[0] * model.body_subtreemass[0]
    yield "momentum", _np(own.linear_momentum_w[world]), total
    yield "spin", _np(own.angular_momentum_w[world]), data.subtree_angmom[0]
    matrix = np.zeros((3, nv))
    mujoco.mj_angmomMat(model, data, matrix, 0)
    yield "angmomMat", _np(own.centroidal_momentum_matrix[world, 3:]), matrix
    accelerations = np.zeros((model.nbody, 6))
    for body in range(1, model.nbody):
        mujoco.mj_objectAcceleration(
            model, data, mujoco.mjtObj.mjOBJ_BODY.value, body, accelerations[body], 0
        )
    gravity = np.zeros(3) if _has_no_gravity(model) else model.opt.gravity
    # MuJoCo gives zero, or less gravity, for what no joint moves.
    moves = np.array([_has_dofs(model, body) for body in range(1, model.nbody)])[
        :, None
    ]
    weighted = mass[:, None] * (accelerations[moving, 3:] + gravity) * moves
    yield "com_acc", _np(own.com_acc_w[world]), weighted.sum(0) / mass.sum()
    wrench = np.zeros((model.nbody - 1, 6))
    for body in range(1, model.nbody):
        force = data.cfrc_int[body, 3:]
        centre = data.subtree_com[model.body_rootid[body]]
        torque = data.cfrc_int[body, :3] - np.cross(data.xpos[body] - centre, force)
        wrench[body - 1] = np.concatenate([force, torque])
    yield "incoming", _np(own.incoming_wrench_w[world]), wrench
    rng = np.random.default_rng(world)
    qacc = rng.normal(size=(sim.num_envs, nv))
    forces = own.inverse_dynamics(qacc[[world]], [world])
    data.qacc[:] = qacc[world]
    mujoco.mj_inverse(model, data)
    yield "inverse", _np(forces[0]), data.qfrc_inverse
    solved = np.zeros(nv)
    mujoco.mj_solveM(model, data, solved[None], qacc[world][None])
    yield "solveM", _np(own.solve_mass_matrix(qacc)[world]), solved


def _has_dofs(model: mujoco.MjModel, body: int) -> bool:
    """Whether some joint moves a body."""
    while body and not model.body_dofnum[body]:
        body = int(model.body_parentid[body])
    return body != 0


def _has_no_gravity(model: mujoco.MjModel) -> bool:
    off = mujoco.mjtDisableBit.mjDSBL_GRAVITY.value
    return bool(model.opt.disableflags & off)


def _elements(elements) -> tuple[tuple[str, ...], tuple[int, ...]]:
    return elements.names, elements.ids


def _np(value: torch.Tensor) -> np.ndarray:
    return value.cpu().double().numpy()


def check(pairs: Iterator[Pair], tol: float) -> int:
    """Compare all of them, each to its own size; how many there were."""
    count = 0
    for label, got, expected in pairs:
        assert got.shape == expected.shape, label
        if expected.size:
            size = max(1.0, float(np.abs(expected).max()))
            error = float(np.abs(got - expected).max()) / size
            assert error < tol, f"{label}: {error:.2e} of {size:.2e}"
        count += 1
    return count
