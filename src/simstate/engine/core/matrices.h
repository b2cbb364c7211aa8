/* Matrices of joint space, from the bound fields. */
#ifndef SIMSTATE_CORE_MATRICES_H_
#define SIMSTATE_CORE_MATRICES_H_

#include <stddef.h>

/* Points that move with bodies. */
typedef struct {
  size_t num_worlds, num_points, num_dofs;
  const double* cdof;              /* (worlds, dofs, 6), at the centre of a tree */
  const double* pos;               /* (worlds, elements, 3) */
  const double* com;               /* (worlds, bodies, 3): subtree_com */
  const double* moves;             /* (bodies, dofs): 0 where a dof does not move it */
  size_t num_elements, num_bodies;
  const int *element, *body, *root; /* of each point */
} core_points;

/* Their Jacobians, linear then angular, world axes; out is (worlds, points, 6, dofs). */
void core_jacobians(const core_points* p, double* out);

/* Entries of rows, 0 where a place is -1; out is (worlds, entries). */
void core_entries(const double* rows, const int* place, size_t num_worlds,
                  size_t width, size_t num_entries, double* out);

#endif
