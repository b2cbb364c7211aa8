/* Steps of MuJoCo's own, and the fields that are read after them. */
#ifndef SIMSTATE_CORE_STEP_H_
#define SIMSTATE_CORE_STEP_H_

#include "contacts.h"
#include "library.h"

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

/* Kinds of outputs: accelerations and forces, and what a refresh brings up to date. */
enum { CORE_EVALUATED = 1, CORE_REFRESHED = 2 };

typedef struct {
  size_t offset;
  int is_scalar;
  size_t bytes;    /* of one world */
  char* to;        /* (num_worlds, bytes) */
  int kind;        /* CORE_EVALUATED or CORE_REFRESHED */
} core_output;

typedef struct {
  int num_outputs;
  core_output* output;
  int needs;
} core_outputs;

/* Copies a world's bound fields of some kinds out of its mjData, as mjb_step does. */
void core_copy_out(const core_outputs* outputs, const mjData* d, int world, int kinds);

/* Fields that are kept as the last evaluation of the dynamics left them. */
typedef struct {
  core_outputs outputs;
  int after_constraints; /* some of them mj_rnePostConstraint computes */
} core_kept;

typedef struct {
  const core_kept* kept;
  int after_constraints; /* run mj_rnePostConstraint, as is done after a step */
} core_evaluation;

/* mjfBatchFunc: mj_forward at the present state, for the kept fields alone. */
void core_evaluate_world(const mjModel* m, mjData* d, int world, void* evaluation);

typedef struct {
  int64_t all_steps;            /* of the call, which may take several rounds */
  int num_steps;                /* of this round */
  int is_first, is_last;        /* round; the last step's sensors are read */
  const core_outputs* outputs;  /* NULL: refresh and copy nothing */
  const core_kept* kept;        /* copied before the refresh, with the outputs */
  int num_contacts;
  const core_contacts* const* contacts;  /* what looks at the steps */
  int num_other_sensors;  /* before those of contacts, which the core then senses itself;
                             -1: MuJoCo evaluates them all */
} core_step;

/* mjfBatchFunc: num_steps × mj_step, then the refresh and the outputs. */
void core_step_world(const mjModel* m, mjData* d, int world, void* step);

#endif
