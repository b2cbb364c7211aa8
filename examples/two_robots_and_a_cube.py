"""Two robots and a cube in one scene, in 64 worlds that all differ.

Entities keep their own names for joints and links, so the same code drives either
robot. The cube is dropped between them: in flight it follows z = z₀ − ½ g t (t + h),
where h is MuJoCo's time step, and in the end it rests on the ground at half its edge of
5 cm.
"""

import torch

from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation

GRAVITY = 9.81  # m/s²


def robot(x: float, facing_back: bool = False) -> EntityCfg:
    """A quadruped that stands at x [m]."""
    turn = (0.0, 0.0, 0.0, 1.0) if facing_back else (1.0, 0.0, 0.0, 0.0)  # wxyz
    start = InitialStateCfg(keyframe="home", pos=(x, 0.0, 0.281), rot=turn)
    return EntityCfg(model="quadruped", init_state=start)


def main() -> None:
    """Drop the cube from another height in each world."""
    scene = SceneCfg(
        entities={
            "left": robot(-0.8),
            "right": robot(0.8, facing_back=True),
            "cube": EntityCfg(model="cube"),
        }
    )
    sim = Simulation(scene, num_envs=64)
    left, right, cube = (sim.scene[name] for name in ("left", "right", "cube"))
    print(f"{sim.num_envs} worlds, {sim.model.nv} degrees of freedom in each")

    height = torch.linspace(0.5, 1.0, sim.num_envs, dtype=sim.dtype)
    pose = cube.data.root_link_pose_w.clone()
    pose[:, 2] = height
    cube.write_root_link_pose_to_sim(pose)

    sim.step(50)  # 0.25 s: the cube is still in the air
    fallen = height - cube.data.root_link_pos_w[:, 2]
    t = float(sim.time[0])
    print(
        f"fell {float(fallen.mean()):.4f} m in {t:.2f} s, ½ g t (t + h) is "
        f"{0.5 * GRAVITY * t * (t + sim.timestep):.4f} m"
    )

    sim.step(350)
    rest = cube.data.root_link_pos_w[:, 2]
    print(f"cube rests at {float(rest.mean()):.4f} m, half its edge is 0.0250 m")
    for name, entity in (("left", left), ("right", right)):
        x, _, z = entity.data.root_link_pos_w[0].tolist()
        upright = -float(entity.data.projected_gravity_b[:, 2].min())
        print(
            f"{name} robot: trunk at x = {x:.2f} m, z = {z:.2f} m, "
            f"cosine of its tilt ≥ {upright:.3f}"
        )
    gap = right.data.root_link_pos_w - left.data.root_link_pos_w
    print(f"distance between the trunks: {float(gap.norm(dim=-1).mean()):.2f} m")


if __name__ == "__main__":
    main()
