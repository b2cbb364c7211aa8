/* Contacts and limits that a step enters.
 *
 * A Runge-Kutta pair estimates its error from the stages; a body that falls freely has
 * none, and a stage that is in contact may have no weight in the estimate. So the sets of
 * constraints of one side are compared: a trial step in which one begins is repeated with
 * shorter steps, until a step of the resolution enters it. A pair that passes through
 * each other between two evaluations would not be noticed: steps are also limited by how
 * far pairs move, compared with their distance and thickness. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "touch.h"

static const double WINDOW = 0.1; /* of the contact time step: chatter is one contact */
static const double FINEST = 1e-11; /* [s] */
static const double GROWTH = 8; /* of steps past a time that was too early */
static const int MOST_MISSES = 6;

/* Makes room; returns how many rows there is room for. */
static int reserve(core_touch_set* s, int count) {
  if (count > s->capacity) {
    core_touch_row* row = realloc(s->row, sizeof *row * (size_t)(2 * count));
    if (!row) return s->capacity;
    s->row = row;
    s->capacity = 2 * count;
  }
  return s->capacity;
}

static int by_key(const void* a, const void* b) {
  int64_t x = ((const core_touch_row*)a)->key, y = ((const core_touch_row*)b)->key;
  return (x > y) - (x < y);
}

static int64_t pair_key(int a, int b) {
  int low = a < b ? a : b, high = a < b ? b : a;
  return (int64_t)low << 31 | high;
}

static int64_t contact_key(const mjModel* m, const mjContact* c) {
  int side[2];
  for (int i = 0; i < 2; i++) {
    side[i] = c->geom[i] >= 0 ? c->geom[i] : (int)m->ngeom + c->flex[i];
  }
  return pair_key(side[0], side[1]);
}

/* Collects the limits and contacts that act at the present state. */
static void collect(core_touch_set* s, const mjModel* m, const mjData* d) {
  s->count = 0;
  int room = reserve(s, (int)d->nefc);
  for (int i = 0; i < d->nefc && s->count < room; i++) {
    int type = d->efc_type[i], id = d->efc_id[i];
    core_touch_row row = {.pos = d->efc_pos[i] - d->efc_margin[i], .vel = d->efc_vel[i]};
    if (type == mjCNSTR_LIMIT_JOINT || type == mjCNSTR_LIMIT_TENDON) {
      row.key = -1 - (2 * (int64_t)id + (type == mjCNSTR_LIMIT_TENDON));
    } else if (type >= mjCNSTR_CONTACT_FRICTIONLESS &&
               d->contact[id].efc_address == i) {
      row.key = contact_key(m, d->contact + id);
      if (type == mjCNSTR_CONTACT_PYRAMIDAL) { /* the normal is between two edges */
        row.vel = 0.5 * (d->efc_vel[i] + d->efc_vel[i + 1]);
      }
    } else {
      continue;
    }
    s->row[s->count++] = row;
  }
  if (s->count) qsort(s->row, (size_t)s->count, sizeof *s->row, by_key);
}

static int run_length(const core_touch_set* s, int from) {
  int count = 1;
  while (from + count < s->count && s->row[from + count].key == s->row[from].key) {
    count++;
  }
  return count;
}

static int find(const core_touch_set* s, int64_t key) {
  core_touch_row wanted = {.key = key};
  return s->count && bsearch(&wanted, s->row, (size_t)s->count, sizeof wanted, by_key);
}

/* known = the union of known and found, with as many rows of a key as the larger has. */
static void merge(core_touch* t) {
  const core_touch_set *a = &t->known, *b = &t->found;
  core_touch_set* out = &t->merged;
  out->count = 0;
  int room = reserve(out, a->count + b->count);
  for (int i = 0, j = 0; i < a->count || j < b->count;) {
    if (out->count + a->count - i + b->count - j > room) return;
    int from_a = i < a->count && (j == b->count || a->row[i].key <= b->row[j].key);
    int from_b = j < b->count && (i == a->count || b->row[j].key <= a->row[i].key);
    int n = from_a ? run_length(a, i) : 0, k = from_b ? run_length(b, j) : 0;
    const core_touch_row* row = n >= k ? a->row + i : b->row + j;
    memcpy(out->row + out->count, row, sizeof *row * (size_t)(n >= k ? n : k));
    out->count += n >= k ? n : k;
    i += n;
    j += k;
  }
  core_touch_set known = t->known;
  t->known = t->merged;
  t->merged = known;
}

/* The sphere of geom a to the box of geom b [m]; negative if they overlap. */
static mjtNum sphere_to_box(const mjModel* m, const mjData* d, int a, int b) {
  const mjtNum *box = m->geom_aabb + 6 * b, *from = d->geom_xpos + 3 * b;
  const mjtNum* point = d->geom_xpos + 3 * a;
  mjtNum offset[3], local[3], square = 0;
  for (int i = 0; i < 3; i++) offset[i] = point[i] - from[i];
  lib.mju_mulMatTVec3(local, d->geom_xmat + 9 * b, offset);
  for (int i = 0; i < 3; i++) {
    mjtNum beyond = fabs(local[i] - box[i]) - box[3 + i];
    if (beyond > 0) square += beyond * beyond;
  }
  return sqrt(square) - m->geom_rbound[a];
}

static void velocity_of(const mjModel* m, const mjData* d, int geom, mjtNum lin[3]) {
  int body = m->geom_bodyid[geom];
  const mjtNum* v = d->cvel + 6 * body;
  const mjtNum* com = d->subtree_com + 3 * m->body_rootid[body];
  mjtNum r[3];
  for (int i = 0; i < 3; i++) r[i] = d->geom_xpos[3 * geom + i] - com[i];
  lin[0] = v[3] + v[1] * r[2] - v[2] * r[1];
  lin[1] = v[4] + v[2] * r[0] - v[0] * r[2];
  lin[2] = v[5] + v[0] * r[1] - v[1] * r[0];
}

static mjtNum half_thickness(const mjModel* m, int geom) {
  if (m->geom_type[geom] == mjGEOM_PLANE) return 0;
  const mjtNum* half = m->geom_aabb + 6 * geom + 3;
  mjtNum least = fmin(fmin(half[0], half[1]), half[2]);
  return fmax(least, 1e-3 * m->geom_rbound[geom]);
}

/* The side whose turning counts: not a plane, rather a sphere, rather the smaller. */
static int is_first(const mjModel* m, int a, int b) {
  if (m->geom_type[a] == mjGEOM_PLANE || m->geom_type[b] == mjGEOM_PLANE) {
    return m->geom_type[b] == mjGEOM_PLANE;
  }
  if (m->geom_type[a] == mjGEOM_SPHERE || m->geom_type[b] == mjGEOM_SPHERE) {
    return m->geom_type[a] == mjGEOM_SPHERE;
  }
  return m->geom_rbound[a] <= m->geom_rbound[b];
}

/* A lower bound of a pair's distance [m], the speed of one centre along the other's axes,
 * and that of the first one's surface about its centre [m/s]. */
static void measure(const mjModel* m, const mjData* d, const int* pair, mjtNum out[3]) {
  int ordered = is_first(m, pair[0], pair[1]);
  int a = pair[!ordered], b = pair[ordered];
  const mjtNum *w_a = d->cvel + 6 * m->geom_bodyid[a];
  const mjtNum *w_b = d->cvel + 6 * m->geom_bodyid[b];
  mjtNum v_a[3], v_b[3], r[3], v[3], turn = 0;
  velocity_of(m, d, a, v_a);
  velocity_of(m, d, b, v_b);
  for (int i = 0; i < 3; i++) {
    r[i] = d->geom_xpos[3 * a + i] - d->geom_xpos[3 * b + i];
    turn += (w_a[i] - w_b[i]) * (w_a[i] - w_b[i]);
  }
  v[0] = v_a[0] - v_b[0] - (w_b[1] * r[2] - w_b[2] * r[1]);
  v[1] = v_a[1] - v_b[1] - (w_b[2] * r[0] - w_b[0] * r[2]);
  v[2] = v_a[2] - v_b[2] - (w_b[0] * r[1] - w_b[1] * r[0]);
  mjtNum margin = fmax(m->geom_margin[a], m->geom_margin[b]);
  if (m->geom_type[b] == mjGEOM_PLANE) {
    const mjtNum* n = d->geom_xmat + 9 * b + 2;
    out[0] = r[0] * n[0] + r[1] * n[3] + r[2] * n[6] - m->geom_rbound[a];
    out[1] = fabs(v[0] * n[0] + v[1] * n[3] + v[2] * n[6]);
  } else {
    out[0] = fmax(sphere_to_box(m, d, a, b), sphere_to_box(m, d, b, a));
    out[1] = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  }
  out[0] -= margin;
  int is_sphere = m->geom_type[a] == mjGEOM_SPHERE;
  out[2] = is_sphere ? 0 : sqrt(turn) * m->geom_rbound[a];
}

int core_touch_create(core_touch* t, const core_touch_pairs* pairs) {
  size_t numbers = 3 * (size_t)pairs->num_pairs + 1;
  t->pairs = pairs;
  t->start = calloc(numbers, sizeof *t->start);
  t->end = calloc(numbers, sizeof *t->end);
  return t->start && t->end;
}

void core_touch_delete(core_touch* t) {
  free(t->start);
  free(t->end);
  free(t->known.row);
  free(t->found.row);
  free(t->merged.row);
}

void core_touch_open(core_touch* t) {
  if (!t) return;
  t->known_since = -INFINITY;
  t->guess = INFINITY;
  t->least = 0;
  t->num_misses = 0;
}

void core_touch_look(core_touch* t, const mjModel* m, const mjData* d, int is_end) {
  if (!t) return;
  t->window = WINDOW * m->opt.timestep;
  collect(&t->found, m, d);
  for (int i = 0; is_end && i < t->pairs->num_pairs; i++) {
    measure(m, d, t->pairs->pair + 2 * i, t->end + 3 * i);
  }
}

void core_touch_begin(core_touch* t, double time) {
  if (!t) return;
  if (time - t->known_since > t->window) {
    t->known.count = 0;
    t->known_since = time;
  }
  merge(t);
  memcpy(t->start, t->end, sizeof *t->end * 3 * (size_t)t->pairs->num_pairs);
}

int core_touch_enters(const core_touch* t, double* ago) {
  *ago = 0;
  if (!t) return 0;
  const core_touch_set *found = &t->found, *known = &t->known;
  int enters = 0;
  for (int i = 0, j = 0; i < found->count;) {
    int n = run_length(found, i), k;
    while (j < known->count && known->row[j].key < found->row[i].key) j++;
    int is_known = j < known->count && known->row[j].key == found->row[i].key;
    k = is_known ? run_length(known, j) : 0;
    if (n > k) {
      enters = 1;
      double least = INFINITY, most = 0; /* of a pair that touches, the last one is new */
      for (int p = i; p < i + n; p++) {
        const core_touch_row* row = found->row + p;
        double since = row->vel < 0 && row->pos < 0 ? row->pos / row->vel : 0;
        least = fmin(least, since);
        most = fmax(most, since);
      }
      *ago = fmax(*ago, k ? least : most);
    }
    i += n;
  }
  return enters;
}

double core_touch_travel(const core_touch* t, const mjModel* m, double h) {
  double worst = 0;
  for (int i = 0; t && i < t->pairs->num_pairs; i++) {
    const int* pair = t->pairs->pair + 2 * i;
    const mjtNum *start = t->start + 3 * i, *end = t->end + 3 * i;
    mjtNum gaps = fmax(start[0], 0) + fmax(end[0], 0);
    if (fmax(start[1], end[1]) * h < gaps) continue; /* too far apart all the time */
    mjtNum way = (fmax(start[1], end[1]) + fmax(start[2], end[2])) * h;
    mjtNum allowed =
        gaps + 0.5 * (half_thickness(m, pair[0]) + half_thickness(m, pair[1]));
    if (way <= worst * allowed || find(&t->known, pair_key(pair[0], pair[1]))) continue;
    worst = way / allowed;
  }
  return worst;
}

double core_touch_resolution(double time, double min_step) {
  return fmax(fmax(FINEST, 16 * 2.220446049250313e-16 * fabs(time)), min_step);
}

double core_touch_limit(const core_touch* t, double time, double h, double resolution) {
  if (!t || t->guess == INFINITY) return h;
  double until = fmax(t->guess - time - 0.25 * resolution, resolution);
  return fmin(h, fmax(until, t->least));
}

void core_touch_locate(core_touch* t, double time, double after, double ago) {
  t->num_misses++;
  t->least = 0;
  int is_known = ago > 0 && ago < after && t->num_misses <= MOST_MISSES;
  t->guess = time + (is_known ? after - ago : 0.5 * after);
}

void core_touch_end(core_touch* t, double time, double h, int has_entered) {
  if (!t) return;
  t->num_misses = 0;
  t->least = 0;
  if (has_entered) {
    t->guess = INFINITY;
  } else if (time >= t->guess) { /* too early: feel the way */
    t->guess = time;
    t->least = GROWTH * h;
  }
}
