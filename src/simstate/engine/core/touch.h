/* Contacts and limits that a step enters, for schemes that choose their steps. */
#ifndef SIMSTATE_CORE_TOUCH_H_
#define SIMSTATE_CORE_TOUCH_H_

#include "library.h"

/* The constraints of a model that can begin within a step. */
typedef struct {
  int num_pairs;
  int* pair;  /* geoms that can touch (num_pairs, 2) */
} core_touch_pairs;

/* A constraint of one side at the present state: a contact, or a limit. */
typedef struct {
  int64_t key;      /* equal for the contacts of one pair of geoms */
  mjtNum pos, vel;  /* distance beyond its margin, < 0 inside, and its rate */
} core_touch_row;

typedef struct {
  core_touch_row* row;  /* by key */
  int count, capacity;
} core_touch_set;

/* One world during a call. Its memory outlives the call, and grows as it is needed. */
typedef struct {
  const core_touch_pairs* pairs;
  core_touch_set known;  /* at the start of the step, and shortly before */
  core_touch_set found;  /* where it was looked at last */
  core_touch_set merged;
  mjtNum *start, *end;   /* (num_pairs, 3) at the step's start, where it was looked at:
                            gap, speed of the centres, of the surface's turning */
  double window;         /* for which a contact that ends is still known [s] */
  double known_since;    /* [s] */
  double guess;          /* time of the touch that is being located; INFINITY: none */
  double least;          /* step to try at least, as the guess was too early [s] */
  int num_misses;        /* trials since the last accepted step that entered one */
} core_touch;

/* Allocates the memory of a world, which is all zeros; returns 0 without memory. */
int core_touch_create(core_touch* t, const core_touch_pairs* pairs);
void core_touch_delete(core_touch* t);

/* Starts a call. `t` is NULL if no constraint can begin, as in all functions below. */
void core_touch_open(core_touch* t);

/* Notes the constraints of mjData, whose velocity stage is current, and at the start and
 * the end of a step how far pairs are apart. */
void core_touch_look(core_touch* t, const mjModel* m, const mjData* d, int is_end);

/* Starts a step at a time [s], at the state that was looked at last. */
void core_touch_begin(core_touch* t, double time);

/* Whether a constraint was found last that the start of the step did not have.
 *
 * `ago` becomes the time since it began [s], from depth and speed; 0: not known. */
int core_touch_enters(const core_touch* t, double* ago);

/* How far pairs have moved in a step of h [s] that ended where it was looked at last, in
 * units of what they may so that none passes through another: at most 1. */
double core_touch_travel(const core_touch* t, const mjModel* m, double h);

/* The shortest step at a time [s]: a touch is not located more closely. */
double core_touch_resolution(double time, double min_step);

/* Limits a step at a time to end just before the touch that is being located [s]. */
double core_touch_limit(const core_touch* t, double time, double h, double resolution);

/* Takes the result of a trial step from a time: it entered a constraint `after` [s]. */
void core_touch_locate(core_touch* t, double time, double after, double ago);

/* Ends an accepted step of h at a time [s]. */
void core_touch_end(core_touch* t, double time, double h, int has_entered);

#endif
