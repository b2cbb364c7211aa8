/* Running C functions on the worlds of a batch from Python. */
#include <time.h>

#include "binding.h"

PyObject* core_check_callbacks;

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

static void be_quiet(void) {
  if (num_quiet++) return;
  handler = *lib.mju_user_warning;
  *lib.mju_user_warning = ignore_warning;
}

static void be_quiet_no_more(void) {
  if (!--num_quiet) *lib.mju_user_warning = handler;
}

static int run(batch_object* self, const core_call* call) {
  switch (call->kind) {
    case CORE_APPLY:
      return lib.mjb_apply(self->batch, call->ids, call->count, call->function,
                           call->argument, call->save);
    case CORE_STEP:
      return lib.mjb_step(self->batch, call->ids, call->count, call->num_steps,
                          call->stage);
    case CORE_FORWARD:
      return lib.mjb_forward(self->batch, call->ids, call->count, call->stage);
    default:
      return lib.mjb_setConst(self->batch, call->ids, call->count);
  }
}

int core_run(batch_object* self, const core_call* call) {
  if (core_has_callbacks()) {
    PyObject* fine = PyObject_CallNoArgs(core_check_callbacks);
    if (!fine) return -1;
    Py_DECREF(fine);
  }
  int failed;
  be_quiet();
  Py_BEGIN_ALLOW_THREADS;
  failed = run(self, call);
  Py_END_ALLOW_THREADS;
  be_quiet_no_more();
  return failed;
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
