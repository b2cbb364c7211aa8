/* Quantities of frames, computed from the bound fields. */
#ifndef SIMSTATE_CORE_READS_H_
#define SIMSTATE_CORE_READS_H_

#include <stddef.h>

typedef enum {
  CORE_TAKE = 0,         /* some numbers of each element: positions, joints */
  CORE_QUAT = 1,         /* orientations, wxyz */
  CORE_POSE = 2,         /* positions and orientations */
  CORE_VEL = 3,          /* velocities of points, then angular ones, world axes */
  CORE_LIN_VEL_B = 4,    /* velocities of points, along the base's axes */
  CORE_ANG_VEL_B = 5,    /* angular velocities, along the base's axes */
  CORE_DIRECTION_B = 6,  /* a vector of the world, along the base's axes */
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

/* Computes it; out has (worlds, count, width) numbers. */
void core_run_read(const core_read* read, int num_worlds, double* out);

#endif
