"""Tasks of dm_control's suite, on its models: observations and rewards to 1e-12.

Observations are in dm_control's order, side by side. Positions, velocities and their
sensors are those of the new state, contact and force sensors those of the last
evaluation, as dm_control has them. States at reset have its distributions, drawn from
each world's NumPy stream; dm_control's own generator gives other numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import mujoco
import numpy as np
from numpy.random import Generator

from simstate.base.extras import library_folder
from simstate.env.tasks.classic import (
    INF,
    Array,
    Classic,
    ClassicWorlds,
    Infos,
    tolerance,
)
from simstate.env.tasks.suite_states import (
    collision_free,
    limited_joints,
    random_joints,
    sensors_at_rest,
    settled,
    without_contacts,
)


@dataclass(frozen=True, kw_only=True)
class SuiteTask(Classic):
    """A task of the suite; its name is the domain's and the task's."""

    frame_skip: int = 1

    def model(self) -> Callable[[], mujoco.MjSpec]:
        """Return the function that makes the model."""
        return self.spec

    def spec(self) -> mujoco.MjSpec:
        """Return the model in dm_control's package, as the task changes it."""
        folder = library_folder("dm_control", "suite", "Its tasks") / "suite"
        spec = mujoco.MjSpec.from_file(str(folder / self.xml_file))
        self.change(spec)
        return spec

    def change(self, spec: mujoco.MjSpec) -> None:
        """Apply the task's changes of the model."""

    def sensors_at_reset(
        self, w: ClassicWorlds, qpos: Array, qvel: Array
    ) -> Array | None:
        """Return the first sensor readings, which are without actuation."""
        return sensors_at_rest(w.model, qpos, qvel) if w.model.nsensor else None

    def draw(self, rng: Generator, w: ClassicWorlds) -> tuple[Array, Array]:
        """Return a state at reset: joints anywhere in their ranges, at rest."""
        return random_joints(rng, w.model, w.init_qpos), w.init_qvel

    def control_reward(self, w: ClassicWorlds) -> Array:
        """Return the reward for small controls, from 0.8 to 1; (num_envs,)."""
        small = tolerance(w.ctrl, margin=1, edge=0, sigmoid="quadratic").mean(axis=1)
        return (4 + small) / 5


@dataclass(frozen=True, kw_only=True)
class Cartpole(SuiteTask):
    """Balance a pole on a cart, or swing it up first."""

    xml_file: str = "cartpole.xml"
    swing_up: bool = True

    def observation(self, w: ClassicWorlds) -> tuple[Array, ...]:
        """Return the cart's position, cosine and sine of the pole, and velocities."""
        pole = w.data("xmat")[:, 2:]
        turned = np.stack([pole[:, :, 2, 2], pole[:, :, 0, 2]], axis=-1)
        return w.qpos[:, :1], turned, w.qvel

    def reward(self, w: ClassicWorlds) -> tuple[Array, Infos]:
        """Return the product of rewards for pole, controls, velocity and cart."""
        upright = ((w.data("xmat")[:, 2:, 2, 2] + 1) / 2).mean(axis=1)
        centred = (1 + tolerance(w.qpos[:, 0], margin=2)) / 2
        slow = (1 + tolerance(w.qvel[:, 1:], margin=5).min(axis=1)) / 2
        return upright * self.control_reward(w) * slow * centred, {}

    def draw(self, rng: Generator, w: ClassicWorlds) -> tuple[Array, Array]:
        """Return the pole near the top, or hanging, with small velocities."""
        if self.swing_up:
            qpos = 0.01 * rng.standard_normal(2) + [0.0, np.pi]
        else:
            qpos = np.array([rng.uniform(-0.1, 0.1), rng.uniform(-0.034, 0.034)])
        return qpos, 0.01 * rng.standard_normal(2)


@dataclass(frozen=True, kw_only=True)
class Cheetah(SuiteTask):
    """Run at 10 m/s."""

    xml_file: str = "cheetah.xml"
    speed: float = 10

    def observation(self, w: ClassicWorlds) -> tuple[Array, ...]:
        """Return positions without the horizontal one, and velocities."""
        return w.qpos[:, 1:], w.qvel

    def reward(self, w: ClassicWorlds) -> tuple[Array, Infos]:
        """Return a reward that grows with the speed."""
        speed = w.sensors("torso_subtreelinvel")[:, 0]
        return tolerance(speed, (self.speed, INF), self.speed, "linear", 0), {}

    def draw(self, rng: Generator, w: ClassicWorlds) -> tuple[Array, Array]:
        """Return what random joint angles lead to after 200 time steps."""
        return settled(w.model, limited_joints(rng, w.model, w.init_qpos), 200)


@dataclass(frozen=True, kw_only=True)
class Walker(SuiteTask):
    """Stand, walk at 1 m/s or run at 8 m/s."""

    xml_file: str = "walker.xml"
    frame_skip: int = 10
    speed: float = 1

    def observation(self, w: ClassicWorlds) -> tuple[Array, ...]:
        """Return orientations of the bodies, the height, and velocities."""
        bodies = w.data("xmat")[:, 1:]
        turned = np.stack([bodies[:, :, 0, 0], bodies[:, :, 0, 2]], axis=-1)
        return turned, w.data("xpos")[:, w.body("torso"), 2:], w.qvel

    def reward(self, w: ClassicWorlds) -> tuple[Array, Infos]:
        """Return a reward for standing upright, times one for the speed."""
        torso = w.body("torso")
        standing = tolerance(w.data("xpos")[:, torso, 2], (1.2, INF), 0.6)
        upright = (1 + w.data("xmat")[:, torso, 2, 2]) / 2
        stands = (3 * standing + upright) / 4
        if self.speed == 0:
            return stands, {}
        speed = w.sensors("torso_subtreelinvel")[:, 0]
        moves = tolerance(speed, (self.speed, INF), self.speed / 2, "linear", 0.5)
        return stands * (5 * moves + 1) / 6, {}


@dataclass(frozen=True, kw_only=True)
class SuiteHopper(SuiteTask):
    """Stand on one leg, or hop at 2 m/s."""

    xml_file: str = "hopper.xml"
    frame_skip: int = 4
    hops: bool = True

    def observation(self, w: ClassicWorlds) -> tuple[Array, ...]:
        """Return positions without the horizontal one, velocities and touch."""
        touch = w.sensors("touch_toe", "touch_heel")
        return w.qpos[:, 1:], w.qvel, np.log1p(touch)

    def reward(self, w: ClassicWorlds) -> tuple[Array, Infos]:
        """Return a reward for the height, times one for the speed or controls."""
        z = w.data("xipos")[:, :, 2]
        standing = tolerance(z[:, w.body("torso")] - z[:, w.body("foot")], (0.6, 2))
        if not self.hops:
            return standing * self.control_reward(w), {}
        speed = w.sensors("torso_subtreelinvel")[:, 0]
        return standing * tolerance(speed, (2, INF), 1, "linear", 0.5), {}


@dataclass(frozen=True, kw_only=True)
class SuiteHumanoid(SuiteTask):
    """Stand, walk at 1 m/s or run at 10 m/s."""

    xml_file: str = "humanoid.xml"
    frame_skip: int = 5
    speed: float = 1

    def observation(self, w: ClassicWorlds) -> tuple[Array, ...]:
        """Return joints, head height, limbs, the vertical, and velocities."""
        xpos, torso = w.data("xpos"), w.body("torso")
        frame = w.data("xmat")[:, torso]
        names = ("left_hand", "left_foot", "right_hand", "right_foot")
        limbs = xpos[:, [w.body(name) for name in names]] - xpos[:, [torso]]
        velocity = w.sensors("torso_subtreelinvel")
        head = xpos[:, w.body("head"), 2:]
        return w.qpos[:, 7:], head, limbs @ frame, frame[:, 2], velocity, w.qvel

    def reward(self, w: ClassicWorlds) -> tuple[Array, Infos]:
        """Return the product of rewards for standing, controls and the speed."""
        height = w.data("xpos")[:, w.body("head"), 2]
        upright = w.data("xmat")[:, w.body("torso"), 2, 2]
        stands = tolerance(height, (1.4, INF), 0.35)
        stands = stands * tolerance(upright, (0.9, INF), 1.9, "linear", 0)
        small = self.control_reward(w)
        velocity = w.sensors("torso_subtreelinvel")[:, :2]
        if self.speed == 0:
            return small * stands * tolerance(velocity, margin=2).mean(axis=1), {}
        speed = np.linalg.norm(velocity, axis=1)
        moves = tolerance(speed, (self.speed, INF), self.speed, "linear", 0)
        return small * stands * (5 * moves + 1) / 6, {}

    def draw(self, rng: Generator, w: ClassicWorlds) -> tuple[Array, Array]:
        """Return random joints and attitude, without contacts."""
        return collision_free(rng, w.model, w.init_qpos), w.init_qvel


@dataclass(frozen=True, kw_only=True)
class SuiteQuadruped(SuiteTask):
    """Walk at 0.5 m/s or run at 5 m/s."""

    xml_file: str = "quadruped.xml"
    frame_skip: int = 4
    speed: float = 0.5

    def change(self, spec: mujoco.MjSpec) -> None:
        """Remove walls, ball, terrain and rangefinders."""
        size = 20 * self.speed
        spec.geom("floor").size = [size, size, 0.5]
        for name in ("wall_px", "wall_py", "wall_nx", "wall_ny", "terrain"):
            spec.delete(spec.geom(name))
        spec.delete(spec.site("target"))
        for sensor in list(spec.sensors):
            if sensor.type == mujoco.mjtSensor.mjSENS_RANGEFINDER:
                spec.delete(sensor)
        spec.delete(spec.body("ball"))

    def observation(self, w: ClassicWorlds) -> tuple[Array, ...]:
        """Return joints, activations, velocity, the vertical, and body sensors."""
        kinds = mujoco.mjtSensor
        imu = w.sensors_of(kinds.mjSENS_GYRO, kinds.mjSENS_ACCELEROMETER)
        forces = w.sensors_of(kinds.mjSENS_FORCE, kinds.mjSENS_TORQUE)
        upright = w.data("xmat")[:, w.body("torso"), 2, 2:]
        joints = w.qpos[:, 7:], w.qvel[:, 6:], w.data("act")
        return *joints, w.sensors("velocimeter"), upright, imu, np.arcsinh(forces)

    def reward(self, w: ClassicWorlds) -> tuple[Array, Infos]:
        """Return a reward for being upright, times one for the speed."""
        upright = w.data("xmat")[:, w.body("torso"), 2, 2]
        forward = w.sensors("velocimeter")[:, 0]
        moves = tolerance(forward, (self.speed, INF), self.speed, "linear", 0.5)
        return tolerance(upright, (1, INF), 2, "linear", 0) * moves, {}

    def draw(self, rng: Generator, w: ClassicWorlds) -> tuple[Array, Array]:
        """Return a random attitude, as low as there are no contacts."""
        quat = rng.standard_normal(4)
        qpos = w.init_qpos.copy()
        qpos[:7] = [0.0, 0.0, 0.0, *(quat / np.linalg.norm(quat))]
        return without_contacts(w.model, qpos), w.init_qvel


@dataclass(frozen=True, kw_only=True)
class SuiteReacher(SuiteTask):
    """Reach a target with an arm of two links."""

    xml_file: str = "reacher.xml"
    target_size: float = 0.05

    def change(self, spec: mujoco.MjSpec) -> None:
        """Give the target the task's size."""
        target = spec.geom("target")
        target.size = [self.target_size, *target.size[1:]]

    def to_target(self, w: ClassicWorlds) -> Array:
        """Return the vector from the finger to the target; (num_envs, 2)."""
        xpos = w.data("geom_xpos")
        return xpos[:, w.geom("target"), :2] - xpos[:, w.geom("finger"), :2]

    def observation(self, w: ClassicWorlds) -> tuple[Array, ...]:
        """Return angles, the vector to the target, and velocities."""
        return w.qpos, self.to_target(w), w.qvel

    def reward(self, w: ClassicWorlds) -> tuple[Array, Infos]:
        """Return 1 while the finger touches the target."""
        radii = w.model.geom_size[[w.geom("target"), w.geom("finger")], 0].sum()
        return tolerance(np.linalg.norm(self.to_target(w), axis=1), (0, radii)), {}

    def draw_parameters(
        self, rng: Generator, w: ClassicWorlds
    ) -> dict[str, tuple[int, Array]]:
        """Return a random position of the target."""
        angle, radius = rng.uniform(0, 2 * np.pi), rng.uniform(0.05, 0.2)
        pos = w.model.geom_pos[w.geom("target")].copy()
        pos[:2] = radius * np.sin(angle), radius * np.cos(angle)
        return {"geom_pos": (w.geom("target"), pos)}


@dataclass(frozen=True, kw_only=True)
class Finger(SuiteTask):
    """Spin a body with a finger of two links."""

    xml_file: str = "finger.xml"
    frame_skip: int = 2

    def change(self, spec: mujoco.MjSpec) -> None:
        """Reduce the damping of the body's hinge."""
        damping = spec.joint("hinge").damping
        damping[0] = 0.03
        spec.joint("hinge").damping = damping

    def observation(self, w: ClassicWorlds) -> tuple[Array, ...]:
        """Return angles, the tip relative to the body, velocities and touch."""
        tip = (w.sensors("tip") - w.sensors("spinner"))[:, [0, 2]]
        velocity = w.sensors("proximal_velocity", "distal_velocity", "hinge_velocity")
        touch = np.log1p(w.sensors("touchtop", "touchbottom"))
        return w.sensors("proximal", "distal"), tip, velocity, touch

    def reward(self, w: ClassicWorlds) -> tuple[Array, Infos]:
        """Return 1 while the body spins fast."""
        return (w.sensors("hinge_velocity")[:, 0] <= -15.0).astype(np.float64), {}

    def draw(self, rng: Generator, w: ClassicWorlds) -> tuple[Array, Array]:
        """Return random joints, without contacts."""
        return collision_free(rng, w.model, w.init_qpos), w.init_qvel


@dataclass(frozen=True, kw_only=True)
class Acrobot(SuiteTask):
    """Swing a double pendulum up by its elbow."""

    xml_file: str = "acrobot.xml"

    def observation(self, w: ClassicWorlds) -> tuple[Array, ...]:
        """Return sines and cosines of the arms, and velocities."""
        arms = w.data("xmat")[:, [w.body("upper_arm"), w.body("lower_arm")]]
        return arms[:, :, 0, 2], arms[:, :, 2, 2], w.qvel

    def reward(self, w: ClassicWorlds) -> tuple[Array, Infos]:
        """Return a reward that grows towards the target."""
        target, tip = w.site("target"), w.site("tip")
        offset = w.data("site_xpos")[:, target] - w.data("site_xpos")[:, tip]
        radius = float(w.model.site_size[target, 0])
        return tolerance(np.linalg.norm(offset, axis=1), (0, radius), 1), {}

    def draw(self, rng: Generator, w: ClassicWorlds) -> tuple[Array, Array]:
        """Return random angles."""
        return rng.uniform(-np.pi, np.pi, 2), w.init_qvel


@dataclass(frozen=True, kw_only=True)
class Pendulum(SuiteTask):
    """Swing a pendulum up, with too small a torque."""

    xml_file: str = "pendulum.xml"

    def observation(self, w: ClassicWorlds) -> tuple[Array, ...]:
        """Return cosine and sine of the pole, and the velocity."""
        pole = w.data("xmat")[:, w.body("pole")]
        return pole[:, 2, 2:], pole[:, 0, 2:], w.qvel

    def reward(self, w: ClassicWorlds) -> tuple[Array, Infos]:
        """Return 1 while the pole is within 8° of the top."""
        cosine = w.data("xmat")[:, w.body("pole"), 2, 2]
        return tolerance(cosine, (float(np.cos(np.deg2rad(8))), 1)), {}

    def draw(self, rng: Generator, w: ClassicWorlds) -> tuple[Array, Array]:
        """Return a random angle."""
        return rng.uniform(-np.pi, np.pi, 1), w.init_qvel


SUITE: dict[str, Callable[..., SuiteTask]] = {
    "dm-cartpole-balance": partial(Cartpole, swing_up=False),
    "dm-cartpole-swingup": Cartpole,
    "dm-cheetah-run": Cheetah,
    "dm-walker-stand": partial(Walker, speed=0),
    "dm-walker-walk": Walker,
    "dm-walker-run": partial(Walker, speed=8),
    "dm-hopper-stand": partial(SuiteHopper, hops=False),
    "dm-hopper-hop": SuiteHopper,
    "dm-humanoid-stand": partial(SuiteHumanoid, speed=0),
    "dm-humanoid-walk": SuiteHumanoid,
    "dm-humanoid-run": partial(SuiteHumanoid, speed=10),
    "dm-quadruped-walk": SuiteQuadruped,
    "dm-quadruped-run": partial(SuiteQuadruped, speed=5),
    "dm-reacher-easy": SuiteReacher,
    "dm-reacher-hard": partial(SuiteReacher, target_size=0.015),
    "dm-finger-spin": Finger,
    "dm-acrobot-swingup": Acrobot,
    "dm-pendulum-swingup": Pendulum,
}
"""The tasks: "dm-", the domain and the task in dm_control."""
