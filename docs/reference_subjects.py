"""The subjects of the reference: the headings of each page with their names in order.

A module that is not listed shows its names in the order of its file. `EXAMPLES` has
the code at the top of each page, which the tests run.
"""

from __future__ import annotations

ERRORS = (
    "SimStateError InvalidInputError UnknownNameError ShapeError ModelError "
    "SceneMismatchError StaleReadError DivergenceError IntegrationError CouplingError "
    "ConventionError SnapshotError RecordingError FileError TaskError ThreadError"
)
FRAMES = (
    "ecef_from_eci eci_from_ecef ned_from_ecef ecef_from_ned rtn_from_eci eci_from_rtn "
    "lvlh_from_eci eci_from_lvlh rot_rtn_eci rot_lvlh_eci rot_ned_fixed orbit_rate "
    "geodetic_from_position position_from_geodetic"
)

_SUBJECTS: dict[str, dict[str, str]] = {
    "simstate": {
        "Worlds": "Simulation NativeCfg WarpCfg",
        "Scenes": "SceneCfg EntityCfg InitialStateCfg CollisionCfg CameraCfg "
        "ContactCfg",
        "Entities and quantities": "Entity EntityData Quantity explain",
        "Actuators": "PositionActuatorCfg VelocityActuatorCfg MotorActuatorCfg "
        "DcMotorActuatorCfg",
        "Rays": "RayCastCfg GridPattern LidarPattern DownwardRingPattern "
        "OutwardRingPattern OwnPattern",
        "Errors": ERRORS,
        "Compiled forces": "get_include",
    },
    "simstate.scene": {
        "Compiled scenes": "build_scene BuiltScene EntityIndex Elements",
        "Parts of a configuration": "ModelSource ActuatorCfg",
    },
    "simstate.scene.terrain": {
        "Terrain": "TerrainCfg Terrain Boxes GENERATORS BOX_GENERATORS Generator "
        "BoxGenerator",
    },
    "simstate.state": {
        "Snapshots": "Snapshot take_snapshot restore_snapshot",
        "Unified states": "State RobotState ObjectState BodyState CameraState "
        "TensorState EntityTensors CameraTensors ImageSource",
        "Reading and writing": "StateSource read_states write_states state_dicts",
        "Differences": "diff Diff Difference",
    },
    "simstate.integrate": {
        "Choosing an integrator": "scheme SCHEMES STOCHASTIC_SCHEMES ATTITUDE_MODES "
        "Integrator report ConservationReport",
        "Fixed steps": "Euler Midpoint Heun RK4 Explicit Tableau",
        "Adaptive steps": "BS32 RKF45 DP54 RKF78 DOP853 Adaptive",
        "Gravity and moving frames": "UniformGravity PointMassGravity CentralGravity "
        "ThirdBody Gravity MovingFrame",
        "Other forces": "Thruster Drag JointTargets ForceModel Parameters Strong",
        "Compiled forces": "compile_force CompiledFunction CFunction get_include",
        "Events, tasks, histories": "Event PeriodicTask History",
        "Processes and noise": "Process OrnsteinUhlenbeck GeometricBrownian "
        "DrivingNoise brownian_integrals",
        "Stochastic schemes, strong": "EulerMaruyama EulerHeun RKMilstein SRA1 SOSRA "
        "SRIW1 SOSRI Stochastic StochasticTableau",
        "Stochastic schemes, weak": "PlatenWeak2 RDI1WM DRI1 DRI1NM RI1 RI3 RI5 RI6 "
        "RS1 RS2 W2Ito1 W2Ito2 SIEA SIEB SMEA SMEB",
        "Positions as one block": "QPosState QuaternionBlock",
    },
    "simstate.env": {
        "Environments": "Env EnvCfg SceneEntityCfg EndedEpisodes",
        "Observations": "ObservationGroupCfg ObservationTermCfg UniformNoise "
        "GaussianNoise SensorNoise",
        "Rewards, terminations, events": "RewardTermCfg TerminationTermCfg "
        "MetricTermCfg EventTermCfg CurriculumTermCfg",
        "Actions": "JointPositionActionCfg RelativeJointPositionActionCfg "
        "JointVelocityActionCfg JointEffortActionCfg JointPdActionCfg "
        "ActuatorNetworkActionCfg ControlActionCfg TaskSpaceActionCfg "
        "BodyWrenchActionCfg",
        "Commands": "VelocityCommandCfg HeadingCommandCfg AttitudeCommandCfg "
        "PointCommandCfg PoseCommandCfg GaitCommandCfg MotionCommandCfg",
        "Writing terms": "contract Contract either mirrors moves_com",
        "Training": "TrainCfg SymmetryCfg",
    },
    "simstate.flight": {
        "Aircraft": "FreeFlight FlightState AircraftCfg ControlCfg",
        "Loads": "Load LoadModel Aerodynamics Table Rotor Propeller",
        "Air": "Air AirState Atmosphere StandardAtmosphere ExponentialAtmosphere "
        "WindField DrydenTurbulence VonKarmanTurbulence",
        "Trim and modes": "trim_flight linearise_flight flight_modes FlightModes",
        "Axes and constants": "EARTH AIRFRAME STANDARD_GRAVITY",
    },
    "simstate.space": {
        "Planets": "Planet EARTH MOON MARS MU_SUN",
        "Orbits": "OrbitalElements elements_from_state propagate_kepler j2_rates "
        "SecularRates",
        "Gravity fields": "HarmonicGravity HarmonicCoefficients earth_coefficients "
        "zonal_coefficients read_gfc",
        "Time, rotation, ephemerides": "Epoch Rotation UniformRotation EarthRotation "
        "Ephemeris sun moon spice_body",
        "Frames and positions": FRAMES,
        "Air and drag": "PlanetAir PanelDrag box_panels",
        "Parts of a spacecraft": "ReactionWheelCfg ReactionWheels ControlMomentGyroCfg "
        "ThrusterCfg pulses",
        "Sensors": "Gyro StarTracker NoisySensor",
    },
    "simstate.study": {
        "Futures": "futures Futures",
        "Derivatives": "derivatives Derivatives differentiable DifferentiableRollout",
        "Identification": "identify",
    },
    "simstate.math.conventions": {
        "Conventions": "Convention Attitude PRESETS MUJOCO MUJOCO_QVEL ISAACLAB_2 "
        "ISAACLAB_3 ROS PX4 PTERA DRAKE PINOCCHIO PYBULLET AEROSANDBOX",
        "States": "RigidBodyState convert convert_inertia join difference "
        "StateDifference R_to_quat_wxyz",
        "Energy and momenta": "kinetic_energy linear_momentum angular_momentum",
    },
    "simstate.simulators": {
        "Making a simulator": "make info SIMULATORS SimulatorInfo Capabilities Missing "
        "MissingSimulatorError features Simulator EntityNames",
        "Comparing": "align Alignment SimulatorAlignment",
        "Moving states": "save_states load_states carry replay follow JointMap "
        "joint_maps",
        "Writing an adapter": "register AdaptedSimulator AdaptedMechanics plain_mjcf "
        "PlainMjcf",
    },
}

SUBJECTS = {
    module: {heading: names.split() for heading, names in subjects.items()}
    for module, subjects in _SUBJECTS.items()
}
"""Names of a module in order, by heading."""

ELSEWHERE = {
    "simstate.env.observations": "../terms.md#observations",
    "simstate.env.rewards": "../terms.md#rewards",
    "simstate.env.terminations": "../terms.md#terminations",
    "simstate.env.events": "../terms.md#events",
    "simstate.env.curricula": "../terms.md#curricula",
}
"""Modules whose names are listed on another page."""

FIRST = {
    "simstate.train": "training_run run_cfg evaluate policy_file checkpoint_policy "
    "onnx_export onnx_policy run_records video",
    "simstate.data": "replay datasets logs ray",
    "simstate.study": "planners linear dispersions identification oracles",
    "simstate.math": "quaternion transform euler inertia conventions",
}
"""Submodules that come first, in this order; the others follow by name."""

INTERNAL = {
    "simstate.train": "algorithm core_seconds episodes explicit_ppo film interrupt "
    "run_file run_memory sweep_cells training_logs",
    "simstate.interop": "gymnasium_spaces picture_network rsl_rl_changes "
    "trained_worlds",
}
"""Submodules of packages without `__all__` that users do not import."""

_SIM = """\
from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation

home = InitialStateCfg(keyframe="home")
scene = SceneCfg(entities={"robot": EntityCfg(model="quadruped", init_state=home)})
sim = Simulation(scene, num_envs=4)
"""

EXAMPLES = {
    "simstate": _SIM
    + """\
robot = sim.scene["robot"]
robot.set_joint_position_target(robot.data.default_joint_pos)
sim.step(4)
print(robot.data.root_link_lin_vel_b.shape)  # m/s, link origin, root link's axes
# torch.Size([4, 3])
""",
    "simstate.scene": """\
from simstate import EntityCfg, SceneCfg
from simstate.scene import build_scene, models

print(models.NAMES[:3])
# ('arm', 'cartpole', 'cube')
built = build_scene(SceneCfg(entities={"pole": EntityCfg(model="cartpole")}))
print(built.model.nq)
# 2
""",
    "simstate.entity": _SIM
    + """\
robot = sim.scene["robot"]
ids, names = robot.find_joints("FL_.*")
print(names, robot.data.joint_pos[:, ids].shape)
# ['FL_hip', 'FL_thigh', 'FL_calf'] torch.Size([4, 3])
""",
    "simstate.entity.dynamics": _SIM
    + """\
robot = sim.scene["robot"]
print(robot.dynamics.mass_matrix.shape, sim.dynamics.kinetic_energy.shape)
# torch.Size([4, 18, 18]) torch.Size([4])
""",
    "simstate.entity.explanation": """\
import simstate

meaning = simstate.explain("humanoid")["qvel[4]"]
print(meaning.axes, meaning.unit)
# body rad/s
""",
    "simstate.state": _SIM
    + """\
from simstate.state import Snapshot, diff

before = sim.get_states()
sim.snapshot().save("start.npz")
sim.step(10)
sim.restore(Snapshot.load("start.npz"))
print(diff(before, sim.get_states()).max_error)
# 0.0
""",
    "simstate.sensors": """\
from simstate import ContactCfg, EntityCfg, SceneCfg, Simulation

feet = ContactCfg(of="robot/.*_calf", against="ground")
scene = SceneCfg(
    entities={"robot": EntityCfg(model="quadruped")}, contacts={"feet": feet}
)
sim = Simulation(scene, num_envs=2)
sim.step(200)
print(sim.contacts["feet"].force_w.shape)  # N, on each element, world axes
# torch.Size([2, 4, 3])
""",
    "simstate.integrate": """\
from simstate import EntityCfg, SceneCfg, Simulation, integrate

space = SceneCfg(
    entities={"satellite": EntityCfg(model="satellite")},
    ground=False,
    gravity=(0, 0, 0),
)
sim = Simulation(space, num_envs=2, integrator=integrate.DP54(atol=1e-9))
sim.run(until=1.0)
print(sim.time.tolist())
# [1.0, 1.0]
""",
    "simstate.env": """\
import torch

from simstate.env import Env, tasks

env = Env(tasks.make_cfg("Cartpole-Balance"), num_envs=8, seed=1)
seen, reward, terminated, truncated, extras = env.step(torch.zeros(8, env.action_dim))
print(seen["policy"].shape, reward.shape)
# torch.Size([8, 4]) torch.Size([8])
""",
    "simstate.train": """\
from simstate.env import tasks

print(tasks.find("Cartpole-Balance").train_cfg().iterations)
# 100
""",
    "simstate.flight": """\
from simstate.flight import FreeFlight, Load

flight = FreeFlight(
    mass=1.5,
    inertia=[[0.13, 0, 0], [0, 0.1, 0], [0, 0, 0.22]],
    num_envs=2,
    velocity_E__E=(12.0, 0.0, 0.0),
)
flight.add_load(lambda t, state: Load(force=-0.1 * state.velocity_BP1__E))
flight.step(10)
print(flight.get_state().omegas_BP1__E.shape)  # deg/s, body axes
# torch.Size([2, 3])
""",
    "simstate.space": """\
from simstate import space

orbit = space.OrbitalElements.of(semi_major_axis=7e6, eccentricity=0.01)
position, velocity = orbit.state()  # m and m/s, inertial axes
print(round(float(position.norm()) / 1e3), "km", round(float(orbit.period)), "s")
# 6930 km 5829 s
""",
    "simstate.study": """\
import torch

from simstate import EntityCfg, SceneCfg, Simulation, study

sim = Simulation(SceneCfg(entities={"cart": EntityCfg(model="cartpole")}))
controls = torch.linspace(-1, 1, 5).reshape(1, 5, 1, 1).expand(1, 5, 20, 1)
futures = study.futures(sim, controls.double(), read={"angle": "cart.joint_pos"})
print(futures.angle.shape, study.derivatives(sim).A.shape)
# torch.Size([1, 5, 20, 2]) torch.Size([1, 4, 4])
""",
    "simstate.math": """\
import torch

from simstate.math import quaternion

quat = quaternion.from_rotation_vector(torch.tensor([0.0, 0.0, torch.pi / 2]))
print(quaternion.rotate(quat, torch.tensor([1.0, 0.0, 0.0])).round(decimals=6).tolist())
# [0.0, 1.0, 0.0]
""",
    "simstate.record": _SIM
    + """\
from simstate.record import Recording

with sim.record("run.simrec", quantities=["robot.joint_pos"]):
    sim.step(5)
recording = Recording("run.simrec")
print(recording["joint_pos"].shape, recording.units["robot.joint_pos"])
# torch.Size([2, 4, 12]) rad
""",
    "simstate.data": _SIM
    + """\
from simstate.data.replay import replay

with sim.record("run.simrec", quantities=["robot.joint_pos"]):
    sim.step(5)
print(replay("run.simrec").is_same)
# True
""",
    "simstate.view": _SIM
    + """\
from simstate.view import Orbit

picture = sim.render(camera=Orbit(150, -15), width=160, height=120)
print(picture.shape)
# (120, 160, 3)
""",
    "simstate.simulators": """\
from simstate import simulators

drake = simulators.info("drake")
print("mjx" in simulators.SIMULATORS, drake.title, drake.capabilities.dtype)
# True Drake float64
""",
    "simstate.interop": """\
import gymnasium

import simstate.interop.gymnasium  # registers the tasks

envs = gymnasium.make_vec("simstate/Cartpole-Balance-v0", num_envs=4)
seen, info = envs.reset(seed=0)
print(seen.shape)
# (4, 4)
""",
}
"""Code that the tests run, at the top of each page."""
