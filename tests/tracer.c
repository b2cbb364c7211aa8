/* Raise exceptions, or call functions, at chosen lines or opcodes of Python code.

sys.settrace removes a trace function that raises. A C trace function stays active, so
that the code which handles the first exception can be interrupted as well. Lines are
counted in all files below a folder, in the thread that called start(). A function that
is called at a line is not traced itself. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

static char folder[4096];
static PyObject* actions; /* by count: an exception class to raise, or a function */
static PyObject* places;  /* list of (file, line) where one acted */
static PyObject* handled; /* the exception that was being handled at the start */
static int paused;
static int by_opcode;     /* count opcodes, not lines */
static long count, end;   /* lines so far; tracing ends there if it is not 0 */

/* Raise or call the action of this count, if there is one. */
static void act(PyObject* file, PyFrameObject* frame) {
  PyObject* number = PyLong_FromLong(count++);
  if (!number) return;
  PyObject* action = PyDict_GetItemWithError(actions, number);
  Py_DECREF(number);
  if (!action) return;
  PyObject* place = Py_BuildValue("(Oi)", file, PyFrame_GetLineNumber(frame));
  if (place && !PyList_Append(places, place)) {
    if (PyExceptionClass_Check(action))
      PyErr_SetNone(action);
    else
      Py_XDECREF(PyObject_CallNoArgs(action));
  }
  Py_XDECREF(place);
}

static int trace(PyObject* self, PyFrameObject* frame, int event, PyObject* arg) {
  (void)self;
  (void)arg;
  if (paused) return 0;
  if (end && count >= end) {
    PyEval_SetTrace(NULL, NULL);
    return 0;
  }
  if (event == PyTrace_CALL && by_opcode)
    return PyObject_SetAttrString((PyObject*)frame, "f_trace_opcodes", Py_True);
  if (event != (by_opcode ? PyTrace_OPCODE : PyTrace_LINE)) return 0;
  PyCodeObject* code = PyFrame_GetCode(frame);
  PyObject* file = Py_NewRef(code->co_filename);
  Py_DECREF(code);
  const char* name = PyUnicode_AsUTF8(file);
  if (name && !strncmp(name, folder, strlen(folder))) act(file, frame);
  Py_DECREF(file);
  return PyErr_Occurred() ? -1 : 0;
}

static PyObject* start(PyObject* self, PyObject* args) {
  const char* path;
  PyObject* at;
  (void)self;
  if (!PyArg_ParseTuple(args, "sO!pll", &path, &PyDict_Type, &at, &by_opcode, &count,
                        &end))
    return NULL;
  PyObject* empty = PyList_New(0);
  if (!empty) return NULL;
  strncpy(folder, path, sizeof folder - 1);
  Py_XSETREF(places, empty);
  Py_XSETREF(actions, Py_NewRef(at));
  Py_XSETREF(handled, PyErr_GetHandledException());
  PyEval_SetTrace(trace, NULL);
  Py_RETURN_NONE;
}

static PyObject* stop(PyObject* self, PyObject* args) {
  (void)self;
  (void)args;
  PyEval_SetTrace(NULL, NULL);
  /* One raised in the last line of an except clause leaves the first one handled. */
  PyErr_SetHandledException(handled);
  Py_CLEAR(handled);
  return Py_BuildValue("lO", count, places);
}

static PyObject* pause_tracing(PyObject* self, PyObject* args) {
  (void)self;
  if (!PyArg_ParseTuple(args, "p", &paused)) return NULL;
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"start", start, METH_VARARGS, 
     "start(folder, actions, by_opcode, count, end): trace this thread."},
    {"pause", pause_tracing, METH_VARARGS, "pause(is_paused): neither count nor act."},
    {"stop", stop, METH_NOARGS, "Stop; return the count of lines and the places."},
    {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "tracer", NULL, -1, functions, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_tracer(void) { return PyModule_Create(&module); }
