"""Calls that are interrupted anywhere have happened wholly or not at all."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence

import pytest
import torch
from tests.raised import raises
from tests.soak import SOAK
from tests.tracer import lines_of, traced

from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation, integrate
from simstate.base.errors import InvalidInputError, ThreadError
from simstate.env import Env, tasks

pytestmark = pytest.mark.fast

ROBOT = """
<mujoco>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body name="base" pos="0 0 .4" quat="0.8 0.2 -0.4 0.4">
      <freejoint/>
      <geom type="box" size=".1 .2 .3" mass="2" pos=".03 -.02 .05"/>
      <body name="arm" pos=".3 0 0">
        <joint name="hinge" axis="0 1 0" damping=".1"/>
        <geom size=".05" mass=".5" pos=".1 .02 0"/>
      </body>
    </body>
    <body name="target" mocap="true"/>
  </worldbody>
  <actuator><position name="servo" joint="hinge" kp="3" gear="2"/></actuator>
</mujoco>
"""


class Leak(integrate.Process):
    """What is left in a tank that leaks."""

    def rate(self, t, sim):
        return -0.3 * self.value


def make(engine: str = "native", integrator=None, num_envs: int = 3) -> Simulation:
    scene = SceneCfg(
        entities={"robot": EntityCfg(model=ROBOT)}, ground=False, timestep=0.004
    )
    sim = Simulation(
        scene, num_envs, engine=engine, integrator=integrator, on_divergence="mask"
    )
    spread = torch.linspace(-1.0, 1.0, num_envs * 7, dtype=sim.dtype)
    sim.data.qvel[:] = spread.reshape(num_envs, 7)
    sim.expand("body_mass")[:, 1] *= torch.linspace(0.8, 1.3, num_envs).to(sim.dtype)
    sim.memory("mine", (2,), reset=3.0)
    if integrator is not None:
        tank = Leak("tank", [1.0])
        sim.add_process(tank)
        sim.mass_rate[:, 2] = -0.1

        def push(t, sim):
            sim.data.xfrc_applied[:, 1, 1] += tank.value[:, 0]
            sim.mass_rate[:, 1] -= 0.05

        sim.add_force(push)
    sim.step(3)
    return sim


def slots(sim: Simulation) -> dict[str, torch.Tensor]:
    return sim.snapshot().slots


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(
        torch.equal(one[name], other[name]) for name in one
    )


def whole_or_nothing(
    sim: Simulation,
    call: Callable[[], object],
    most: int,
    seed: int = 0,
    seconds: Sequence[bool] = (False, True),
) -> None:
    """Interrupt a call at each line, or at `most` of them, and once more after that.

    Each is interrupted a second time, within 25 lines, for each True in `seconds`.
    """
    start = sim.snapshot()
    call()
    done = sim.snapshot()
    twin = {"start": start.slots, "done": done.slots}
    names = ("body_link_pose_w", "body_link_vel_w", "joint_pos_target", "body_mass",
             "root_com_lin_vel_b")  # fmt: skip
    data = sim.scene["robot"].data

    def derived() -> dict[str, torch.Tensor]:
        return {name: data.read(name).clone() for name in names}

    sim.restore(start)
    reads = {"start": derived()}
    sim.restore(done)
    reads["done"] = derived()
    sim.restore(start)
    total = lines_of(call)
    sim.restore(start)
    draw = random.Random(seed)
    lines = range(total)
    most *= SOAK
    if total > most:
        lines = sorted(draw.sample(lines, most))
    seen = set()
    for line in lines:
        for twice in seconds:
            more = (line + 1 + draw.randrange(25),) if twice else ()
            places = traced(call, line, *more).places
            got = derived()  # the first read comes before any other call
            now = slots(sim)
            states = [name for name, want in twin.items() if same(now, want)]
            assert states, (places, [n for n in now if not torch.equal(now[n],
                                     start.slots.get(n, now[n]))])  # fmt: skip
            assert all(torch.equal(got[n], reads[states[0]][n]) for n in names), places
            seen.add(states[0])
            sim.restore(start)
    assert "start" in seen


INTEGRATORS = (
    None, integrate.RK4(), integrate.DP54(atol=1e-6, rtol=1e-6), integrate.SRIW1()
)  # fmt: skip


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_step_that_is_interrupted(integrator):
    sim = make(integrator=integrator)
    whole_or_nothing(sim, lambda: sim.step(2), 60, seconds=[False])


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_step_that_is_interrupted_twice(integrator):
    sim = make(integrator=integrator)
    whole_or_nothing(sim, lambda: sim.step(2), 60, seconds=[True])


def test_a_step_that_is_interrupted_on_warp():
    sim = make("warp")
    whole_or_nothing(sim, lambda: sim.step(2), 12)


def test_a_step_of_some_worlds_that_is_interrupted():
    sim = make()
    whole_or_nothing(sim, lambda: sim.step(1, env_ids=[2, 0]), 60)


def test_a_step_in_which_a_world_diverges_that_is_interrupted():
    sim = make()
    sim.data.qvel[1, 3] = 1e9
    whole_or_nothing(sim, lambda: sim.step(30), 60)
    sim.step(30)
    assert sim.diverged.tolist() == [False, True, False]


def test_other_calls_that_are_interrupted(engine):
    sim = make(engine)
    robot = sim.scene["robot"]
    other = sim.snapshot([1])
    states = sim.get_states()
    sim.step(2)
    robot.data.default_joint_pos[2] += 0.4
    most = 40 if engine == "native" else 6
    pose = robot.data.root_link_pose_w[[2, 0]].clone() + 0.01
    calls = [
        lambda: sim.reset([2, 0]),
        lambda: sim.restore(other, [0, 2]),
        lambda: sim.set_states(states),
        lambda: robot.write_root_state_to_sim(torch.ones(1, 13), env_ids=[1]),
        lambda: robot.write_root_link_pose_to_sim(pose, env_ids=[2, 0]),
        lambda: robot.write_joint_state_to_sim([[0.1]], [[0.2]]),
        lambda: sim.write_parameter("body_mass", [[3.0]], [2], [1]),
        lambda: sim.write_state(sim.state[[1]] + 0.25, [2]),
    ]
    for call in calls:
        whole_or_nothing(sim, call, most)


def test_an_environment_that_is_interrupted():
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.episode_length_s = 0.3
    env = Env(cfg, num_envs=3, seed=4)
    draw = random.Random(1)
    action = torch.linspace(-1, 1, 3)[:, None]
    for _ in range(13):
        env.step(action)
    start = env.snapshot()
    for call in (lambda: env.step(action), lambda: env.reset(env_ids=[1], seed=3)):
        call()
        done = env.snapshot()
        env.restore(start)
        total = lines_of(call)
        env.restore(start)
        for line in draw.sample(range(total), min(total, 60 * SOAK)):
            for second in ((), (line + 1 + draw.randrange(25),)):
                places = traced(call, line, *second).places
                now = env.snapshot().slots
                assert same(now, start.slots) or same(now, done.slots), places
                env.restore(start)


def test_a_term_that_raises_leaves_the_environment_as_it_was():
    cfg = tasks.make_cfg("Cartpole-Balance")
    bad = {"now": False}

    def fails(env):
        env.scene["robot"].write_joint_position_to_sim([[0.5, 0.5]])
        if bad["now"]:
            raise RuntimeError("out of luck")
        return torch.zeros(env.num_envs)

    from simstate.env import RewardTermCfg

    cfg.rewards["fails"] = RewardTermCfg(fails, weight=1.0)
    env = Env(cfg, num_envs=3)
    env.step(torch.ones(3, 1))
    before = env.snapshot().slots
    bad["now"] = True
    with pytest.raises(RuntimeError, match="luck"):
        env.step(torch.ones(3, 1))
    assert same(env.snapshot().slots, before)
    bad["now"] = False
    env.step(torch.ones(3, 1))


def test_a_force_model_that_raises_leaves_the_simulation_as_it_was():
    sim = make(integrator=integrate.RK4())
    calls = {"left": 5}

    def fails(t, sim):
        calls["left"] -= 1
        if calls["left"] == 0:
            raise RuntimeError("out of fuel")

    sim.add_force(fails)
    before = slots(sim)
    with pytest.raises(RuntimeError, match="fuel"):
        sim.step(2)
    assert same(slots(sim), before)
    sim.step(2)


def test_a_step_within_a_step_is_refused():
    sim = make(integrator=integrate.RK4())
    sim.add_force(lambda t, sim: sim.step())
    before = slots(sim)
    with raises(InvalidInputError, name="sim.step"):
        sim.step()
    assert same(slots(sim), before)


def test_one_simulation_in_two_threads_raises():
    sim = make(integrator=integrate.RK4())
    inside, go_on = threading.Event(), threading.Event()

    def wait(t, sim):
        inside.set()
        go_on.wait(20)

    sim.add_force(wait)
    thread = threading.Thread(target=sim.step)
    thread.start()
    assert inside.wait(20)
    robot = sim.scene["robot"]
    for call in (
        sim.step,
        sim.reset,
        sim.forward,
        sim.snapshot,
        lambda: robot.data.root_link_pos_w,
        lambda: robot.write_joint_position_to_sim([[0.1]]),
    ):
        with raises(ThreadError, name="an evaluation of force models"):
            call()
    go_on.set()
    thread.join()
    sim.step()
    assert sim.time.tolist() == pytest.approx([0.02] * 3)


def test_two_simulations_in_two_threads():
    alone = make(num_envs=2)
    alone.step(300)
    sims = [make(num_envs=2) for _ in range(3)]
    threads = [threading.Thread(target=sim.step, args=(300,)) for sim in sims]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for sim in sims:
        assert torch.equal(sim.state, alone.state)


def test_memory_is_part_of_the_world(tmp_path):
    scene = SceneCfg(
        entities={
            "c": EntityCfg(model="cube", init_state=InitialStateCfg(pos=(0, 0, 1)))
        }
    )
    sim = Simulation(scene, 4)
    sums = sim.memory("sums", (3,), reset=[1.0, 2.0, 3.0], unit="N·s")
    flag = sim.memory("flag", dtype=torch.bool, reset=None)
    drawn = sim.memory("drawn", reset=lambda ids: ids.double() * 10)
    assert sim.memory("sums", (3,)) is sums
    sums += torch.arange(12).reshape(4, 3)
    flag[2] = True
    drawn += 5.0
    snapshot = sim.snapshot()
    assert snapshot.header["slots"]["memory/sums"]["unit"] == "N·s"
    sim.reset([3, 1])
    assert sums[3].tolist() == [1.0, 2.0, 3.0]
    assert sums[2].tolist() == [7.0, 9.0, 11.0]
    assert flag.tolist() == [False, False, True, False]
    assert drawn.tolist() == [5.0, 10.0, 5.0, 30.0]
    sim.restore(snapshot)
    assert sums[3].tolist() == [10.0, 12.0, 14.0]
    with raises(InvalidInputError, name="sums"):
        sim.memory("sums", (4,))
    with raises(InvalidInputError, name="memory/more"):
        sim.memory("more", (3,), reset=[1.0, 2.0])
