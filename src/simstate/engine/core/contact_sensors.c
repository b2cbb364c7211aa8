/* MuJoCo's contact sensors in one look at the contacts, with mj_sensorAcc's bits. */
#include <math.h>
#include <string.h>

#include "contacts.h"

/* What simstate.scene.contact_sensors asks of MuJoCo, and how many numbers that is. */
enum {
  NET_DATA = 1 << mjCONDATA_FOUND | 1 << mjCONDATA_FORCE | 1 << mjCONDATA_TORQUE |
             1 << mjCONDATA_POS,
  SINGLE_DATA = NET_DATA | 1 << mjCONDATA_DIST | 1 << mjCONDATA_NORMAL |
                1 << mjCONDATA_TANGENT,
  NET_SIZE = 10,
  SINGLE_SIZE = 17,
  STRONGEST = 2, /* values of `reduce` */
  NET = 3,
};

static int is_of_kind(const mjModel* m, int sensor, int data, int reduce, int size) {
  const int* prm = m->sensor_intprm + (ptrdiff_t)mjNSENS * sensor;
  return prm[0] == data && prm[1] == reduce && m->sensor_dim[sensor] == size;
}

void core_find_sensed(core_contacts* c, const mjModel* m) {
  int count = 0, first = (int)m->nsensor;
  c->num_sensors = 0;
  for (int i = 0; i < c->num_elements * c->num_others; i++) {
    if (c->sensor[i] < 0) continue;
    if (!is_of_kind(m, c->sensor[i], NET_DATA, NET, NET_SIZE) ||
        !is_of_kind(m, c->single[i], SINGLE_DATA, STRONGEST, SINGLE_SIZE)) {
      return;
    }
    count += 2;
    if (c->sensor[i] < first) first = c->sensor[i];
    if (c->single[i] < first) first = c->single[i];
  }
  c->first_sensor = first;
  c->num_sensors = count;
}

/* A contact that a sensor counts. */
typedef struct {
  int id, side;
  mjtNum force[6]; /* along the axes of the contact */
  mjtNum size;
} match;

/* Where the net force acts: the mean of the points, weighted by their forces. */
static void write_net(const mjData* d, const match* found, int count, mjtNum* to) {
  mjtNum point[3] = {0, 0, 0}, total = 0;
  for (int i = 0; i < count; i++) {
    const mjtNum* pos = d->contact[found[i].id].pos;
    for (int k = 0; k < 3; k++) point[k] += found[i].size * pos[k];
    total += found[i].size;
  }
  mjtNum scale = 1 / (total > mjMINVAL ? total : mjMINVAL);
  for (int k = 0; k < 3; k++) point[k] *= scale;
  mjtNum *net_force = to + 1, *net_torque = to + 4;
  for (int i = 0; i < count; i++) {
    const mjContact* contact = d->contact + found[i].id;
    mjtNum force[3], torque[3], arm[3];
    lib.mju_mulMatTVec3(force, contact->frame, found[i].force);
    lib.mju_mulMatTVec3(torque, contact->frame, found[i].force + 3);
    for (int k = 0; k < 3; k++) {
      force[k] *= found[i].side;
      torque[k] *= found[i].side;
      arm[k] = contact->pos[k] - point[k];
    }
    const mjtNum turn[3] = {arm[1] * force[2] - arm[2] * force[1],
                            arm[2] * force[0] - arm[0] * force[2],
                            arm[0] * force[1] - arm[1] * force[0]};
    for (int k = 0; k < 3; k++) {
      net_force[k] += force[k];
      net_torque[k] += torque[k];
      net_torque[k] += turn[k];
    }
  }
  to[0] = count;
  memcpy(to + 7, point, sizeof point);
}

/* The first of those with the greatest force; its axes are turned to the named side. */
static void write_strongest(const mjData* d, const match* found, int count, mjtNum* to) {
  const match* best = found;
  for (int i = 1; i < count; i++) {
    if (found[i].size > best->size) best = found + i;
  }
  const mjContact* contact = d->contact + best->id;
  to[0] = count;
  memcpy(to + 1, best->force, sizeof best->force);
  to[3] *= best->side;
  to[6] *= best->side;
  to[7] = contact->dist;
  memcpy(to + 8, contact->pos, sizeof contact->pos);
  for (int k = 0; k < 6; k++) to[11 + k] = best->side * contact->frame[k];
}

void core_sense_contacts(const core_contacts* c, const mjModel* m, mjData* d) {
  lib.mj_markStack(d);
  size_t bytes = sizeof(match) * (size_t)(d->ncon + 1);
  match* found = (match*)lib.mj_stackAllocNum(d, bytes / sizeof(mjtNum) + 1);
  for (int i = 0; i < c->num_elements * c->num_others; i++) {
    if (c->sensor[i] < 0) continue;
    mjtNum* net = d->sensordata + m->sensor_adr[c->sensor[i]];
    mjtNum* single = d->sensordata + m->sensor_adr[c->single[i]];
    memset(net, 0, NET_SIZE * sizeof *net);
    memset(single, 0, SINGLE_SIZE * sizeof *single);
    int count = 0;
    for (int k = 0; k < d->ncon; k++) {
      int side = core_contact_side(m, d->contact + k, c->sensor[i]);
      if (!side) continue;
      match* next = found + count++;
      next->id = k;
      next->side = side;
      lib.mj_contactForce(m, d, k, next->force);
      const mjtNum* f = next->force;
      next->size = sqrt(f[0] * f[0] + f[1] * f[1] + f[2] * f[2]);
    }
    if (!count) continue;
    write_net(d, found, count, net);
    write_strongest(d, found, count, single);
  }
  lib.mj_freeStack(d);
}
