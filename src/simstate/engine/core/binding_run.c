/* Running C functions on the worlds of a batch from Python. */
#include <time.h>

#include "binding.h"

PyObject *core_check_callbacks, *core_refuse;
int core_num_forks;

static void ignore_warning(const char* message) { (void)message; }

static double now(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The counters tell of warnings; MuJoCo would print them and write a log file. Both
 * functions run with the GIL, so that calls on two batches do not mix up handlers. */
static int num_quiet;
static void (*handler)(const char*);

static void begin_quiet(void) {
  if (num_quiet++) return;
  handler = *lib.mju_user_warning;
  *lib.mju_user_warning = ignore_warning;
}

static void end_quiet(void) {
  if (!--num_quiet) *lib.mju_user_warning = handler;
}

/* Quiet(): MuJoCo's warnings are silenced until the object is collected. An exception
 * that interrupts its owner at any instruction therefore ends the silence. */
typedef struct {
  PyObject_HEAD
  int num_forks; /* when it was created: a forked child starts with none */
} quiet_object;

static PyObject* quiet_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  (void)args;
  (void)kwargs;
  quiet_object* self =
      (quiet_object*)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (!self) return NULL;
  self->num_forks = core_num_forks;
  begin_quiet();
  return (PyObject*)self;
}

static void quiet_dealloc(quiet_object* self) {
  PyTypeObject* type = Py_TYPE((PyObject*)self);
  if (self->num_forks == core_num_forks) end_quiet();
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF((PyObject*)type);
}

static PyType_Slot quiet_slots[] = {
    {Py_tp_new, quiet_new},
    {Py_tp_dealloc, quiet_dealloc},
    {0, NULL},
};
PyType_Spec core_quiet_spec = {
    .name = "simstate.engine.core._core.Quiet",
    .basicsize = sizeof(quiet_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = quiet_slots,
};

static int run(batch_object* self, const core_call* call) {
  switch (call->kind) {
    case CORE_APPLY:
      return lib.mjb_apply(self->batch, call->ids, call->count, call->function,
                           call->argument, call->save);
    case CORE_FORWARD:
      return lib.mjb_forward(self->batch, call->ids, call->count, call->stage);
    default:
      return lib.mjb_setConst(self->batch, call->ids, call->count);
  }
}

static int refuse(const char* why) {
  PyObject* error = PyObject_CallFunction(core_refuse, "s", why);
  if (error) PyErr_SetObject((PyObject*)Py_TYPE(error), error);
  Py_XDECREF(error);
  return -1;
}

int core_run(batch_object* self, const core_call* call) {
  const int busy = 1 + core_num_forks;
  if (self->is_busy) return refuse(self->is_busy == busy ? "busy" : "cut off");
  if (self->num_forks != core_num_forks && lib.mjb_nthread(self->batch) > 1) {
    return refuse("fork");
  }
  if (core_has_callbacks()) {
    PyObject* fine = PyObject_CallNoArgs(core_check_callbacks);
    if (!fine) return -1;
    Py_DECREF(fine);
  }
  int failed;
  begin_quiet();
  self->is_busy = busy;
  Py_BEGIN_ALLOW_THREADS;
  failed = run(self, call);
  Py_END_ALLOW_THREADS;
  self->is_busy = 0;
  end_quiet();
  return failed;
}

/* In a forked child: threads of the parent are gone, and their calls will never end. */
void core_forked(void) {
  core_num_forks++;
  if (num_quiet) {
    num_quiet = 0;
    *lib.mju_user_warning = handler;
  }
}

int core_run_steps(batch_object* self, const core_call* call, int64_t num_steps,
                   void (*prepare)(void* argument, int num_steps, int is_last)) {
  const double patience = 0.2; /* seconds until a signal is looked at */
  int64_t left = num_steps, chunk = 16;
  while (left > 0) {
    int steps = (int)(left <= chunk ? left : chunk);
    prepare(call->argument, steps, steps == left);
    double start = now();
    int failed = core_run(self, call);
    double seconds = now() - start;
    left -= steps;
    if (failed || left == 0) return failed;
    if (PyErr_CheckSignals()) return -1;
    if (seconds < patience && chunk < 1 << 20) chunk *= 2;
  }
  return 0;
}
