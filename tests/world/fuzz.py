"""Random calls on a simulation, each also made on plain MuJoCo, and compared."""

from __future__ import annotations

import random
from collections.abc import Callable

import mujoco
import numpy as np
import torch
import warp as wp
from tests.inside import columns_of
from tests.world.plain import PlainWorlds

from simstate import (
    ContactCfg,
    EntityCfg,
    OwnPattern,
    RayCastCfg,
    SceneCfg,
    SimStateError,
    Simulation,
    StaleReadError,
)

MODEL = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body name="trunk" pos=".1 -.2 .35" quat=".9 .1 -.3 .2">
      <freejoint name="root"/>
      <geom type="box" size=".1 .15 .05" mass="2.1" pos=".02 .01 -.01"/>
      <site name="tip" pos=".1 .05 .02"/>
      <body name="upper" pos=".12 0 0" quat=".8 .6 0 0">
        <joint name="shoulder" axis="0 1 0" damping=".2" range="-2 2"/>
        <geom type="capsule" fromto="0 0 0 .2 .02 0" size=".03" mass=".4"/>
        <body name="lower" pos=".2 .02 0">
          <joint name="elbow" type="ball" damping=".1"/>
          <geom type="capsule" fromto="0 0 0 .1 .1 0" size=".02" mass=".3"/>
        </body>
      </body>
    </body>
    <body name="block" pos=".6 .1 .1"><freejoint/>
      <geom type="box" size=".07 .05 .04" mass=".5" pos="0 .01 0"/></body>
    <body name="mark" mocap="true" pos="1 1 1">
      <geom size=".02" mass=".1" pos=".01 0 .02" contype="0" conaffinity="0"/></body>
  </worldbody>
  <actuator>
    <position name="servo" joint="shoulder" kp="4" gear="2"/>
    <general name="slow" joint="shoulder" dyntype="filter" dynprm=".1" gainprm="2"/>
  </actuator>
  <sensor><framelinvel objtype="site" objname="tip"/><gyro site="tip"/></sensor>
</mujoco>
"""
SCENE = SceneCfg(
    entities={"model": EntityCfg(model=MODEL)},
    contacts={"limbs": ContactCfg(of="model/(block|upper|lower)", history=2)},
    rays={
        "scan": RayCastCfg(
            body="model/upper",
            pos=(0.02, -0.01, 0.1),
            pattern=OwnPattern(directions=[(0, 0.1, -1), (1, 0.2, 0), (0.3, -1, -0.5)]),
            exclude="model/(upper|lower)",
        )
    },
)
NUM_ENVS = 3
_FIELDS = ("qpos", "qvel", "ctrl", "act", "xfrc_applied", "qfrc_applied", "mocap_pos")


class Fuzz:
    """One sequence: a simulation, its twin in plain MuJoCo, and random calls on both.

    On native the states are compared bit for bit; on warp, which is another engine,
    the twin takes the simulation's state over after each step.
    """

    def __init__(self, sim: Simulation, seed: int) -> None:
        self.sim = sim
        self.plain = PlainWorlds(sim.model, NUM_ENVS)
        self.draw = random.Random(seed)
        self.exact = sim.engine_name == "native"
        self.robot = sim.scene["model"]
        self.memory = sim.memory("fuzz", (2,), reset=[1.5, -2.0])
        self.prefix = "model/" if sim.contacts else ""
        """What the names of its elements begin with in the scene's model."""
        self.plain.watch(
            [
                sim.model.body(name).id
                for sensor in sim.contacts.values()
                for name in sensor.element_names
            ]
        )
        self.kept: list[tuple] = []
        self.calls: list[str] = []

    def run(self, length: int) -> None:
        for _ in range(length):
            call = self.draw.choice(_CALLS)
            self.calls.append(call.__name__)
            call(self)
            self.compare()

    def compare(self) -> None:
        got = self.sim.state.double().numpy()
        want = self.plain.rows()
        if self.exact:
            np.testing.assert_array_equal(got, want, err_msg=str(self.calls))
        else:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(self.memory.numpy(), self.plain.memory)
        if self.plain.watched:
            limbs = self.sim.contacts["limbs"]
            names = ("air_time", "contact_time", "last_air_time", "last_contact_time",
                     "greatest_force")  # fmt: skip
            clocks = np.stack([limbs.read(name).numpy() for name in names], axis=1)
            np.testing.assert_allclose(
                clocks, self.plain.clocks, 1e-9, 1e-9, err_msg=str(self.calls)
            )

    # Worlds.

    def worlds(self) -> tuple[object, list[int]]:
        """Some worlds in one of the forms that `env_ids` takes, and their numbers."""
        ids = self.draw.sample(range(NUM_ENVS), self.draw.randint(1, NUM_ENVS))
        mask = torch.zeros(NUM_ENVS, dtype=torch.bool)
        mask[ids] = True
        form = self.draw.randrange(6)
        if form == 0:
            return None, list(range(NUM_ENVS))
        if form == 1:
            return mask, sorted(ids)
        if form == 2:
            return slice(ids[0], None), list(range(ids[0], NUM_ENVS))
        return [ids, torch.tensor(ids), np.array(ids)][form % 3], ids

    @property
    def shoulder(self) -> str:
        return f"{self.prefix}shoulder"

    def cast(self, value: float) -> float:
        """The value as the engine's dtype keeps it."""
        return float(torch.tensor(value, dtype=self.sim.dtype))

    def number(self) -> float:
        return round(self.draw.uniform(-0.5, 0.5), 3)

    # Calls that change something.

    def step(self) -> None:
        n = self.draw.randint(1, 3)
        env_ids, ids = self.worlds()
        self.sim.step(n, env_ids)
        self.plain.step(n, ids)
        if not self.exact:
            for world in ids:
                row, want = (
                    self.sim.state[world].double().numpy(),
                    self.plain.row(world),
                )
                columns = columns_of(self.sim)
                for name in ("time", "qpos", "qvel", "act"):  # the rest is not motion
                    part = columns[name]
                    np.testing.assert_allclose(row[part], want[part], 2e-3, 2e-2)
                self.plain.write_row(world, row.copy())

    def raw_write(self) -> None:
        name = self.draw.choice(_FIELDS)
        field = getattr(self.sim.data, name)
        element = tuple(self.draw.randrange(size) for size in field.shape)
        value = float(field[element]) + self.number()
        way = self.draw.randrange(7)
        if way == 0:
            field[element] = value
        elif way == 1:
            field[element[0]].view(-1)[_flat(field, element)] = value
        elif way == 2:
            field.index_put_(tuple(torch.tensor(i) for i in element),
                             torch.tensor(value, dtype=field.dtype))  # fmt: skip
        elif way == 3:
            rows = self.sim.state
            start = columns_of(self.sim)[name].start
            rows[element[0], start + _flat(field, element)] = value
        elif way == 4:
            field.numpy()[element] = value
            self.sim.forward()
        elif way == 5:
            field.data[element] = value
            self.sim.forward()
        else:
            wp.init()
            wp.to_torch(wp.from_torch(field, requires_grad=False))[element] = value
            self.sim.forward()
        stored = float(getattr(self.sim.data, name)[element])
        row = self.plain.row(element[0])
        columns = columns_of(self.sim)[name]
        row[columns.start + _flat(field, element)] = stored
        self.plain.write_row(element[0], row)

    def write_joints(self) -> None:
        env_ids, ids = self.worlds()
        pos = [[self.number()] for _ in ids]
        vel = [[self.number()] for _ in ids]
        self.robot.write_joint_state_to_sim(pos, vel, env_ids=env_ids)
        for k, world in enumerate(ids):
            data = self.plain.datas[world]
            data.joint(self.shoulder).qpos = np.float64(self.cast(pos[k][0]))
            data.joint(self.shoulder).qvel = np.float64(self.cast(vel[k][0]))

    def set_state(self) -> None:
        env_ids, ids = self.worlds()
        value = self.cast(self.number())
        state = {"robots": {"model": {"dof_pos": {"shoulder": value}}}}
        self.sim.set_states(state, env_ids)
        for world in ids:
            self.plain.datas[world].joint(self.shoulder).qpos = value

    def write_rows(self) -> None:
        env_ids, ids = self.worlds()
        row = self.sim.state[self.draw.randrange(NUM_ENVS)].clone()
        row[1] += self.number()
        self.sim.write_state(row[None], env_ids)
        for world in ids:
            self.plain.write_row(world, row.double().numpy().copy())

    def parameter(self) -> None:
        name = self.draw.choice(("body_mass", "body_ipos", "dof_damping", "geom_size"))
        tensor = self.sim.expand(name)
        element = tuple(self.draw.randrange(1, size) for size in tensor.shape[1:])
        if len(element) == 2:
            element = (element[0], self.draw.randrange(tensor.shape[2]))
        world = self.draw.randrange(NUM_ENVS)
        value = self.cast(float(tensor[(world, *element)]) + 0.01)
        if self.draw.random() < 0.5:
            tensor[(world, *element)] = value
        else:
            whole = tensor[[world]][:, [element[0]]].clone()
            whole[(0, 0, *element[1:])] = value
            self.sim.write_parameter(name, whole, [element[0]], [world])
        self.plain.write_parameter(world, name, element, value)

    def remember(self) -> None:
        world, value = self.draw.randrange(NUM_ENVS), self.number()
        self.memory[world, 1] = value
        self.plain.memory[world, 1] = float(self.memory[world, 1])

    def reset(self) -> None:
        env_ids, ids = self.worlds()
        self.sim.reset(env_ids)
        self.plain.reset(ids)
        if not self.exact:
            for world in ids:
                row = self.sim.state[world].double().numpy()
                self.plain.write_row(world, row.copy())

    def save(self) -> None:
        env_ids, ids = self.worlds()
        self.kept.append((self.sim.snapshot(env_ids), self.plain.snapshot(), ids))

    def restore(self) -> None:
        if not self.kept:
            return
        snapshot, plain, taken = self.draw.choice(self.kept)
        given = self.draw.sample(range(NUM_ENVS), len(taken))
        self.sim.restore(snapshot, given)
        self.plain.restore(plain, taken, given)

    # Calls that change nothing.

    def read(self) -> None:
        world = self.draw.randrange(NUM_ENVS)
        data = self.plain.evaluated(world)
        name = self.draw.choice(("xpos", "xipos", "cvel", "subtree_com", "site_xpos"))
        self.close(lambda: getattr(self.sim.data, name)[world], getattr(data, name))
        body = self.draw.randrange(1, self.sim.model.nbody)
        xbody, com = mujoco.mjtObj.mjOBJ_XBODY, mujoco.mjtObj.mjOBJ_BODY
        link = self.plain.velocity(world, body, xbody)
        self.close(lambda: self.robot.data.body_link_vel_w[world, body - 1], link)
        centre = self.plain.velocity(world, body, com)
        self.close(lambda: self.robot.data.body_com_vel_w[world, body - 1], centre)
        self.close(lambda: self.robot.data.joint_pos[world], data.qpos[7:8])

    def read_acceleration(self) -> None:
        world = self.draw.randrange(NUM_ENVS)
        self.sim.forward()
        want = self.plain.evaluated(world).qacc
        self.close(lambda: self.sim.data.qacc[world], want, 1e-2)

    def read_dynamics(self) -> None:
        world = self.draw.randrange(NUM_ENVS)
        model, data = self.plain.models[world], self.plain.evaluated(world)
        body = self.draw.randrange(1, model.nbody)
        name, matrix = self.robot.body_names[body - 1], np.zeros((6, model.nv))
        mujoco.mj_jacBody(model, data, matrix[:3], matrix[3:], body)
        self.close(lambda: self.robot.jacobian(name)[world], matrix)
        full = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, full)
        self.close(lambda: self.sim.dynamics.mass_matrix[world], full)
        mujoco.mj_energyPos(model, data)
        potential = data.energy[:1].copy()
        self.close(lambda: self.sim.dynamics.potential_energy[[world]], potential)
        if self.exact:
            count = np.array([float(data.ncon)])
            self.close(
                lambda: torch.tensor([float(len(self.sim.contact_table([world])))]),
                count,
            )

    def read_rays(self) -> None:
        if not self.sim.rays:
            return
        scan, world = self.sim.rays["scan"], self.draw.randrange(NUM_ENVS)
        model, data = self.plain.models[world], self.plain.evaluated(world)
        body = model.body("model/upper").id
        turn = data.xmat[body].reshape(3, 3)
        start = data.xpos[body] + turn @ np.array([0.02, -0.01, 0.1])
        kept = model.geom_group.copy()
        model.geom_group[:] = 0
        hidden = {body, model.body("model/lower").id}
        model.geom_group[np.isin(model.geom_bodyid, list(hidden))] = 3
        want = np.full(3, 100.0)
        for k, along in enumerate([(0, 0.1, -1), (1, 0.2, 0), (0.3, -1, -0.5)]):
            way, geom = turn @ (along / np.linalg.norm(along)), np.zeros(1, np.int32)
            group = np.array([1, 1, 1, 0, 1, 1], np.uint8)
            found = mujoco.mj_ray(model, data, start, way, group, 1, -1, geom)
            want[k] = found if 0 <= found <= 100.0 else 100.0
        model.geom_group[:] = kept
        self.close(lambda: scan.distance[world], want)
        self.close(lambda: scan.origin_w[world], np.tile(start, (3, 1)))

    def close(
        self, read: Callable[[], torch.Tensor], want: np.ndarray, warp: float = 2e-3
    ) -> None:
        try:
            got = read()
        except StaleReadError:
            assert self.sim.freshness == "strict"
            self.sim.forward()
            got = read()
        scale = 1.0 + np.abs(want).max(initial=0.0)
        error = np.abs(got.double().numpy() - want.reshape(got.shape)).max(initial=0.0)
        assert error <= (1e-11 if self.exact else warp) * scale, self.calls

    def mistake(self) -> None:
        nan = float("nan")
        wrong = self.draw.choice(
            [
                lambda: self.robot.write_joint_position_to_sim([[0.1, 0.2]]),
                lambda: self.robot.write_joint_position_to_sim([[nan]]),
                lambda: self.robot.write_root_link_pose_to_sim([[0.0] * 7]),
                lambda: self.robot.write_joint_state_to_sim([[0.1]], [[nan]]),
                lambda: self.sim.step(0),
                lambda: self.sim.step(1, [NUM_ENVS]),
                lambda: self.sim.reset([0, 0]),
                lambda: self.sim.expand("body_masss"),
                lambda: self.sim.write_parameter("body_mass", [[nan]], [1]),
                lambda: self.sim.set_states([{"robots": {"model": {"pos": [1.0]}}}]),
                lambda: self.sim.write_state(torch.zeros(1, 3, dtype=self.sim.dtype)),
                lambda: self.sim.memory("fuzz", (5,)),
                lambda: self.sim.data.qposs,
                lambda: self.robot.find_joints("shoulderr"),
            ]
        )
        try:
            wrong()
        except SimStateError:
            return
        raise AssertionError(f"a mistake was taken: {self.calls}")


def _flat(field: torch.Tensor, element: tuple[int, ...]) -> int:
    """The position of an element within its world's values."""
    return int(np.ravel_multi_index(element[1:], field.shape[1:]))


_CALLS = [
    *[Fuzz.step] * 4, *[Fuzz.raw_write] * 4, *[Fuzz.read] * 4, Fuzz.write_joints,
    Fuzz.set_state, Fuzz.write_rows, Fuzz.parameter, Fuzz.remember, Fuzz.reset,
    Fuzz.save, Fuzz.restore, Fuzz.read_acceleration,
    Fuzz.read_dynamics, Fuzz.read_rays, Fuzz.mistake,
]  # fmt: skip
