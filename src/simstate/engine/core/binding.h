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

#define CORE_FEW_VIEWS 12

/* Views on arrays, released together. */
typedef struct {
  Py_buffer few[CORE_FEW_VIEWS], *more;
  int count, capacity; /* of all views; of `more` */
} core_views;

/* What is looked at after each step: set once (Batch.watch), held by views. */
typedef struct {
  core_views views;
  const int* range;
  int* counts;
  uint8_t* bad;
  int num_ranges;
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
  core_views views;   /* on all arrays, held as long as the object lives */
  PyObject* contacts; /* a tuple, likewise */
} integrator_object;

/* What a contact sensor remembers, and where. */
typedef struct {
  PyObject_HEAD
  int num_worlds;
  core_contacts contacts;
  core_views views;
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

/* An array to take, and where its address goes. Formats are those of `core_view`, and
 *
 *   'I'  int32 ids, all below `limit`;
 *   'r'  float64 rows of `limit` worlds, contiguous but for the step from world to world,
 *        which goes to `stride`. Where they are not written, one row may serve all worlds,
 *        with a stride of 0. `count` is the number of columns.
 *
 * count < 0 takes any number, and `given` gets it. */
typedef struct {
  const char* name;
  char format;
  Py_ssize_t count;
  int flags; /* CORE_WRITTEN; CORE_OPTIONAL: None leaves `to` as it is */
  void* to;
  Py_ssize_t limit, *given;
  size_t* stride;
} core_entry;

#define CORE_WRITTEN 1
#define CORE_OPTIONAL 2
#define CORE_IN(name, format, count, to) {name, format, count, 0, to, 0, NULL, NULL}
#define CORE_OUT(name, format, count, to) \
  {name, format, count, CORE_WRITTEN, to, 0, NULL, NULL}
#define CORE_IF(name, format, count, flags, to) \
  {name, format, count, CORE_OPTIONAL | (flags), to, 0, NULL, NULL}
#define CORE_ANY(name, format, to, given) {name, format, -1, 0, to, 0, given, NULL}
#define CORE_IDS(name, count, flags, to, limit, given) \
  {name, 'I', count, flags, to, limit, given, NULL}
#define CORE_ROWS(name, count, flags, to, worlds, stride, given) \
  {name, 'r', count, flags, to, worlds, given, stride}

/* Takes arrays of a tuple in this order, or of a dictionary by name. Returns 0 with an
 * exception set if one does not fit; the others are released with the views. */
#define CORE_TAKE_ALL(views, arrays, entries) \
  core_take(views, arrays, entries, (int)(sizeof(entries) / sizeof *(entries)))
int core_take(core_views* views, PyObject* arrays, const core_entry* entry, int count);
int core_take_one(core_views* views, PyObject* array, core_entry entry);
void core_release(core_views* views);

/* A new object of a type of this module, and the end of one. */
void* core_new(PyTypeObject* type);
void core_free(void* object);

/* The number of worlds that failed, for Python; NULL if it is negative. */
PyObject* core_number(int failed);

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
  enum { CORE_APPLY, CORE_FORWARD, CORE_SET_CONST } kind;
  const int* ids;
  int count;
  mjfBatchFunc function;  /* of CORE_APPLY */
  void* argument;
  int save;
  int stage;              /* of CORE_FORWARD */
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

/* ------------------------------------------------------------ methods of Batch */

/* Notes the warnings so far; what went wrong since then: 1 a bad world, 2 a warning. */
void core_begin_watch(batch_object* self);
int core_end_watch(batch_object* self);

/* A method of Batch: steps under controls of each step (binding_rollout.c). */
PyObject* core_py_rollout(batch_object* self, PyObject* args);

/* Methods of Batch: derivatives of steps (binding_derivatives.c). */
PyObject* core_differentiate(batch_object* self, PyObject* args);
PyObject* core_signatures(batch_object* self, PyObject* out);

/* A method of Batch: rays at the present positions. */
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
