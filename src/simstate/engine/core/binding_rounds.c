/* Steps that call Python before each evaluation of the dynamics. */
#include <string.h>

#include "binding.h"

/* What a call of Python has done wrong. */
enum { FINE = 0, NOT_FINITE = 1, WROTE_STATE = 2 };

typedef struct {
  integrator_object* self;
  core_round round;
  core_call run;              /* on the worlds that are not done */
  int* ids;
  PyObject* function;         /* call(segment, problem, world) */
  int num_calls;
  int first_input, num_inputs;
  mjtNum *inputs, *mass_rate; /* what the user set */
  mjtNum *before, *mass_rate_before; /* rows and rates before a call */
} called_steps;

static int is_finite(const mjtNum* x, int count) {
  for (int i = 0; i < count; i++) {
    if (!(x[i] - x[i] == 0)) return 0;
  }
  return 1;
}

static int call_back(const called_steps* c, int segment, int problem, int world) {
  PyObject* done = PyObject_CallFunction(c->function, "iii", segment, problem, world);
  Py_XDECREF(done);
  return done != NULL;
}

static mjtNum* rows(const called_steps* c) { return lib.mjb_state(c->self->batch->batch); }

/* Copies columns of all worlds from memory with one row length to another. */
static void copy_columns(mjtNum* to, size_t to_row, const mjtNum* from, size_t from_row,
                         int columns, int num_worlds) {
  for (int i = 0; i < num_worlds; i++, to += to_row, from += from_row) {
    memcpy(to, from, sizeof *to * (size_t)columns);
  }
}

static void copy_mass_rates(const called_steps* c, mjtNum* copies, int is_restore) {
  const core_integrator* in = &c->self->in;
  if (!in->mass_rate) return;
  size_t n = (size_t)in->nbody, stride = in->mass_rate_stride;
  copy_columns(is_restore ? in->mass_rate : copies, is_restore ? stride : n,
               is_restore ? copies : in->mass_rate, is_restore ? n : stride, in->nbody,
               in->num_worlds);
}

static void keep_inputs(called_steps* c) {
  const core_integrator* in = &c->self->in;
  copy_columns(c->inputs, (size_t)c->num_inputs, rows(c) + c->first_input,
               (size_t)in->nstate, c->num_inputs, in->num_worlds);
  copy_mass_rates(c, c->mass_rate, 0);
}

static void restore_inputs(const called_steps* c) {
  const core_integrator* in = &c->self->in;
  copy_columns(rows(c) + c->first_input, (size_t)in->nstate, c->inputs,
               (size_t)c->num_inputs, c->num_inputs, in->num_worlds);
  copy_mass_rates(c, c->mass_rate, 1);
}

static void keep_rows(const called_steps* c) {
  const core_integrator* in = &c->self->in;
  memcpy(c->before, rows(c), sizeof(mjtNum) * (size_t)in->num_worlds * (size_t)in->nstate);
  copy_mass_rates(c, c->mass_rate_before, 0);
}

static void restore_rows(const called_steps* c) {
  const core_integrator* in = &c->self->in;
  memcpy(rows(c), c->before, sizeof(mjtNum) * (size_t)in->num_worlds * (size_t)in->nstate);
  copy_mass_rates(c, c->mass_rate_before, 1);
}

/* Whether a call wrote columns of a world's state other than inputs. */
static int wrote_state(const called_steps* c, int world) {
  const core_integrator* in = &c->self->in;
  size_t first = (size_t)world * (size_t)in->nstate;
  size_t end = (size_t)(c->first_input + c->num_inputs);
  const mjtNum *row = rows(c) + first, *before = c->before + first;
  return memcmp(row, before, sizeof *row * (size_t)c->first_input) ||
         memcmp(row + end, before + end, sizeof *row * ((size_t)in->nstate - end));
}

/* Whether a call made inputs of a world not finite that were finite before. */
static int made_infinite(const called_steps* c, int world) {
  const core_integrator* in = &c->self->in;
  size_t first = (size_t)world * (size_t)in->nstate + (size_t)c->first_input;
  if (!is_finite(rows(c) + first, c->num_inputs) &&
      is_finite(c->before + first, c->num_inputs)) {
    return 1;
  }
  return in->mass_rate &&
         !is_finite(in->mass_rate + (size_t)world * in->mass_rate_stride, in->nbody) &&
         is_finite(c->mass_rate_before + (size_t)world * (size_t)in->nbody, in->nbody);
}

/* Whether the samples of a segment are finite in a world. */
static int has_good_samples(const called_steps* c, int segment, int world) {
  const core_integrator* in = &c->self->in;
  for (int i = 0; i < in->num_loads; i++) {
    const core_load* load = in->load + i;
    if (load->kind != CORE_SAMPLED_GRAVITY || load->segment != segment) continue;
    int count = 3 * load->num_points;
    if (!is_finite(load->sample + (size_t)world * (size_t)count, count)) return 0;
  }
  return 1;
}

/* The first world with a problem after a call, and what it is; -1: there is none.
 *
 * Writes come first: a world that has diverged may have inputs that are not finite, and
 * must not hide them. */
static int find_problem(const called_steps* c, int segment, int* problem) {
  int num_worlds = c->self->in.num_worlds;
  *problem = WROTE_STATE;
  for (int world = 0; world < num_worlds; world++) {
    if (wrote_state(c, world)) return world;
  }
  *problem = NOT_FINITE;
  for (int world = 0; world < num_worlds; world++) {
    if (made_infinite(c, world)) return world;
  }
  for (int i = 0; i < c->run.count; i++) {
    int world = c->run.ids ? c->run.ids[i] : i;
    if (!has_good_samples(c, segment + 1, world)) return world;
  }
  return -1;
}

/* Calls Python and checks what it wrote; on a problem again, so that it can say which
 * model it was: it raises, unless the world itself has diverged. */
static int call_models(called_steps* c, int segment) {
  keep_rows(c);
  if (!call_back(c, segment, FINE, -1)) return 0;
  int problem, world = find_problem(c, segment, &problem);
  if (world < 0) return 1;
  restore_rows(c);
  if (call_back(c, segment, problem, world)) return 1;
  restore_rows(c); /* the columns that a step does not change are not saved elsewhere */
  return 0;
}

/* Calls Python for the rates of processes, which write nothing else; on a problem again,
 * as above. */
static int call_rates(called_steps* c) {
  size_t width = (size_t)c->self->in.nstate;
  keep_rows(c);
  if (!call_back(c, c->num_calls, FINE, -1)) return 0;
  for (int world = 0; world < c->self->in.num_worlds; world++) {
    size_t first = (size_t)world * width;
    if (!memcmp(rows(c) + first, c->before + first, sizeof(mjtNum) * width)) continue;
    restore_rows(c);
    int done = call_back(c, c->num_calls, WROTE_STATE, world);
    restore_rows(c);
    return done;
  }
  return 1;
}

static int run(called_steps* c, mjfBatchFunc function) {
  c->run.function = function;
  return core_run(c->self->batch, &c->run);
}

/* What the loads before a call need (CORE_…), and the fields that it samples; 0: there
 * are none. */
static int needs_before(const core_integrator* in, int segment) {
  int needs = 0;
  for (int i = 0; i < in->num_loads; i++) {
    const core_load* load = in->load + i;
    int is_sampled = load->kind == CORE_SAMPLED_GRAVITY;
    if (load->segment == segment + is_sampled || load->segment == segment) {
      needs |= CORE_KINEMATICS | CORE_VELOCITY;
      if (load->kind == CORE_FUNCTION) needs |= CORE_ALL;
    }
  }
  return needs;
}

/* One evaluation of all worlds that are not done: 0, the number of worlds that failed,
 * or -1 with an exception set. */
static int take_round(called_steps* c) {
  int failed;
  for (int k = 0; k < c->num_calls; k++) {
    c->round.segment = k;
    c->round.needs = needs_before(&c->self->in, k);
    if (c->round.needs && (failed = run(c, core_round_prepare))) return failed;
    if (!call_models(c, k)) return -1;
  }
  c->round.segment = c->num_calls;
  if ((failed = run(c, core_round_evaluate))) return failed;
  restore_inputs(c);
  if (!core_has_called_rates(&c->self->in)) return 0;
  return call_rates(c) ? run(c, core_round_move) : -1;
}

/* Leaves the worlds that are done out of the next round; their number. */
static int count_running(called_steps* c) {
  int count = 0;
  for (int i = 0; i < c->run.count; i++) {
    int world = c->run.ids ? c->run.ids[i] : i;
    if (!c->round.progress[world].is_done) c->ids[count++] = world;
  }
  if (count < c->run.count) {
    c->run.ids = c->ids;
    c->run.count = count;
  }
  return count;
}

static int take_rounds(called_steps* c) {
  int failed = 0;
  keep_inputs(c);
  do {
    failed = take_round(c);
    if (failed) restore_inputs(c);
  } while (!failed && count_running(c));
  return failed;
}

static int allocate(called_steps* c) {
  core_integrator* in = &c->round.in;
  size_t n = (size_t)in->num_worlds, mass = in->mass_rate ? (size_t)in->nbody : 0;
  c->round.numbers = core_world_numbers(in);
  size_t each = c->round.numbers + (size_t)c->num_inputs + (size_t)in->nstate + 2 * mass;
  c->round.memory = PyMem_Malloc(sizeof(mjtNum) * n * each);
  c->round.progress = PyMem_Calloc(n, sizeof *c->round.progress);
  c->ids = PyMem_Malloc(sizeof(int) * n);
  if (!c->round.memory || !c->round.progress || !c->ids) {
    PyErr_NoMemory();
    return 0;
  }
  c->inputs = c->round.memory + n * c->round.numbers;
  c->before = c->inputs + n * (size_t)c->num_inputs;
  c->mass_rate = c->before + n * (size_t)in->nstate;
  c->mass_rate_before = c->mass_rate + n * mass;
  return 1;
}

int core_run_called(integrator_object* self, const core_integrator* in, PyObject* ids,
                    PyObject* calls) {
  called_steps c = {.self = self, .round = {.in = *in, .outputs = &self->batch->outputs}};
  c.run = (core_call){.kind = CORE_APPLY, .argument = &c.round, .save = 1};
  c.round.in.has_calls = 1;
  Py_buffer view = {0};
  int failed = -1;
  if (!PyArg_ParseTuple(calls, "Oiii", &c.function, &c.first_input, &c.num_inputs,
                        &c.num_calls)) {
    return -1;
  }
  if (c.first_input < 0 || c.num_inputs < 0 ||
      c.first_input + c.num_inputs > in->nstate) {
    PyErr_SetString(PyExc_ValueError, "The inputs must be columns of the state.");
    return -1;
  }
  if (!core_view_ids(ids, &view, in->num_worlds, &c.run.ids, &c.run.count)) return -1;
  if (allocate(&c)) failed = take_rounds(&c);
  PyMem_Free(c.round.memory);
  PyMem_Free(c.round.progress);
  PyMem_Free(c.ids);
  PyBuffer_Release(&view);
  return failed;
}
