/* What the files of the compiled core share.
 *
 * The core runs C functions on the worlds of a batch through libmujoco's mjb_apply.
 * It is not linked with libmujoco: Python hands over the addresses of the functions
 * that MuJoCo's own package has loaded, so that both work on one library.
 */
#ifndef SIMSTATE_CORE_H_
#define SIMSTATE_CORE_H_

#include <stddef.h>
#include <stdint.h>

#include <mujoco/mjbatch.h>
#include <mujoco/mujoco.h>

_Static_assert(sizeof(mjtNum) == sizeof(double), "MuJoCo in double precision");

/* Exported by libmujoco, but in no public header: y = A x in compressed rows. */
void mju_mulMatVecSparse(mjtNum* res, const mjtNum* mat, const mjtNum* vec, int nr,
                         const int* rownnz, const int* rowadr, const int* colind,
                         const int* rowsuper);

/* ------------------------------------------------------------------ library.c */

#define CORE_FUNCTIONS(X)                                                            \
  X(mj_version) X(mj_step) X(mj_forwardSkip) X(mj_checkPos) X(mj_checkVel)           \
  X(mj_checkAcc) X(mj_Euler) X(mj_RungeKutta) X(mj_implicit)     \
  X(mj_fwdKinematics) X(mj_transmission) X(mj_comVel) X(mj_fwdPosition)              \
  X(mj_fwdVelocity) X(mj_sensorPos) X(mj_sensorVel) X(mj_energyPos) X(mj_energyVel)  \
  X(mju_mulMatVecSparse) X(mj_setConst) X(mj_getState) X(mj_setState)                \
  X(mj_markStack) X(mj_freeStack) X(mj_stackAllocNum) X(mj_kinematics) X(mj_comPos)  \
  X(mj_flex) X(mj_jac) X(mj_ray) X(mjb_makeBatch) X(mjb_deleteBatch) X(mjb_nstate)   \
  X(mjb_state) X(mjb_warning) X(mjb_status) X(mjb_error) X(mjb_output)               \
  X(mjb_expand) X(mjb_setConst) X(mjb_step) X(mjb_forward) X(mjb_apply)              \
  X(mjb_getModel) X(mjb_getData) X(mjb_nthread) X(mjb_model)

/* Variables of libmujoco that hold functions of the user. */
#define CORE_CALLBACKS(X)                                                            \
  X(mjcb_passive) X(mjcb_control) X(mjcb_contactfilter) X(mjcb_sensor) X(mjcb_time)  \
  X(mjcb_act_dyn) X(mjcb_act_gain) X(mjcb_act_bias)

typedef struct {
#define X(name) __typeof__(&name) name;
  CORE_FUNCTIONS(X)
#undef X
#define X(name) void** name;
  CORE_CALLBACKS(X)
#undef X
  void (**mju_user_warning)(const char*);
  const void* own_timer;  /* what mjcb_time holds when the user has set nothing */
} core_library;

extern core_library lib;

extern const char* const core_symbols[]; /* in the order of core_connect; NULL ends */

/* Takes the addresses of core_symbols, and the timer that is libmujoco's own. */
void core_connect(void* const* address, const void* own_timer);

/* Whether the user has installed a physics callback of any kind. */
int core_has_callbacks(void);

/* ----------------------------------------------------------- fields.c, refresh.c */

/* What must be computed at a new state so that the bound fields are those of it. */
enum {
  CORE_KINEMATICS = 1,         /* positions, orientations, tendons, cameras, lights */
  CORE_TRANSMISSION = 2,       /* lengths of actuators */
  CORE_VELOCITY = 4,           /* velocities of bodies */
  CORE_TENDON_VELOCITY = 8,
  CORE_ACTUATOR_VELOCITY = 16,
  CORE_SENSORS = 32,           /* of positions and velocities */
  CORE_ALL = 64,               /* the whole velocity stage: masses, contacts, forces */
};

/* Where mjData keeps a field, and what brings it up to date. */
typedef struct {
  size_t offset;   /* in mjData: of the pointer to it, or of the number itself */
  int is_scalar;
  int needs;       /* CORE_… */
} core_field;

/* Finds a field of mjData; 0 if there is none of that name. */
int core_find_field(const char* name, core_field* found);

/* The offset in mjModel of the pointer to a field; 0 if there is none. */
size_t core_model_offset(const char* name);

/* What the model's sensors of positions and velocities need. */
int core_sensor_needs(const mjModel* m);

/* Computes what `needs` says at the present state, with MuJoCo's bits. */
void core_refresh(const mjModel* m, mjData* d, int needs);

/* ------------------------------------------------------------------ outputs.c */

typedef struct {
  size_t offset;
  int is_scalar;
  size_t bytes;    /* of one world */
  char* to;        /* (num_worlds, bytes) */
} core_output;

typedef struct {
  int num_outputs;
  core_output* output;
  int needs;
} core_outputs;

/* Copies a world's bound fields out of its mjData, as mjb_step does. */
void core_copy_out(const core_outputs* outputs, const mjData* d, int world);

/* --------------------------------------------------------------------- step.c */

/* Elements of a field whose greatest norm over the substeps is kept. */
typedef struct {
  size_t offset;
  int start, width;
} core_group;

typedef struct {
  int num_groups;
  const core_group* group;
  double* greatest;  /* (num_worlds, num_groups); NaN once a norm was */
} core_maxima;

typedef struct {
  int num_steps;
  int is_last;                  /* the call's last steps: their sensors are read */
  const core_outputs* outputs;  /* NULL: refresh and copy nothing */
  const core_maxima* maxima;    /* NULL: keep none */
} core_step;

/* mjfBatchFunc: num_steps × mj_step, then the refresh and the outputs. */
void core_step_world(const mjModel* m, mjData* d, int world, void* step);

/* ----------------------------------------------------------------- attitude.c */

typedef enum { CORE_MANIFOLD = 0, CORE_HIGH_ORDER = 1, CORE_LIE = 2 } core_attitude;

/* The rate of a quaternion's coordinates from the angular velocity, body axes.
 *
 * `turn` is the rotation vector from the step's start; `rate` has 3 numbers, or 4 in
 * high-order mode. */
void core_attitude_rate(core_attitude mode, const mjtNum quat[4], const mjtNum turn[3],
                        const mjtNum angvel[3], mjtNum* rate);

/* quat = origin displaced by h · move; `turn` becomes the rotation vector. */
void core_attitude_displace(core_attitude mode, const mjtNum origin[4],
                            const mjtNum* move, mjtNum h, mjtNum turn[3],
                            mjtNum quat[4]);

/* ------------------------------------------------------------------ reads.c */

typedef enum {
  CORE_TAKE = 0,         /* some numbers of each element: positions, joints */
  CORE_QUAT = 1,         /* orientations, wxyz */
  CORE_POSE = 2,         /* positions and orientations */
  CORE_LIN_VEL = 3,      /* velocities of points, world axes */
  CORE_VEL = 4,          /* the same, then angular velocities */
  CORE_LIN_VEL_B = 5,    /* velocities of points, along the base's axes */
  CORE_ANG_VEL_B = 6,    /* angular velocities, along the base's axes */
  CORE_DIRECTION_B = 7,  /* a vector of the world, along the base's axes */
} core_read_kind;

/* Rows of a field. */
typedef struct {
  const double* at;  /* of world 0; NULL: not used */
  size_t stride;     /* to the next world; 0: all have the same */
} core_source;

/* One quantity: `count` elements of `width` numbers in each world. */
typedef struct {
  core_read_kind kind;
  int count, width;
  int each, first;            /* CORE_TAKE: numbers of an element, the first taken */
  int base;                   /* the body along whose axes it is */
  core_source source;         /* positions, a vector, or what is taken from */
  core_source quat, com, cvel, local;
  const int *element, *body, *root;
} core_read;

/* Computes them all; out has each quantity after the other, (worlds, count, width). */
void core_run_reads(const core_read* read, int num_reads, int num_worlds, double* out);

/* ------------------------------------------------------------------ loads.c */

typedef enum {
  CORE_UNIFORM_GRAVITY = 0,    /* parameters: acceleration (3) */
  CORE_POINT_GRAVITY = 1,      /* (mu, x, y, z) of each mass */
  CORE_THRUSTER = 2,           /* force (3), point (3), mass flow, throttle */
  CORE_DRAG = 3,               /* drag area, density, wind (3) */
  CORE_NUM_LOADS = 4,
} core_load_kind;

/* A force model as data. Its parameters may differ from world to world. */
typedef struct {
  core_load_kind kind;
  int frame;                   /* the moving frame that it acts in; -1: the world */
  int num_bodies;
  const int* body;
  int num_parameters;
  const double* parameter;     /* of world 0 */
  size_t stride;               /* to the next world; 0: all have the same */
} core_load;

/* Adds the loads to xfrc_applied and the mass flow to mass_rate (NULL: it has none).
 *
 * Needs the positions and velocities of the present state. `frame` has position and
 * velocity of each moving frame. */
void core_add_loads(const core_load* load, int num_loads, const mjModel* m, mjData* d,
                    int world, const mjtNum* frame, mjtNum* mass_rate);

/* The rate of a moving frame: its velocity, and the gravity at its origin. */
void core_frame_rate(const core_load* load, int num_loads, int frame, int world,
                     const mjtNum value[6], mjtNum rate[6]);


/* --------------------------------------------------------- integrate.c, state.c */

/* The numbers of the state that a tableau moves. Positions come first. */
enum { CORE_QPOS, CORE_QVEL, CORE_ACT, CORE_MASS, CORE_FRAMES, CORE_NUM_BLOCKS };

/* A model parameter that follows the masses. */
typedef struct {
  size_t offset;   /* in mjModel */
  size_t bytes;    /* of one world */
  char* to;        /* (num_worlds, bytes) */
} core_constant;

typedef struct {
  int num_stages;
  const double *a, *b, *c;             /* (stages, stages), (stages), (stages) */
  const double *b_error, *b_error_low; /* (stages) each; NULL: none */
  int control_order;
  int first_same_as_last;
  core_attitude attitude;
} core_scheme;

typedef struct {
  const double *atol, *rtol;  /* of each block, with each moving frame for itself */
  double min_step, max_step;
  double *step_size, *start, *elapsed;  /* (num_worlds) each */
  int64_t *accepted, *rejected;
  uint8_t *stuck, *unfinished;
  double* failure;     /* (num_worlds, 3): time, step, error over tolerance */
  int32_t* failure_at; /* (num_worlds, 2): block, element */
} core_control;

typedef struct {
  core_scheme scheme;

  int num_worlds, nq, nv, na, nbody, nstate;
  int num_flat, *flat_qpos, *flat_qvel;  /* positions that are plain numbers */
  int num_quats, *quat_qpos, *quat_qvel;
  double *act_low, *act_high;            /* (na); NULL: no activation is limited */

  int num_loads;
  core_load* load;
  int num_frames;
  double** frame;                        /* each (num_worlds, 6) */
  double* mass_rate;                     /* (num_worlds, nbody); NULL: masses are fixed */
  double* total_mass_rate;               /* the same, with the loads', last evaluation */
  uint8_t* empty;                        /* (num_worlds, nbody) */
  int num_constants;
  core_constant* constant;               /* body_mass and body_inertia among them */

  int64_t* evaluations;                  /* (num_worlds) */
  core_control control;
  const core_outputs* outputs;           /* NULL: refresh and copy nothing */

  int num_steps;                         /* of one call */
  double step;                           /* fixed [s] */
  double span;                           /* adaptive [s] */
  int64_t budget;                        /* evaluations of a world in one call */
} core_integrator;

/* One world during a call: where its state is, and the stages of a step. */
typedef struct {
  const core_integrator* in;
  const mjModel* m;
  mjData* d;
  int world;
  int width[CORE_NUM_BLOCKS]; /* the number of rates of each block */
  int size[CORE_NUM_BLOCKS];  /* the number of coordinates */
  mjtNum* value[CORE_NUM_BLOCKS];  /* live */
  mjtNum* origin[CORE_NUM_BLOCKS]; /* at the step's start */
  mjtNum* rates[CORE_NUM_BLOCKS];  /* (stages, width) */
  mjtNum* sum;                /* of the rates of one block */
  mjtNum* turn;               /* rotation vectors from the step's start (quats, 3) */
  mjtNum* frame;              /* position and velocity (frames, 6) */
  mjtNum* xfrc;               /* the loads that the user set (nbody, 6) */
  mjtNum* mass_rate;          /* with the loads' (nbody); NULL: masses are fixed */
  mjtNum *mass_before, *inertia, *state; /* if masses flow */
  int64_t evaluations;
  int is_empty;               /* a mass ran out since this was set to 0 */
} core_world;

void core_world_open(core_world* w, const core_integrator* in, const mjModel* m,
                     mjData* d, int world);

/* Starts a step where the state is now. */
void core_begin(core_world* w);

/* Evaluates the dynamics at the present time and state. */
void core_evaluate(core_world* w, int with_sensors);

/* Takes the rates of a stage; `limited`: none that leaves an activation's range. */
void core_record(core_world* w, int stage, int limited);

/* value = origin ⊕ h Σ weights · rates, over the first `count` stages. */
void core_displace(core_world* w, const double* weights, int count, mjtNum h);

/* Moves back to the step's start. */
void core_go_back(core_world* w);

/* Σ weights · rates of a block; overwritten by the next call. */
const mjtNum* core_combine(core_world* w, int block, const double* weights, int count);

void core_clamp_activations(core_world* w);

/* Does at a step's end what MuJoCo does: clamps activations, keeps a warm start. */
void core_finish(core_world* w);

/* Whether anything but MuJoCo reads time and state at the stages. */
int core_has_readers(const core_integrator* in);

/* Refreshes the bound fields, then hands the results over: until then nothing outside
 * of mjData is written, so that a world in which MuJoCo raises keeps all it had. */
void core_world_close(core_world* w);

/* mjfBatchFunc of a fixed scheme, and of an adaptive one. */
void core_fixed_world(const mjModel* m, mjData* d, int world, void* integrator);
void core_adaptive_world(const mjModel* m, mjData* d, int world, void* integrator);

#endif
