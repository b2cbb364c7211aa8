/* What Python says of an integrator: arrays to hold, numbers to keep, all checked. */
#include <string.h>

#include "air.h"
#include "binding.h"
#include "flight.h"
#include "gravity.h"
#include "wheels.h"

/* Makes room for one more view; 0 with an exception set if there is none. */
static int reserve_view(integrator_object* self) {
  if (self->num_views < self->capacity) return 1;
  int capacity = 2 * self->capacity + 32;
  Py_buffer* view = PyMem_Calloc((size_t)capacity, sizeof *view);
  if (!view) {
    PyErr_NoMemory();
    return 0;
  }
  if (self->view) memcpy(view, self->view, sizeof *view * (size_t)self->num_views);
  PyMem_Free(self->view);
  self->view = view;
  self->capacity = capacity;
  return 1;
}

/* Holds an array; NULL with an exception set if it does not fit. */
static void* hold(integrator_object* self, PyObject* array, char format,
                  Py_ssize_t count, int writable, const char* name) {
  if (!reserve_view(self)) return NULL;
  if (!core_view(array, self->view + self->num_views, format, count, writable, name)) {
    return NULL;
  }
  return self->view[self->num_views++].buf;
}

static Py_ssize_t last_count(const integrator_object* self) {
  const Py_buffer* v = self->view + self->num_views - 1;
  return v->len / v->itemsize;
}

/* Holds an array of an entry of a dictionary; None leaves NULL where it may. */
static int hold_entry(integrator_object* self, PyObject* dict, const char* key,
                      char format, Py_ssize_t count, int writable, int optional,
                      void* to) {
  PyObject* array = PyDict_GetItemString(dict, key);
  if (array && !(optional && Py_IsNone(array))) {
    void* buffer = hold(self, array, format, count, writable, key);
    memcpy(to, &buffer, sizeof buffer);
    return buffer != NULL;
  }
  if (!array) PyErr_Format(PyExc_KeyError, "%s is missing.", key);
  return array != NULL;
}

static int read_int(PyObject* dict, const char* key, int* to) {
  PyObject* value = PyDict_GetItemString(dict, key);
  if (!value) {
    PyErr_Format(PyExc_KeyError, "%s is missing.", key);
    return 0;
  }
  *to = (int)PyLong_AsLong(value);
  return !PyErr_Occurred();
}

static int read_double(PyObject* dict, const char* key, double* to) {
  PyObject* value = PyDict_GetItemString(dict, key);
  if (!value) {
    PyErr_Format(PyExc_KeyError, "%s is missing.", key);
    return 0;
  }
  *to = PyFloat_AsDouble(value);
  return !PyErr_Occurred();
}

static int read_scheme(integrator_object* self, PyObject* dict) {
  core_scheme* s = &self->in.scheme;
  int attitude;
  if (!hold_entry(self, dict, "b", 'd', -1, 0, 0, &s->b)) return 0;
  Py_ssize_t n = last_count(self);
  s->num_stages = (int)n;
  if (n < 1 || !hold_entry(self, dict, "a", 'd', n * n, 0, 0, &s->a) ||
      !hold_entry(self, dict, "c", 'd', n, 0, 0, &s->c) ||
      !hold_entry(self, dict, "b_error", 'd', n, 0, 1, &s->b_error) ||
      !hold_entry(self, dict, "b_error_low", 'd', n, 0, 1, &s->b_error_low) ||
      !read_int(dict, "control_order", &s->control_order) ||
      !read_int(dict, "first_same_as_last", &s->first_same_as_last) ||
      !read_int(dict, "attitude", &attitude)) {
    return 0;
  }
  s->attitude = (core_attitude)attitude;
  return 1;
}

/* Holds indices, all of which must be below a limit. */
static int hold_indices(integrator_object* self, PyObject* dict, const char* key,
                        int limit, int** to, int* count) {
  if (!hold_entry(self, dict, key, 'i', -1, 0, 0, to)) return 0;
  *count = (int)last_count(self);
  for (int i = 0; i < *count; i++) {
    if ((*to)[i] < 0 || (*to)[i] >= limit) {
      PyErr_Format(PyExc_ValueError, "%s has the index %d; the limit is %d.", key,
                   (*to)[i], limit);
      return 0;
    }
  }
  return 1;
}

static int read_layout(integrator_object* self, PyObject* dict) {
  core_integrator* in = &self->in;
  int same_flat, same_quats;
  if (!hold_indices(self, dict, "flat_qpos", in->nq, &in->flat_qpos, &in->num_flat) ||
      !hold_indices(self, dict, "flat_qvel", in->nv, &in->flat_qvel, &same_flat) ||
      !hold_indices(self, dict, "quat_qpos", in->nq - 3, &in->quat_qpos,
                    &in->num_quats) ||
      !hold_indices(self, dict, "quat_qvel", in->nv - 2, &in->quat_qvel, &same_quats) ||
      !hold_entry(self, dict, "act_low", 'd', in->na, 0, 1, &in->act_low) ||
      !hold_entry(self, dict, "act_high", 'd', in->na, 0, 1, &in->act_high) ||
      !hold_entry(self, dict, "evaluations", 'q', in->num_worlds, 1, 0,
                  &in->evaluations)) {
    return 0;
  }
  if (same_flat != in->num_flat || same_quats != in->num_quats ||
      !in->act_low != !in->act_high) {
    PyErr_SetString(PyExc_ValueError, "The layout's indices or limits do not match.");
    return 0;
  }
  return 1;
}

/* Whether a table is the address of a function. */
static int is_address(const double* table, size_t table_size) {
  static const simstate_force none;
  return table_size == 1 && sizeof none <= sizeof *table &&
         memcmp(table, &none, sizeof none) != 0;
}

/* Whether a load has the parameters and the table of its kind. */
static int is_fit(const core_load* load, size_t table_size, const mjModel* m) {
  static const int needed[] = {3, 4, 9, 5};
  int n = load->num_parameters;
  if (load->kind < 0 || load->kind >= CORE_NUM_LOADS) return 0;
  if (load->kind == CORE_POINT_GRAVITY) return n > 4 && n % 4 == 1;
  if (load->kind == CORE_FIELD_GRAVITY) return core_is_field(load->table, table_size, n);
  if (load->kind == CORE_WHEELS) return core_is_wheels(load->table, table_size, n, m);
  if (load->kind == CORE_SAMPLED_GRAVITY) return n == 1 && table_size == 1;
  if (load->kind == CORE_AERODYNAMICS || load->kind == CORE_ROTOR) {
    return load->num_bodies == 1 && core_is_flight(load->table, table_size, n, m);
  }
  if (load->kind == CORE_FUNCTION) return n > 0 && is_address(load->table, table_size);
  if (load->kind == CORE_AIR_DRAG) {
    return n == 4 + CORE_AIR_NUMBERS && core_is_air(load->table, table_size);
  }
  if (load->kind == CORE_PANELS) {
    int left = n - CORE_AIR_NUMBERS;
    return left > 0 && left % CORE_PANEL_NUMBERS == 0 &&
           core_is_air(load->table, table_size);
  }
  return n == needed[load->kind];
}

/* Holds rows of numbers of the worlds, which may lie among other columns. */
static double* hold_rows(integrator_object* self, PyObject* array, size_t* stride,
                         Py_ssize_t* columns, const char* name) {
  if (!reserve_view(self) ||
      !core_view_rows(array, self->view + self->num_views, self->in.num_worlds, 1,
                      stride, columns, name)) {
    return NULL;
  }
  return self->view[self->num_views++].buf;
}

/* Where a load is sampled, as a tuple (points, accelerations), or None. */
static int read_sample(integrator_object* self, PyObject* tuple, core_load* load) {
  PyObject *points, *sample;
  if (load->kind != CORE_SAMPLED_GRAVITY) return 1;
  if (!PyArg_ParseTuple(tuple, "OO", &points, &sample)) return 0;
  load->num_points = core_num_samples(load);
  Py_ssize_t count = (Py_ssize_t)3 * self->in.num_worlds * load->num_points;
  load->point = hold(self, points, 'd', count, 1, "points");
  if (!load->point) return 0;
  load->sample = hold(self, sample, 'd', count, 0, "sample");
  return load->sample != NULL;
}

/* The first number of a moving frame; -2: there is no such frame. */
static int frame_first(const core_integrator* in, int frame) {
  if (frame == -1) return -1;
  if (frame < 0 || frame >= in->num_processes) return -2;
  return in->process[frame].width == 6 ? in->process[frame].first : -2;
}

/* A load as a tuple (kind, segment, frame, bodies, parameters, rows, table, sample): one
 * row of parameters, or one per world. */
static int read_load(integrator_object* self, PyObject* tuple, core_load* load) {
  core_integrator* in = &self->in;
  PyObject *bodies, *parameters, *table, *sample;
  int kind, rows, frame;
  if (!PyArg_ParseTuple(tuple, "iiiOOiOO", &kind, &load->segment, &frame, &bodies,
                        &parameters, &rows, &table, &sample)) {
    return 0;
  }
  load->frame = frame_first(in, frame);
  load->kind = (core_load_kind)kind;
  load->body = hold(self, bodies, 'i', -1, 0, "bodies");
  if (!load->body) return 0;
  load->num_bodies = (int)last_count(self);
  load->table = hold(self, table, 'd', -1, 0, "table");
  if (!load->table) return 0;
  size_t table_size = (size_t)last_count(self);
  load->parameter = hold(self, parameters, 'd', -1, 0, "parameters");
  if (!load->parameter) return 0;
  Py_ssize_t count = last_count(self);
  load->num_parameters = rows > 0 ? (int)(count / rows) : 0;
  load->stride = rows == 1 ? 0 : (size_t)load->num_parameters;
  int fine = is_fit(load, table_size, in->shared) && load->frame >= -1 &&
             load->segment >= 0 && (rows == 1 || rows == in->num_worlds) &&
             (Py_ssize_t)rows * load->num_parameters == count;
  for (int i = 0; i < load->num_bodies; i++) {
    fine = fine && load->body[i] >= 0 && load->body[i] < in->nbody;
  }
  if (!fine) {
    PyErr_Format(PyExc_ValueError, "Load of kind %d: wrong bodies, frame, table or "
                 "number of parameters (%zd in %d rows).", kind, count, rows);
    return 0;
  }
  return read_sample(self, sample, load);
}

/* A process as a tuple (value, rate): rows of numbers, and their rates or None. */
static int read_process(integrator_object* self, PyObject* tuple, core_process* p) {
  core_integrator* in = &self->in;
  PyObject *value, *rate;
  Py_ssize_t width;
  if (!PyArg_ParseTuple(tuple, "OO", &value, &rate)) return 0;
  p->value = hold_rows(self, value, &p->stride, &width, "process");
  if (!p->value) return 0;
  p->width = (int)width;
  p->first = in->process_width;
  in->process_width += p->width;
  if (Py_IsNone(rate)) {
    if (width == 6) return 1;
    PyErr_Format(PyExc_ValueError, "A moving frame has 6 numbers, got %zd.", width);
    return 0;
  }
  p->rate = hold(self, rate, 'd', width * in->num_worlds, 0, "rate");
  return p->rate != NULL;
}

static int read_loads(integrator_object* self, PyObject* dict) {
  core_integrator* in = &self->in;
  PyObject* processes = PyDict_GetItemString(dict, "processes");
  PyObject* loads = PyDict_GetItemString(dict, "loads");
  Py_ssize_t num_processes = processes ? PyTuple_Size(processes) : -1;
  Py_ssize_t num_loads = loads ? PyTuple_Size(loads) : -1;
  if (num_processes < 0 || num_loads < 0) {
    if (!PyErr_Occurred()) {
      PyErr_SetString(PyExc_KeyError, "processes or loads are missing.");
    }
    return 0;
  }
  in->process = PyMem_Calloc((size_t)num_processes + 1, sizeof *in->process);
  in->load = PyMem_Calloc((size_t)num_loads + 1, sizeof *in->load);
  if (!in->process || !in->load) {
    PyErr_NoMemory();
    return 0;
  }
  in->num_processes = (int)num_processes;
  in->num_loads = (int)num_loads;
  for (Py_ssize_t i = 0; i < num_processes; i++) {
    if (!read_process(self, PyTuple_GetItem(processes, i), in->process + i)) return 0;
  }
  for (Py_ssize_t i = 0; i < num_loads; i++) {
    if (!read_load(self, PyTuple_GetItem(loads, i), in->load + i)) return 0;
    in->changes_inputs |=
        in->load[i].kind == CORE_WHEELS || in->load[i].kind == CORE_FUNCTION;
  }
  return 1;
}

/* A parameter as (name, bytes of a world, its array or None where worlds share it). */
static int read_constant(integrator_object* self, PyObject* tuple, core_constant* c) {
  const char* name;
  Py_ssize_t bytes;
  PyObject* array;
  if (!PyArg_ParseTuple(tuple, "snO", &name, &bytes, &array)) return 0;
  c->offset = core_model_offset(name);
  c->bytes = (size_t)bytes;
  if (!c->offset || bytes < 0) {
    PyErr_Format(PyExc_ValueError, "mjModel has no field %s.", name);
    return 0;
  }
  if (Py_IsNone(array)) return 1;
  c->to = hold(self, array, 'B', bytes * self->in.num_worlds, 1, name);
  return c->to != NULL;
}

/* Masses that flow: rates, and the parameters that mj_setConst computes. */
static int read_masses(integrator_object* self, PyObject* dict) {
  core_integrator* in = &self->in;
  PyObject* constants = PyDict_GetItemString(dict, "constants");
  Py_ssize_t count = constants ? PyTuple_Size(constants) : -1;
  Py_ssize_t numbers = (Py_ssize_t)in->num_worlds * in->nbody;
  PyObject* rate = PyDict_GetItemString(dict, "mass_rate");
  Py_ssize_t columns = in->nbody;
  if (rate && !Py_IsNone(rate)) {
    in->mass_rate = hold_rows(self, rate, &in->mass_rate_stride, &columns, "mass_rate");
    if (!in->mass_rate) return 0;
  }
  if (columns != in->nbody) {
    PyErr_SetString(PyExc_ValueError, "mass_rate needs a number for each body.");
    return 0;
  }
  if (count < 0 ||
      !hold_entry(self, dict, "total_mass_rate", 'd', numbers, 1, 1,
                  &in->total_mass_rate) ||
      !hold_entry(self, dict, "least_mass", 'd', numbers, 0, 1, &in->least_mass) ||
      !hold_entry(self, dict, "empty", 'B', numbers, 1, 1, &in->empty)) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_KeyError, "constants is missing.");
    return 0;
  }
  if (in->mass_rate &&
      (!in->total_mass_rate || !in->least_mass || !in->empty || !count)) {
    PyErr_SetString(PyExc_ValueError, "Masses that flow need all of their arrays.");
    return 0;
  }
  in->constant = PyMem_Calloc((size_t)count + 1, sizeof *in->constant);
  if (!in->constant) {
    PyErr_NoMemory();
    return 0;
  }
  in->num_constants = (int)count;
  for (Py_ssize_t i = 0; i < count; i++) {
    if (!read_constant(self, PyTuple_GetItem(constants, i), in->constant + i)) return 0;
  }
  return 1;
}

/* The pairs of geoms that can touch, and the memory of what each world touches. */
static int read_touch(integrator_object* self, PyObject* dict) {
  core_integrator* in = &self->in;
  int num_sides, can_touch;
  if (!hold_indices(self, dict, "touching_geoms", (int)in->shared->ngeom,
                    &in->pairs.pair, &num_sides) ||
      !read_int(dict, "can_touch", &can_touch)) {
    return 0;
  }
  in->pairs.num_pairs = num_sides / 2;
  if (!can_touch) return 1;
  in->touch = PyMem_Calloc((size_t)in->num_worlds, sizeof *in->touch);
  int fine = in->touch != NULL;
  for (int i = 0; fine && i < in->num_worlds; i++) {
    fine = core_touch_create(in->touch + i, &in->pairs);
  }
  if (!fine) PyErr_NoMemory();
  return fine;
}

static int read_control(integrator_object* self, PyObject* dict) {
  core_integrator* in = &self->in;
  core_control* c = &in->control;
  Py_ssize_t n = in->num_worlds;
  Py_ssize_t dofs = 2 * in->nv + in->na + in->nbody + in->process_width;
  if (!in->scheme.b_error) return 1;
  return read_touch(self, dict) &&
         hold_entry(self, dict, "atol", 'd', dofs, 0, 0, &c->atol) &&
         hold_entry(self, dict, "rtol", 'd', dofs, 0, 0, &c->rtol) &&
         read_double(dict, "min_step", &c->min_step) &&
         read_double(dict, "max_step", &c->max_step) &&
         hold_entry(self, dict, "step_size", 'd', n, 1, 0, &c->step_size) &&
         hold_entry(self, dict, "start", 'd', n, 1, 0, &c->start) &&
         hold_entry(self, dict, "elapsed", 'd', n, 1, 0, &c->elapsed) &&
         hold_entry(self, dict, "accepted", 'q', n, 1, 0, &c->accepted) &&
         hold_entry(self, dict, "rejected", 'q', n, 1, 0, &c->rejected) &&
         hold_entry(self, dict, "stuck", 'B', n, 1, 0, &c->stuck) &&
         hold_entry(self, dict, "unfinished", 'B', n, 1, 0, &c->unfinished) &&
         hold_entry(self, dict, "failure", 'd', 3 * n, 1, 0, &c->failure) &&
         hold_entry(self, dict, "failure_at", 'i', 2 * n, 1, 0, &c->failure_at);
}

static int read_contacts(integrator_object* self, PyObject* dict) {
  PyObject* tuple = PyDict_GetItemString(dict, "contacts");
  if (!tuple) {
    PyErr_SetString(PyExc_KeyError, "contacts is missing.");
    return 0;
  }
  int count = core_read_contacts(tuple, self->in.num_worlds, &self->in.contacts);
  if (count < 0) return 0;
  Py_INCREF(tuple);
  self->contacts = tuple;
  self->in.num_contacts = count;
  return 1;
}

int core_read_description(integrator_object* self, PyObject* dict) {
  return read_scheme(self, dict) && read_layout(self, dict) && read_loads(self, dict) &&
         read_masses(self, dict) && read_contacts(self, dict) &&
         read_control(self, dict);
}

void core_release_description(integrator_object* self) {
  while (self->num_views) PyBuffer_Release(self->view + --self->num_views);
  PyMem_Free(self->view);
  PyMem_Free(self->in.process);
  PyMem_Free(self->in.load);
  PyMem_Free(self->in.constant);
  for (int i = 0; self->in.touch && i < self->in.num_worlds; i++) {
    core_touch_delete(self->in.touch + i);
  }
  PyMem_Free(self->in.touch);
  PyMem_Free(self->in.contacts);
  Py_XDECREF(self->contacts);
}
