"""MuJoCo's Newton solver takes the same steps with sparse and with dense matrices.

In 4.0.0 the sparse Cholesky factorisation is wrong, and the solver takes more steps:
577 here, where 530 are needed (3.17.0: 532, 4.0.1: 533). This is why simstate rejects
4.0.0 (`simstate.base.mujoco_version`). To see it fail, install `mujoco-core==4.0.0` in
a folder by `pip install --target`, and run this file with PYTHONPATH set to it.
"""

from __future__ import annotations

import mujoco
import numpy as np

MODELS, STATES = 40, 4


def branching_chains(rng: np.random.Generator) -> str:
    """Bodies in random trees, with limits, and loops that connect them."""
    count = int(rng.integers(12, 45))
    parents = [int(rng.integers(max(-1, k - 6), k)) for k in range(count)]

    def body(k: int) -> str:
        x, y, z = rng.uniform(-0.3, 0.3, 3).round(2)
        joint = f'<joint axis="{abs(x):.2f} {abs(y):.2f} .3" damping=".1" RANGE/>'
        joint = joint.replace("RANGE", 'range="-20 20"' if rng.random() < 0.5 else "")
        if parents[k] < 0 and rng.random() < 0.3:
            joint = "<freejoint/>"
        inner = "".join(body(i) for i in range(k + 1, count) if parents[i] == k)
        size = rng.uniform(0.03, 0.12)
        return (
            f'<body name="b{k}" pos="{x} {y} {z}">{joint}'
            f'<geom size="{size:.2f}"/>{inner}</body>'
        )

    trees = "".join(body(k) for k in range(count) if parents[k] < 0)
    loops = "".join(
        '<connect body1="b{}" body2="b{}" anchor="0 0 0"/>'.format(
            *rng.choice(count, 2, replace=False)
        )
        for _ in range(int(rng.integers(2, 14)))
    )
    return (
        '<mujoco><option solver="Newton" tolerance="1e-12" jacobian="sparse"/>'
        '<worldbody><geom type="plane" size="9 9 .1" pos="0 0 -.3"/>'
        f"{trees}</worldbody><equality>{loops}</equality></mujoco>"
    )


def solver_steps() -> tuple[int, int, float]:
    """Newton steps with sparse and dense matrices, and the worst difference of qacc."""
    taken, worst = [0, 0], 0.0
    kinds = (mujoco.mjtJacobian.mjJAC_SPARSE, mujoco.mjtJacobian.mjJAC_DENSE)
    for seed in range(MODELS):
        rng = np.random.default_rng(seed)
        model = mujoco.MjModel.from_xml_string(branching_chains(rng))
        data = mujoco.MjData(model)
        qvel = 0.1 * rng.normal(size=model.nv)
        qpos = model.qpos0.copy()
        for _ in range(STATES):
            found = []
            for k, kind in enumerate(kinds):
                model.opt.jacobian = kind
                mujoco.mj_resetData(model, data)
                data.qpos[:], data.qvel[:] = qpos, qvel
                mujoco.mj_forward(model, data)
                taken[k] += int(data.solver_niter.sum())
                found.append(data.qacc.copy())
            gap = np.abs(found[0] - found[1]).max() / (1 + np.abs(found[1]).max())
            worst = max(worst, float(gap))
            qvel = qvel + model.opt.timestep * found[1]
            mujoco.mj_integratePos(model, qpos, qvel, model.opt.timestep)
    return taken[0], taken[1], worst


def test_sparse_and_dense_take_the_same_steps():
    sparse, dense, worst = solver_steps()
    assert dense > 200
    assert sparse <= 1.02 * dense
    assert worst < 1e-3


if __name__ == "__main__":
    print(mujoco.mj_versionString(), *solver_steps())
