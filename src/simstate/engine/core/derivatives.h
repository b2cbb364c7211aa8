/* Derivatives of MuJoCo's own steps by centred differences, world by world. */
#ifndef SIMSTATE_CORE_DERIVATIVES_H_
#define SIMSTATE_CORE_DERIVATIVES_H_

#include "library.h"

typedef struct {
  int num_steps;            /* time steps between the state and its successor */
  int num_widths;           /* 1: ±width; 2: ±2 width as well */
  double width;             /* of the differences, in each coordinate's unit */
  int by_state, by_ctrl;    /* columns: displacements of positions, velocities and
                               activations; controls */
  double* out;              /* (worlds, widths, columns, 2 nv + na) */
  unsigned char* switched;  /* (worlds, columns): 1 if a constraint switched */
} core_derivatives;

/* mjfBatchFunc: perturbs the world's mjData and restores it. */
void core_differentiate_world(const mjModel* m, mjData* d, int world, void* derivatives);

/* mjfBatchFunc: evaluates the dynamics and writes the signature of the active
 * constraints into int64_t[num_worlds]. */
void core_signature_world(const mjModel* m, mjData* d, int world, void* signatures);

#endif
