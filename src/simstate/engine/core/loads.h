/* Force models as data. */
#ifndef SIMSTATE_CORE_LOADS_H_
#define SIMSTATE_CORE_LOADS_H_

#include "include/simstate/force.h"
#include "library.h"

typedef enum {
  CORE_UNIFORM_GRAVITY = 0,    /* parameters: acceleration (3) */
  CORE_POINT_GRAVITY = 1,      /* whether its gradient turns; (mu, x, y, z) of each mass */
  CORE_THRUSTER = 2,           /* force (3), point (3), mass flow, throttle, dry mass */
  CORE_DRAG = 3,               /* drag area, density, wind (3) */
  CORE_FIELD_GRAVITY = 4,      /* those of gravity.h, with a table */
  CORE_AIR_DRAG = 5,           /* drag area, wind (3), those of air.h, with a table */
  CORE_WHEELS = 6,             /* those of wheels.h, with a table */
  CORE_PANELS = 7,             /* those of air.h, then of each panel: normal (3), area,
                                * drag coefficient, centre (3); with air.h's table */
  CORE_FUNCTION = 8,           /* any; the table is a function's address, bit for bit */
  CORE_SAMPLED_GRAVITY = 9,    /* one, not used; the table says whether its gradient turns */
  CORE_AERODYNAMICS = 10,      /* those of flight.h, with a table */
  CORE_ROTOR = 11,             /* likewise; propellers are rotors */
  CORE_NUM_LOADS = 12,
} core_load_kind;

#define CORE_PANEL_NUMBERS 8 /* parameters of a panel */

/* A force model as data. Its parameters may differ from world to world. */
typedef struct {
  core_load_kind kind;
  int segment;                 /* the number of calls of Python that precede it */
  int frame;                   /* the first number of the moving frame that it acts in,
                                  among those of all processes; -1: the world */
  int num_bodies;
  const int* body;
  int num_parameters;
  const double* parameter;     /* of world 0 */
  size_t stride;               /* to the next world; 0: all have the same */
  const double* table;         /* numbers of all worlds; NULL: none */
  double* point;               /* (num_worlds, num_points, 3): where it is sampled */
  const double* sample;        /* the accelerations there */
  int num_points;
} core_load;

/* Adds the loads of some segments to xfrc_applied, those of wheels to ctrl and
 * qfrc_applied, and the mass flow to mass_rate (NULL: it has none).
 *
 * Needs the positions and velocities of the present state. `process` has the numbers of
 * all processes, position and velocity of each moving frame among them. */
void core_add_loads(const core_load* load, int num_loads, int first_segment,
                    int last_segment, const mjModel* m, mjData* d, int world,
                    const mjtNum* process, mjtNum* mass_rate);

/* Writes the points at which the sampled loads of a segment need accelerations: the
 * frame's origin, if any; each body's COM; and, if the gradient turns, six around it. */
void core_write_samples(const core_load* load, int num_loads, int segment,
                        const mjData* d, int world, const mjtNum* process);

/* The number of these points. */
int core_num_samples(const core_load* load);

/* The rate of a moving frame: its velocity, and the gravity at its origin. */
void core_frame_rate(const core_load* load, int num_loads, int frame, int world,
                     mjtNum time, const mjtNum value[6], mjtNum rate[6]);

#endif
