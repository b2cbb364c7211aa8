/* Public calls that change worlds atomically.
 *
 * Python raises KeyboardInterrupt, and exceptions that another thread or a tracer sets,
 * between two of its own instructions. `Calls.run` records a call as open, saves memory,
 * calls a function and, on any exception, restores the memory and calls `on_undo`, all
 * in one C function. No Python instruction runs in between, so every call in `open` is
 * either running or has `failed` set, and no code has to inspect stack frames.
 *
 * An exception raised while `on_undo` runs is dropped, because another one is already
 * propagating, and `on_undo` is called again: it must be idempotent. If it does not
 * complete in MAX_TRIES, the call stays in `open` with `failed` set, and the next call
 * or read finishes the rollback.
 *
 * This extension needs no MuJoCo header: it fits any version of MuJoCo. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <string.h>
#include <structmember.h>

enum { MAX_TRIES = 16 };

/* ------------------------------------------- Saved: memory on the host and its backup */

typedef struct {
  char *live, *copy;
  Py_ssize_t rows, bytes, live_stride, copy_stride;
  int is_constant; /* input of derived constants: restored only where it differs */
} piece;

typedef struct {
  PyObject_HEAD
  Py_ssize_t count;
  piece* piece;
  Py_buffer* view;    /* two for each piece */
  PyObject* storages; /* addresses of the storages that the live memory belongs to */
} saved_object;

static PyTypeObject* saved_type;

/* Rows of contiguous bytes in an array; adjacent rows become one. 0: not contiguous. */
static int rows_of(const Py_buffer* view, Py_ssize_t* rows, Py_ssize_t* bytes,
                   Py_ssize_t* stride) {
  Py_ssize_t inner = view->itemsize;
  for (int i = view->ndim - 1; i > 0; i--) {
    if (view->shape[i] > 1 && view->strides[i] != inner) return 0;
    inner *= view->shape[i];
  }
  *rows = view->ndim ? view->shape[0] : 1;
  *stride = view->ndim ? view->strides[0] : inner;
  *bytes = inner;
  if (*stride == inner || *rows == 1) {
    *bytes = inner * *rows;
    *stride = *bytes;
    *rows = 1;
  }
  return 1;
}

static void saved_dealloc(saved_object* self) {
  PyTypeObject* type = Py_TYPE((PyObject*)self);
  for (Py_ssize_t i = 0; self->view && i < 2 * self->count; i++) {
    PyBuffer_Release(self->view + i);
  }
  Py_XDECREF(self->storages);
  PyMem_Free(self->view);
  PyMem_Free(self->piece);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF((PyObject*)type);
}

static int hold_piece(saved_object* self, Py_ssize_t i, PyObject* entry) {
  PyObject *live, *copy;
  piece* p = self->piece + i;
  Py_buffer* view = self->view + 2 * i;
  Py_ssize_t rows, bytes;
  const int flags = PyBUF_STRIDES | PyBUF_WRITABLE | PyBUF_FORMAT;
  if (!PyArg_ParseTuple(entry, "OOp", &live, &copy, &p->is_constant) ||
      PyObject_GetBuffer(live, view, flags)) {
    return 0;
  }
  self->count = i + 1;
  if (PyObject_GetBuffer(copy, view + 1, flags)) return 0;
  if (view[0].len != view[1].len ||
      !rows_of(view, &p->rows, &p->bytes, &p->live_stride) ||
      !rows_of(view + 1, &rows, &bytes, &p->copy_stride)) {
    PyErr_SetString(PyExc_ValueError,
                    "Saved takes arrays of equal size whose rows are contiguous.");
    return 0;
  }
  if (rows == 1 && p->rows > 1) p->copy_stride = p->bytes; /* a dense copy of rows */
  p->live = view[0].buf;
  p->copy = view[1].buf;
  return 1;
}

/* Saved([(live, copy, is_constant), …], storages): pairs of arrays of the same shape,
 * and a set of the addresses of the storages that they belong to. */
static PyObject* saved_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject *list, *storages;
  (void)kwargs;
  if (!PyArg_ParseTuple(args, "O!O", &PyList_Type, &list, &storages)) return NULL;
  saved_object* self =
      (saved_object*)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (!self) return NULL;
  Py_ssize_t n = PyList_Size(list);
  self->storages = Py_NewRef(storages);
  self->piece = PyMem_Calloc((size_t)n + 1, sizeof *self->piece);
  self->view = PyMem_Calloc(2 * (size_t)n + 2, sizeof *self->view);
  if (!self->piece || !self->view) PyErr_NoMemory();
  for (Py_ssize_t i = 0; !PyErr_Occurred() && i < n; i++) {
    hold_piece(self, i, PyList_GetItem(list, i));
  }
  if (!PyErr_Occurred()) return (PyObject*)self;
  Py_DECREF((PyObject*)self);
  return NULL;
}

static void copy_piece(const piece* p, int is_restore) {
  for (Py_ssize_t i = 0; i < p->rows; i++) {
    char *live = p->live + i * p->live_stride, *copy = p->copy + i * p->copy_stride;
    memcpy(is_restore ? live : copy, is_restore ? copy : live, (size_t)p->bytes);
  }
}

static int differs(const piece* p) {
  for (Py_ssize_t i = 0; i < p->rows; i++) {
    if (memcmp(p->live + i * p->live_stride, p->copy + i * p->copy_stride,
               (size_t)p->bytes)) {
      return 1;
    }
  }
  return 0;
}

static void save_all(const saved_object* self) {
  for (Py_ssize_t i = 0; i < self->count; i++) copy_piece(self->piece + i, 0);
}

/* Returns 1 if an input of derived constants differed. */
static int restore_all(const saved_object* self) {
  int found = 0;
  for (Py_ssize_t i = 0; i < self->count; i++) {
    if (self->piece[i].is_constant) {
      if (!differs(self->piece + i)) continue;
      found = 1;
    }
    copy_piece(self->piece + i, 1);
  }
  return found;
}

static PyObject* saved_save(saved_object* self, PyObject* unused) {
  (void)unused;
  save_all(self);
  Py_RETURN_NONE;
}

static PyObject* saved_restore(saved_object* self, PyObject* unused) {
  (void)unused;
  return PyBool_FromLong(restore_all(self));
}

static PyMethodDef saved_methods[] = {
    {"save", (PyCFunction)saved_save, METH_NOARGS, "Copy the live memory."},
    {"restore", (PyCFunction)saved_restore, METH_NOARGS,
     "Restore the live memory; True if an input of derived constants differed."},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef saved_members[] = {
    {"storages", T_OBJECT, offsetof(saved_object, storages), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot saved_slots[] = {
    {Py_tp_members, saved_members},
    {Py_tp_new, saved_new},
    {Py_tp_dealloc, saved_dealloc},
    {Py_tp_methods, saved_methods},
    {0, NULL},
};
static PyType_Spec saved_spec = {
    .name = "simstate.world._bracket.Saved",
    .basicsize = sizeof(saved_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = saved_slots,
};

/* ---------------------------------------------------------------- Call: an open call */

typedef struct {
  PyObject_HEAD
  PyObject *scope, *what, *saved, *added;
  char evaluating, failed;
  unsigned long thread;
} call_object;

static PyTypeObject* call_type;

static void call_dealloc(call_object* self) {
  PyTypeObject* type = Py_TYPE((PyObject*)self);
  Py_XDECREF(self->scope);
  Py_XDECREF(self->what);
  Py_XDECREF(self->saved);
  Py_XDECREF(self->added);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF((PyObject*)type);
}

static PyMemberDef call_members[] = {
    {"scope", T_OBJECT, offsetof(call_object, scope), READONLY, NULL},
    {"what", T_OBJECT, offsetof(call_object, what), READONLY, NULL},
    {"saved", T_OBJECT, offsetof(call_object, saved), READONLY, NULL},
    {"added", T_OBJECT, offsetof(call_object, added), 0, NULL},
    {"evaluating", T_BOOL, offsetof(call_object, evaluating), 0, NULL},
    {"failed", T_BOOL, offsetof(call_object, failed), 0, NULL},
    {"thread", T_ULONG, offsetof(call_object, thread), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot call_slots[] = {
    {Py_tp_dealloc, call_dealloc},
    {Py_tp_members, call_members},
    {0, NULL},
};
static PyType_Spec call_spec = {
    .name = "simstate.world._bracket.Call",
    .basicsize = sizeof(call_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = call_slots,
};

static call_object* new_call(PyObject* const* args) {
  allocfunc allocate = (allocfunc)PyType_GetSlot(call_type, Py_tp_alloc);
  call_object* call = (call_object*)allocate(call_type, 0);
  if (!call) return NULL;
  call->scope = Py_NewRef(args[0]);
  call->what = Py_NewRef(args[1]);
  call->saved = Py_IsNone(args[2]) ? NULL : Py_NewRef(args[2]);
  call->thread = PyThread_get_thread_ident();
  return call;
}

static int is_on_host(const call_object* call) {
  return Py_TYPE(call->saved) == saved_type;
}

/* 0: an exception is set, and the call must not start. */
static int save_for(const call_object* call) {
  if (!call->saved) return 1;
  if (is_on_host(call)) {
    save_all((saved_object*)call->saved);
    return 1;
  }
  PyObject* done = PyObject_CallMethod(call->saved, "save", NULL);
  Py_XDECREF(done);
  return done != NULL;
}

/* Sets *found if an input of derived constants differed. 0: an exception is set. */
static int restore_for(const call_object* call, int* found) {
  if (!call->saved) return 1;
  if (is_on_host(call)) {
    *found |= restore_all((saved_object*)call->saved);
    return 1;
  }
  PyObject* done = PyObject_CallMethod(call->saved, "restore", NULL);
  if (done) *found |= PyObject_IsTrue(done) == 1;
  Py_XDECREF(done);
  return done != NULL;
}

/* -------------------------------------------------- Calls: the open calls of a ledger */

typedef struct {
  PyObject_HEAD
  PyObject *open, *on_undo, *wrong_thread, *weak;
} calls_object;

/* Calls(on_undo, wrong_thread): on_undo(call, constants) after memory was restored;
 * wrong_thread(what) makes the exception for a second thread. */
static PyObject* calls_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject *on_undo, *wrong_thread;
  (void)kwargs;
  if (!PyArg_ParseTuple(args, "OO", &on_undo, &wrong_thread)) return NULL;
  PyObject* open = PyList_New(0);
  if (!open) return NULL;
  calls_object* self =
      (calls_object*)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (!self) {
    Py_DECREF(open);
    return NULL;
  }
  self->open = open;
  self->on_undo = Py_NewRef(on_undo);
  self->wrong_thread = Py_NewRef(wrong_thread);
  return (PyObject*)self;
}

static int calls_clear(calls_object* self) {
  Py_CLEAR(self->open);
  Py_CLEAR(self->on_undo);
  Py_CLEAR(self->wrong_thread);
  return 0;
}

static int calls_traverse(calls_object* self, visitproc visit, void* arg) {
  Py_VISIT((PyObject*)Py_TYPE((PyObject*)self));
  Py_VISIT(self->open);
  Py_VISIT(self->on_undo);
  Py_VISIT(self->wrong_thread);
  return 0;
}

static void calls_dealloc(calls_object* self) {
  PyTypeObject* type = Py_TYPE((PyObject*)self);
  PyObject_GC_UnTrack(self);
  if (self->weak) PyObject_ClearWeakRefs((PyObject*)self);
  calls_clear(self);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF((PyObject*)type);
}

/* Restores a call's memory and calls on_undo until it completes once. 0: it did not in
 * MAX_TRIES, and the last exception is set. */
static int undo(calls_object* self, call_object* call) {
  int constants = 0;
  for (int k = 0; k < MAX_TRIES; k++) {
    PyErr_Clear();
    if (!restore_for(call, &constants)) continue;
    PyObject* done =
        PyObject_CallFunction(self->on_undo, "Oi", (PyObject*)call, constants);
    Py_XDECREF(done);
    if (done) return 1;
  }
  return 0;
}

/* Undoes the calls in `open` from the innermost one down to `first`. 0: one could not
 * be undone; it and those outside of it stay, with `failed` set. */
static int undo_from(calls_object* self, Py_ssize_t first) {
  for (Py_ssize_t n = PyList_Size(self->open); n > first; n--) {
    call_object* last = (call_object*)PyList_GetItem(self->open, n - 1);
    Py_INCREF((PyObject*)last);
    int done = undo(self, last);
    if (done) {
      PyList_SetSlice(self->open, n - 1, n, NULL);
    } else {
      for (Py_ssize_t i = first; i < n; i++) {
        ((call_object*)PyList_GetItem(self->open, i))->failed = 1;
      }
    }
    Py_DECREF((PyObject*)last);
    if (!done) return 0;
  }
  return 1;
}

/* Finishes the rollback of failed calls. 0: an exception is set, because that did not
 * complete or because the open call belongs to another thread. */
static int recover(calls_object* self) {
  Py_ssize_t n = PyList_Size(self->open), first = n;
  while (first && ((call_object*)PyList_GetItem(self->open, first - 1))->failed) first--;
  if (first < n && !undo_from(self, first)) return 0;
  if (!first) return 1;
  call_object* last = (call_object*)PyList_GetItem(self->open, first - 1);
  if (last->thread == PyThread_get_thread_ident()) return 1;
  PyObject* error = PyObject_CallFunctionObjArgs(self->wrong_thread, last->what, NULL);
  if (error) PyErr_SetObject((PyObject*)Py_TYPE(error), error);
  Py_XDECREF(error);
  return 0;
}

static PyObject* calls_recover(calls_object* self, PyObject* unused) {
  (void)unused;
  if (!recover(self)) return NULL;
  Py_RETURN_NONE;
}

/* The exception state is that of `call`; it survives a rollback. */
static void close_call(calls_object* self, Py_ssize_t index, int is_done) {
  PyObject *kind, *error, *trace;
  PyErr_Fetch(&kind, &error, &trace);
  if (!is_done) {
    undo_from(self, index);
  } else { /* calls within it whose rollback failed: finish them, or leave them open */
    undo_from(self, index + 1);
    PyList_SetSlice(self->open, index, index + 1, NULL);
  }
  PyErr_Clear();
  PyErr_Restore(kind, error, trace);
}

static PyObject* calls_run(calls_object* self, PyObject* const* args, Py_ssize_t n) {
  if (n < 4) {
    return PyErr_Format(PyExc_TypeError,
                        "run(scope, what, saved, call, *args) takes four or more "
                        "arguments, got %zd.", n);
  }
  PyObject* rest = PyTuple_New(n - 4);
  call_object* call = rest ? new_call(args) : NULL;
  PyObject* result = NULL;
  for (Py_ssize_t i = 4; rest && i < n; i++) {
    PyTuple_SetItem(rest, i - 4, Py_NewRef(args[i]));
  }
  /* No other thread runs from here until the call is open: nothing that garbage
   * collection knows is allocated. */
  if (call && recover(self)) {
    Py_ssize_t index = PyList_Size(self->open);
    if (!PyList_Append(self->open, (PyObject*)call)) {
      if (save_for(call)) {
        result = PyObject_Call(args[3], rest, NULL);
        close_call(self, index, result != NULL);
      } else {
        PyList_SetSlice(self->open, index, index + 1, NULL);
      }
    }
  }
  Py_XDECREF((PyObject*)call);
  Py_XDECREF(rest);
  return result;
}

static PyMethodDef calls_methods[] = {
    {"run", (PyCFunction)(void (*)(void))calls_run, METH_FASTCALL,
     "run(scope, what, saved, call, *args): call a function, or roll it back."},
    {"recover", (PyCFunction)calls_recover, METH_NOARGS,
     "Finish the rollback of failed calls; raise if another thread is in a call."},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef calls_members[] = {
    {"open", T_OBJECT, offsetof(calls_object, open), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(calls_object, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot calls_slots[] = {
    {Py_tp_new, calls_new},         {Py_tp_dealloc, calls_dealloc},
    {Py_tp_clear, calls_clear},     {Py_tp_traverse, calls_traverse},
    {Py_tp_methods, calls_methods}, {Py_tp_members, calls_members},
    {0, NULL},
};
static PyType_Spec calls_spec = {
    .name = "simstate.world._bracket.Calls",
    .basicsize = sizeof(calls_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = calls_slots,
};

/* ------------------------------------------------------- writes that torch has counted */

static PyObject* version_name;

/* 1: a number differs from the recorded one; -1: an exception is set. */
static int is_other(PyObject* now, PyObject* recorded) {
  if (!now) return -1;
  int same = now == recorded || PyLong_AsLongLong(now) == PyLong_AsLongLong(recorded);
  Py_DECREF(now);
  return PyErr_Occurred() ? -1 : !same;
}

/* changed(tensors, versions, pointers, addresses): the indices of the tensors that were
 * written to, or given other memory, since their versions and addresses were recorded;
 * pointers are the bound methods `data_ptr`. An empty tuple if there are none. */
static PyObject* changed(PyObject* module, PyObject* const* args, Py_ssize_t n) {
  (void)module;
  Py_ssize_t count = n == 4 && PyList_Check(args[0]) ? PyList_Size(args[0]) : -1;
  for (Py_ssize_t k = 1; k < n && count >= 0; k++) {
    if (!PyList_Check(args[k]) || PyList_Size(args[k]) != count) count = -1;
  }
  if (count < 0) {
    return PyErr_Format(PyExc_TypeError,
                        "changed(tensors, versions, pointers, addresses) takes four "
                        "lists of equal length.");
  }
  PyObject* found = NULL;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject* tensor = PyList_GetItem(args[0], i);
    int other =
        is_other(PyObject_GetAttr(tensor, version_name), PyList_GetItem(args[1], i));
    if (!other) {
      other = is_other(PyObject_CallNoArgs(PyList_GetItem(args[2], i)),
                       PyList_GetItem(args[3], i));
    }
    if (!other) continue;
    if (other > 0 && !found) found = PyList_New(0);
    PyObject* index = other > 0 && found ? PyLong_FromSsize_t(i) : NULL;
    int is_added = index && !PyList_Append(found, index);
    Py_XDECREF(index);
    if (!is_added) {
      Py_XDECREF(found);
      return NULL;
    }
  }
  return found ? found : PyTuple_New(0);
}

static PyMethodDef functions[] = {
    {"changed", (PyCFunction)(void (*)(void))changed, METH_FASTCALL,
     "Indices of the tensors that were written to or given other memory."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_bracket",
    .m_doc = "Public calls that change worlds atomically.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__bracket(void) {
  PyObject* module = PyModule_Create(&module_def);
  if (!module) return NULL;
  version_name = PyUnicode_InternFromString("_version");
  saved_type = (PyTypeObject*)PyType_FromSpec(&saved_spec);
  call_type = (PyTypeObject*)PyType_FromSpec(&call_spec);
  PyObject* calls = PyType_FromSpec(&calls_spec);
  int fine = version_name && saved_type && call_type && calls &&
             !PyModule_AddObjectRef(module, "Saved", (PyObject*)saved_type) &&
             !PyModule_AddObjectRef(module, "Calls", calls);
  Py_XDECREF(calls);
  if (fine) return module;
  Py_DECREF(module);
  return NULL;
}
