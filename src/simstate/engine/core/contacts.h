/* What contact sensors remember from one time step to the next. */
#ifndef SIMSTATE_CORE_CONTACTS_H_
#define SIMSTATE_CORE_CONTACTS_H_

#include "library.h"

/* Rows of numbers of the worlds, which lie among other columns. */
typedef struct {
  double* at;     /* of world 0 */
  size_t stride;  /* to the next world */
} core_rows;

/* One contact sensor: its elements, and the memory of each. */
typedef struct {
  int num_elements, num_others, num_past;
  int every_step;     /* whether it looks at each step of a call, or at the last */
  double threshold;   /* of a force that counts as touching [N] */
  const int* sensor;  /* (elements, others): MuJoCo's, of net forces; -1: none */
  const int* column;  /* of the same: the net force in sensordata */
  const int* single;  /* of the same: MuJoCo's sensors of the strongest contact */
  int first_sensor, num_sensors;  /* those that the core senses itself; none: 0 */
  core_rows air_time, contact_time, last_air_time, last_contact_time, greatest_force;
  core_rows force_history; /* (past, elements, 3), the latest first */
  /* What evaluations have shown so far, for schemes with several in a step. */
  double* shown_force;     /* (worlds, elements, 3): by the elements, the latest */
  double* shown_greatest;  /* (worlds, elements): in the call */
  uint8_t* shown_touching; /* (worlds, elements): since the last step was noted */
} core_contacts;

/* Advances by `passed` seconds with the forces that an evaluation has left in d.
 *
 * `is_first`: it is the first look in a call, from which the greatest force counts. */
void core_note_contacts(const core_contacts* c, const mjData* d, int world,
                        double passed, int is_first);

/* Looks at the forces that an evaluation within a step has left in d. */
void core_look_at_contacts(const core_contacts* c, const mjData* d, int world);

/* Advances by `passed` seconds with the results of a step's evaluations. */
void core_note_shown(const core_contacts* c, int world, double passed);

/* 1 where the first side of a contact is what a sensor names, -1 for the second, 0: none.
 */
int core_contact_side(const mjModel* m, const mjContact* contact, int sensor);

/* Writes the net forces of an evaluation into sensordata, as mj_sensorAcc does. */
void core_net_forces(const core_contacts* c, const mjModel* m, mjData* d);

/* Sets which of its sensors the core can sense itself: all of them, or none. */
void core_find_sensed(core_contacts* c, const mjModel* m);

/* Writes all that its sensors have into sensordata, with mj_sensorAcc's bits. */
void core_sense_contacts(const core_contacts* c, const mjModel* m, mjData* d);

#endif
