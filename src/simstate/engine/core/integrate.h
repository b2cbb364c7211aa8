/* Explicit Runge-Kutta schemes over the whole state of a world. */
#ifndef SIMSTATE_CORE_INTEGRATE_H_
#define SIMSTATE_CORE_INTEGRATE_H_

#include "loads.h"
#include "step.h"
#include "touch.h"

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

/* The numbers of the state that a tableau moves. Positions come first. */
enum { CORE_QPOS, CORE_QVEL, CORE_ACT, CORE_MASS, CORE_FRAMES, CORE_NUM_BLOCKS };

/* A model parameter that mj_setConst computes.
 *
 * Those of each world are kept; the others are brought back to the model's, because a
 * thread's model serves many worlds. */
typedef struct {
  size_t offset;   /* in mjModel */
  size_t bytes;    /* of one world */
  char* to;        /* (num_worlds, bytes); NULL: all worlds have the model's */
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
  const double *atol, *rtol;  /* by dof: qpos, qvel, act, all masses, moving frames */
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
  int changes_inputs;                    /* whether loads change controls and qfrc */
  int num_frames;
  double** frame;                        /* each (num_worlds, 6) */
  double* mass_rate;                     /* (num_worlds, nbody); NULL: masses are fixed */
  double* total_mass_rate;               /* the same, with the loads', last evaluation */
  double* least_mass;                    /* below which a body has run out (likewise) */
  uint8_t* empty;                        /* (num_worlds, nbody) */
  int num_constants;
  core_constant* constant;               /* body_mass and body_inertia among them */
  const mjModel* shared;                 /* the batch's own model */

  int64_t* evaluations;                  /* (num_worlds) */
  core_control control;
  core_touch_pairs pairs;                /* what an adaptive scheme may run into */
  core_touch* touch;                     /* (num_worlds); NULL: nothing */
  const core_outputs* outputs;           /* NULL: refresh and copy nothing */

  int num_steps;                         /* of one call */
  double step;                           /* fixed [s] */
  double span;                           /* adaptive [s] */
  const double* own_step;                /* (num_worlds) [s]: one step, at most so long,
                                            of each world; NULL: those above */
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
  mjtNum *ctrl, *qfrc;        /* likewise (nu), (nv); NULL: no load changes them */
  mjtNum* mass_rate;          /* with the loads' (nbody); NULL: masses are fixed */
  mjtNum *mass_before, *inertia, *state; /* if masses flow */
  int64_t evaluations;
  int is_empty;               /* a mass ran out since this was set to 0 */
  mjtNum *memory, *start;     /* of a step that takes several calls; NULL: it does not */
} core_world;

/* One stage of a step of all worlds; between two of them somebody writes the inputs. */
typedef struct {
  core_integrator in;
  mjtNum* memory;             /* (num_worlds, core_world_numbers) */
  size_t numbers;
  int stage, is_end;          /* is_end: of the last step: refresh and copy out */
  const mjtNum* inputs;       /* (num_worlds, num_inputs): what the user had set */
  int first_input, num_inputs;
} core_stage;

size_t core_world_numbers(const core_integrator* in);
void core_world_reopen(core_world* w, const core_integrator* in, const mjModel* m,
                       mjData* d, int world, mjtNum* memory);

/* mjfBatchFunc: evaluates the stage with the inputs that are there, moves to the next. */
void core_stage_world(const mjModel* m, mjData* d, int world, void* stage);

void core_world_open(core_world* w, const core_integrator* in, const mjModel* m,
                     mjData* d, int world);

/* Starts a step where the state is now. */
void core_begin(core_world* w);

/* Evaluates the dynamics at the present time and state. */
void core_evaluate(core_world* w, int with_sensors);

/* The same with the inputs that are there: loads are added to them. */
void core_evaluate_inputs(core_world* w, int with_sensors);

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
