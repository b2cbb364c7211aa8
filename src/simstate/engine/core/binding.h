/* What the files that speak with Python share. Stable ABI of Python 3.11. */
#ifndef SIMSTATE_CORE_BINDING_H_
#define SIMSTATE_CORE_BINDING_H_

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "contacts.h"
#include "integrate.h"
#include "reads.h"

#define CORE_MAX_OUTPUTS 256
#define CORE_MAX_KEPT 64

/* What is looked at after each step: set once (Batch.watch), held by views. */
typedef struct {
  Py_buffer view[4];          /* columns, counts, bad, risen */
  int num_views, num_ranges;
  double limit;
} core_watch;

/* Worlds of one model; owns libmujoco's batch. */
typedef struct {
  PyObject_HEAD
  mjBatch* batch;
  int num_worlds;
  int sensor_needs;
  core_output output[CORE_MAX_OUTPUTS];
  core_outputs outputs;
  core_output kept_output[CORE_MAX_KEPT];
  Py_buffer kept_view[CORE_MAX_KEPT];
  core_kept kept;
  core_watch watch;
  int is_busy;     /* a call runs, without the GIL: 1 + core_num_forks; 0: none */
  int num_forks;   /* when it was made */
} batch_object;

/* A scheme with the arrays that it reads and writes. */
typedef struct {
  PyObject_HEAD
  batch_object* batch;
  core_integrator in;
  Py_buffer* view;  /* on all arrays, held as long as the object lives */
  int num_views, capacity;
  PyObject* contacts; /* a tuple, likewise */
} integrator_object;

/* What a contact sensor remembers, and where. */
typedef struct {
  PyObject_HEAD
  int num_worlds;
  core_contacts contacts;
  Py_buffer view[12];
  int num_views;
} contacts_object;

/* The number of what looks at the steps, a tuple of Contacts of this many worlds, and
 * memory to be freed; -1 with an exception set if it is something else. */
int core_read_contacts(PyObject* tuple, int num_worlds, const core_contacts*** contacts);

extern PyType_Spec core_quiet_spec, core_batch_spec, core_integrator_spec, core_reads_spec,
    core_contacts_spec;

/* The types Batch and Contacts, and the function that refuses Python's callbacks. */
extern PyObject *core_batch_type, *core_contacts_type, *core_check_callbacks;

/* Raises that a batch is in use by another thread ("busy") or was made before a fork. */
extern PyObject* core_refuse;
extern int core_num_forks; /* since this module was loaded */
void core_forked(void);

/* ---------------------------------------------------------------- binding_arguments.c */

/* A view on an array: C-contiguous, of that element type and number of elements.
 *
 * `format` is 'd' (float64), 'i' (int32), 'q' (int64) or 'B' (bytes, bool); count < 0
 * takes any. Returns 0 with an exception set if it does not fit. */
int core_view(PyObject* array, Py_buffer* view, char format, Py_ssize_t count,
              int writable, const char* name);

/* A view on rows of float64, (num_worlds, …): contiguous but for the step from world to
 * world. One row for all, with a stride of 0, where it is not writable. */
int core_view_rows(PyObject* array, Py_buffer* view, int num_worlds, int writable,
                   size_t* stride, Py_ssize_t* columns, const char* name);

/* World ids: None for all, or rising int32. `*ids` is NULL for all. */
int core_view_ids(PyObject* object, Py_buffer* view, int num_worlds, const int** ids,
                  int* count);

/* -------------------------------------------------------- binding_description.c */

/* Reads what integrator.py says; 0 with an exception set if something does not fit. */
int core_read_description(integrator_object* self, PyObject* dict);
void core_release_description(integrator_object* self);

/* ------------------------------------------------------------------ binding_run.c */

/* A call on some worlds of a batch; no ids: on all. */
typedef struct {
  enum { CORE_APPLY, CORE_STEP, CORE_FORWARD, CORE_SET_CONST } kind;
  const int* ids;
  int count;
  mjfBatchFunc function;  /* of CORE_APPLY */
  void* argument;
  int save;
  int num_steps, stage;   /* of the others */
} core_call;

/* Runs it without the GIL, and without the warnings that MuJoCo would print.
 *
 * Returns the number of worlds that failed; -1 with an exception set. */
int core_run(batch_object* self, const core_call* call);

/* The same for many steps, in as many calls as it takes to answer Ctrl-C; `prepare`
 * gets the number of steps of the next call, and whether it is the last. */
int core_run_steps(batch_object* self, const core_call* call, int64_t num_steps,
                   void (*prepare)(void* argument, int num_steps, int is_last));

/* ----------------------------------------------------------------- binding_rounds.c */

/* Runs an integrator whose evaluations follow calls of Python, as a tuple (function,
 * first_input, num_inputs, num_calls).
 *
 * `function(segment, problem, world)` writes the inputs of all worlds before the loads of
 * the segment after it; behind the last segment it writes the rates of processes. The
 * inputs are restored after each evaluation. If a call has written anything else
 * (problem 2), or inputs of a world that are not finite (1), all is restored and it is
 * called again with the first world that has the problem: it should raise. Returns the
 * number of worlds that failed; -1 with an exception set. */
int core_run_called(integrator_object* self, const core_integrator* in, PyObject* ids,
                    PyObject* calls);

/* --------------------------------------------------------------- binding_points.c */

/* Methods of Batch: what went wrong in a step (binding_watch.c). */
PyObject* core_count_warnings(batch_object* self, PyObject* array);
PyObject* core_has_warned(batch_object* self, PyObject* array);
PyObject* core_find_bad(batch_object* self, PyObject* args);
PyObject* core_set_watch(batch_object* self, PyObject* args);

/* Notes the warnings so far; what went wrong since then: 1 a bad world, 2 a warning. */
void core_begin_watch(batch_object* self);
int core_end_watch(batch_object* self);

/* Methods of Batch: fields of the last evaluation (binding_kept.c). */
PyObject* core_keep(batch_object* self, PyObject* args);
PyObject* core_evaluate_kept(batch_object* self, PyObject* args);

/* A method of Batch: steps under controls of each step (binding_rollout.c). */
PyObject* core_py_rollout(batch_object* self, PyObject* args);

/* Methods of Batch: derivatives of steps (binding_derivatives.c). */
PyObject* core_differentiate(batch_object* self, PyObject* args);
PyObject* core_signatures(batch_object* self, PyObject* out);

/* Methods of Batch: Jacobians of points, and rays, at the present positions. */
PyObject* core_jac(batch_object* self, PyObject* args);
PyObject* core_ray(batch_object* self, PyObject* args);
PyObject* core_carried_rays(batch_object* self, PyObject* args);

/* ------------------------------------------------------------- binding_matrices.c */

/* Functions of the module: Jacobians of points, and entries of rows. */
PyObject* core_py_jacobians(PyObject* module, PyObject* args);
PyObject* core_py_entries(PyObject* module, PyObject* args);

/* --------------------------------------------------------------- binding_random.c */

/* A function of the module: random numbers of some worlds, evenly spread. */
PyObject* core_py_uniform(PyObject* module, PyObject* args);

/* --------------------------------------------------------------- binding_bodies.c */

/* Functions of the module: free bodies as flight dynamics describe them, and loads along
 * their axes. */
PyObject* core_py_free_bodies(PyObject* module, PyObject* args);
PyObject* core_py_body_loads(PyObject* module, PyObject* args);

#endif
