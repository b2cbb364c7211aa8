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
enum { CORE_QPOS, CORE_QVEL, CORE_ACT, CORE_MASS, CORE_PROCESSES, CORE_NUM_BLOCKS };

/* Numbers of each world that evolve with the mechanics. */
typedef struct {
  int width;
  int first;           /* index of its first number among those of all processes */
  double* value;       /* of world 0 */
  size_t stride;       /* to the next world */
  const double* rate;  /* (num_worlds, width), written after each evaluation; NULL: a
                          moving frame, which falls by the loads that name it */
} core_process;

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
  const double *atol, *rtol;  /* by dof: qpos, qvel, act, all masses, processes */
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
  int num_processes, process_width;      /* the numbers of all of them */
  core_process* process;
  double* mass_rate;                     /* of world 0 (nbody); NULL: masses are fixed */
  size_t mass_rate_stride;               /* to the next world */
  double* total_mass_rate;               /* the same, with the loads', last evaluation */
  double* least_mass;                    /* below which a body has run out (likewise) */
  uint8_t* empty;                        /* (num_worlds, nbody) */
  int num_constants;
  core_constant* constant;               /* body_mass and body_inertia among them */
  const mjModel* shared;                 /* the batch's own model */

  int num_contacts;
  const core_contacts** contacts;        /* what looks at the evaluations */
  int64_t* evaluations;                  /* (num_worlds) */
  core_control control;
  core_touch_pairs pairs;                /* what an adaptive scheme may run into */
  core_touch* touch;                     /* (num_worlds); NULL: nothing */
  const struct core_method* method;      /* of the present call */
  int has_calls;                         /* Python is called before each evaluation */
  const core_outputs* outputs;           /* NULL: refresh and copy nothing */

  int64_t num_steps;                     /* of one call */
  double step;                           /* fixed [s] */
  double span;                           /* adaptive [s] */
  const double* own_step;                /* (num_worlds) [s]: one step, no longer than this,
                                            of each world; NULL: those above */
  int64_t budget;                        /* evaluations of a world in one call */
} core_integrator;

/* The progress of a world in a call. Between two evaluations of the dynamics it awaits
 * that of `stage`, with state and time there. */
typedef struct {
  int is_open, is_done;
  int stage;
  mjtNum start;               /* time at the start of a fixed step, or of the call [s] */
  double h;                   /* the present step [s] */
  int64_t num_steps;          /* fixed: those that are left */
  double span, elapsed, step_size;  /* adaptive [s] */
  int is_single, is_finished, is_stuck;
  int64_t accepted, rejected, evaluations;
  int is_located;             /* a contact that begins in the trial is to be located */
  int is_empty;               /* a mass ran out since this was set to 0 */
  double worst;               /* the error of the last trial over its tolerance */
  int worst_part, worst_element;
} core_progress;

/* One world during a call: where its state is, and the stages of a step. */
typedef struct {
  const core_integrator* in;
  const mjModel* m;
  mjData* d;
  int world;
  core_progress* at;
  core_touch* touch;          /* NULL: no contact or limit can begin */
  int width[CORE_NUM_BLOCKS]; /* the number of rates of each block */
  int size[CORE_NUM_BLOCKS];  /* the number of coordinates */
  mjtNum* value[CORE_NUM_BLOCKS];  /* live */
  mjtNum* origin[CORE_NUM_BLOCKS]; /* at the step's start */
  mjtNum* rates[CORE_NUM_BLOCKS];  /* (stages, width) */
  mjtNum* sum;                /* of the rates of one block */
  mjtNum* turn;               /* rotation vectors from the step's start (quats, 3) */
  mjtNum* process;            /* values of all processes */
  mjtNum* xfrc;               /* the loads that the user set (nbody, 6) */
  mjtNum *ctrl, *qfrc;        /* likewise (nu), (nv); NULL: no load changes them */
  mjtNum* mass_rate;          /* with the loads' (nbody); NULL: masses are fixed */
  mjtNum *mass_before, *inertia, *state; /* if masses flow */
  mjtNum *error, *error_size; /* of one part, by dof; adaptive */
  mjtNum* memory;             /* of a step that takes several calls; NULL: mjData's */
  size_t numbers;             /* taken of it so far */
} core_world;

/* How steps follow each other. `begin` is called at the start of a call, `next` when a
 * stage has been evaluated and recorded: it moves to the next one, or ends the call. */
typedef struct core_method {
  void (*begin)(core_world* w);
  void (*next)(core_world* w);
  void (*end)(core_world* w);
} core_method;
extern const core_method core_fixed, core_adaptive;

/* mjfBatchFunc of an integrator: all evaluations of a world, without Python. */
void core_integrate_world(const mjModel* m, mjData* d, int world, void* integrator);

/* One evaluation of all worlds; others write the inputs in between. */
typedef struct {
  core_integrator in;
  core_progress* progress;    /* (num_worlds) */
  mjtNum* memory;             /* (num_worlds, core_world_numbers) */
  size_t numbers;
  int segment;                /* the calls so far at this evaluation */
  int needs;                  /* of the loads before a call (CORE_…) */
  const core_outputs* outputs;
} core_round;

/* mjfBatchFuncs of a round, in this order.
 *
 * `prepare`, before a call that needs it: brings positions, velocities and outputs up to
 * date, adds the loads that precede the call, and writes the points of fields that it
 * samples. `evaluate`: adds the other loads, evaluates the dynamics and moves on, unless
 * the rates of processes are not known yet: then `move` does, when they are. It has
 * mjData of other worlds, so derived values stay those of the last evaluation. */
void core_round_prepare(const mjModel* m, mjData* d, int world, void* round);
void core_round_evaluate(const mjModel* m, mjData* d, int world, void* round);
void core_round_move(const mjModel* m, mjData* d, int world, void* round);

/* Whether rates of processes are written after each evaluation. */
int core_has_called_rates(const core_integrator* in);

size_t core_world_numbers(const core_integrator* in);

/* Opens a world on mjData's stack, or in memory that outlives a call of it. */
void core_world_open(core_world* w, const core_integrator* in, const mjModel* m,
                     mjData* d, int world, core_progress* at, mjtNum* memory);

/* Starts a step where the state is now. */
void core_begin(core_world* w);

/* Evaluates the dynamics with the loads after `segment` calls, and records its rates. */
void core_evaluate(core_world* w, int segment);

/* Takes the rates of a stage: those of the mechanics from mjData, those of processes. */
void core_record_mechanics(core_world* w);
void core_record_processes(core_world* w);

/* Takes the rates of the last stage as those of the first, after core_begin. */
void core_reuse_last(core_world* w);

/* value = origin ⊕ h Σ weights · rates, over the first `count` stages. */
void core_displace(core_world* w, const double* weights, int count, mjtNum h);

/* Moves back to the step's start. */
void core_go_back(core_world* w);

/* Σ weights · rates of a block; overwritten by the next call. */
const mjtNum* core_combine(core_world* w, int block, const double* weights, int count);

void core_clamp_activations(core_world* w);

/* Does at a step's end what MuJoCo does: clamps activations, keeps a warm start. */
void core_finish(core_world* w);

/* Advances the observers of contacts by `passed` seconds. */
void core_note_step(core_world* w, double passed);

/* Hands over what a world has beyond its mjData: processes and masses. */
void core_world_store(core_world* w);

#endif
