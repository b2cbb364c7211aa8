/* What contact sensors remember: clocks, the greatest force, past forces. */
#include <math.h>
#include <string.h>

#include "contacts.h"

static double* row_of(const core_rows* rows, int world) {
  return rows->at + (size_t)world * rows->stride;
}

/* The net force by an element, on all other sides. */
static void net_force(const core_contacts* c, const mjData* d, int element,
                      double force[3]) {
  force[0] = force[1] = force[2] = 0;
  for (int j = 0; j < c->num_others; j++) {
    int i = element * c->num_others + j;
    if (c->sensor[i] < 0) continue;
    for (int k = 0; k < 3; k++) force[k] += d->sensordata[c->column[i] + k];
  }
}

static double norm_of(const double force[3]) {
  return sqrt(force[0] * force[0] + force[1] * force[1] + force[2] * force[2]);
}

/* One of two clocks: it runs, or it ends and is kept. */
static void go_on(double* clock, double* last, int runs, double passed) {
  if (*clock > 0 && !runs) *last = *clock;
  *clock = runs ? *clock + passed : 0;
}

/* Advances the clocks of an element, and keeps the latest force on it. */
static void remember(const core_contacts* c, int world, int element, int touches,
                     const double force[3], double passed) {
  go_on(row_of(&c->air_time, world) + element,
        row_of(&c->last_air_time, world) + element, !touches, passed);
  go_on(row_of(&c->contact_time, world) + element,
        row_of(&c->last_contact_time, world) + element, touches, passed);
  if (!c->num_past) return;
  double* past = row_of(&c->force_history, world) + 3 * element;
  for (int k = 0; k < 3; k++) past[k] = -force[k];
}

static void shift_history(const core_contacts* c, int world) {
  if (!c->num_past) return;
  double* past = row_of(&c->force_history, world);
  size_t size = 3 * (size_t)c->num_elements;
  memmove(past + size, past, sizeof *past * size * (size_t)(c->num_past - 1));
}

void core_note_contacts(const core_contacts* c, const mjData* d, int world,
                        double passed, int is_first) {
  double* greatest = row_of(&c->greatest_force, world);
  shift_history(c, world);
  for (int i = 0; i < c->num_elements; i++) {
    double force[3];
    net_force(c, d, i, force);
    double norm = norm_of(force);
    if (is_first || norm > greatest[i] || isnan(norm)) greatest[i] = norm;
    remember(c, world, i, norm > c->threshold, force, passed);
  }
}

void core_look_at_contacts(const core_contacts* c, const mjData* d, int world) {
  for (int i = 0; i < c->num_elements; i++) {
    ptrdiff_t at = (ptrdiff_t)world * c->num_elements + i;
    double *force = c->shown_force + 3 * at, *greatest = c->shown_greatest + at;
    net_force(c, d, i, force);
    double norm = norm_of(force);
    if (norm > *greatest || isnan(norm)) *greatest = norm;
    c->shown_touching[at] |= norm > c->threshold;
  }
}

void core_note_shown(const core_contacts* c, int world, double passed) {
  double* greatest = row_of(&c->greatest_force, world);
  shift_history(c, world);
  for (int i = 0; i < c->num_elements; i++) {
    ptrdiff_t at = (ptrdiff_t)world * c->num_elements + i;
    greatest[i] = c->shown_greatest[at];
    remember(c, world, i, c->shown_touching[at], c->shown_force + 3 * at, passed);
    c->shown_touching[at] = 0;
  }
}

/* Whether a side of a contact belongs to what a sensor names; geom -1: a flex. */
static int belongs(const mjModel* m, int geom, int type, int id) {
  if (type == mjOBJ_UNKNOWN) return 1;
  if (geom < 0) return 0;
  if (type == mjOBJ_GEOM) return geom == id;
  int body = m->geom_bodyid[geom];
  if (type == mjOBJ_BODY) return body == id;
  while (body > id) body = m->body_parentid[body]; /* a subtree: mjOBJ_XBODY */
  return body == id;
}

int core_contact_side(const mjModel* m, const mjContact* contact, int sensor) {
  int type = m->sensor_objtype[sensor], id = m->sensor_objid[sensor];
  int other_type = m->sensor_reftype[sensor], other = m->sensor_refid[sensor];
  int first = contact->geom[0], second = contact->geom[1];
  if (belongs(m, first, type, id) && belongs(m, second, other_type, other)) return 1;
  if (belongs(m, second, type, id) && belongs(m, first, other_type, other)) return -1;
  return 0;
}

void core_net_forces(const core_contacts* c, const mjModel* m, mjData* d) {
  int num = c->num_elements * c->num_others;
  for (int i = 0; i < num; i++) {
    if (c->sensor[i] >= 0) memset(d->sensordata + c->column[i], 0, 3 * sizeof(mjtNum));
  }
  for (int k = 0; k < d->ncon; k++) {
    mjtNum local[6], force[3];
    int is_known = 0;
    for (int i = 0; i < num; i++) {
      int side = c->sensor[i] < 0 ? 0 : core_contact_side(m, d->contact + k, c->sensor[i]);
      if (!side) continue;
      if (!is_known) {
        lib.mj_contactForce(m, d, k, local);
        lib.mju_mulMatTVec3(force, d->contact[k].frame, local);
        is_known = 1;
      }
      mjtNum* sum = d->sensordata + c->column[i];
      for (int j = 0; j < 3; j++) sum[j] += side * force[j];
    }
  }
}
