"""A fall with contacts: energy goes where forces do work, and nowhere else."""

from __future__ import annotations

import torch

from simstate import ContactCfg, EntityCfg, InitialStateCfg, SceneCfg, Simulation

BRICK = """
<mujoco>
  <worldbody><body name="brick"><freejoint/>
    <geom type="box" size=".1 .06 .04" pos=".03 -.02 .01" mass="1.7"
          friction=".6 .02 .001"/>
  </body></worldbody>
</mujoco>
"""


def test_what_energy_a_fall_loses_is_the_work_of_its_contacts() -> None:
    """Force times velocity and torque times rate, summed over all time steps."""
    scene = SceneCfg(
        entities={
            "one": EntityCfg(model=BRICK, init_state=InitialStateCfg(pos=(0, 0, 0.5))),
            "two": EntityCfg(
                model=BRICK, init_state=InitialStateCfg(pos=(0.05, 0.02, 0.8))
            ),
        },
        contacts={"bricks": ContactCfg(of="(one|two)/brick")},
        ground=True,
        timestep=2e-4,
    )
    sim = Simulation(scene, num_envs=3)
    quat = torch.tensor([[0.9, 0.1, -0.3, 0.2], [0.4, 0.7, 0.1, -0.5], [1, 0.2, 0, 0]])
    for k, brick in enumerate(sim.scene.values()):
        pose = brick.data.root_link_pose_w.clone()
        pose[:, 3:] = torch.nn.functional.normalize(quat.roll(k, 0).double(), dim=1)
        brick.write_root_link_pose_to_sim(pose)
    sensor = sim.contacts["bricks"]

    def motion() -> torch.Tensor:
        """Velocities of the centres of mass, then rates; (worlds, 2, 6)."""
        data = [brick.data.root_com_vel_w for brick in sim.scene.values()]
        return torch.stack(data, dim=1).clone()

    def energy() -> torch.Tensor:
        return sim.dynamics.kinetic_energy + sim.dynamics.gravity_energy

    first = energy().clone()
    work = torch.zeros_like(first)
    pushed = torch.zeros(3, dtype=torch.int64)
    for _ in range(2500):
        before = motion()
        places = [brick.data.root_com_pos_w for brick in sim.scene.values()]
        centre = torch.stack(places, dim=1).clone()
        sim.step()
        mean = 0.5 * (before + motion())
        force = sensor.force_w  # of the evaluation that this step has moved by
        arm = sensor.pos_w - centre
        torque = sensor.torque_w + torch.linalg.cross(arm, force)
        power = (force * mean[..., :3] + torque * mean[..., 3:]).sum((1, 2))
        work += sim.timestep * power
        pushed += sensor.found.any(1)
    lost = energy() - first
    assert (lost < -4.0).all()  # of some 20 J: they have come to rest
    assert (pushed > 500).all()
    assert ((lost - work).abs() < 2e-3 * lost.abs()).all()
