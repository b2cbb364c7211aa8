/* The functions of libmujoco, by the addresses that Python hands over. */
#include "library.h"

core_library lib;

const char* const core_symbols[] = {
#define X(name) #name,
    CORE_FUNCTIONS(X) CORE_CALLBACKS(X)
#undef X
        "mju_user_warning",
    NULL,
};

void core_connect(void* const* address, const void* own_timer) {
#define X(name) lib.name = (__typeof__(lib.name))*address++;
  CORE_FUNCTIONS(X)
  CORE_CALLBACKS(X)
#undef X
  lib.mju_user_warning = (void (**)(const char*)) * address;
  lib.own_timer = own_timer;
}

int core_has_callbacks(void) {
  int count = 0;
#define X(name) count += *lib.name != NULL;
  CORE_CALLBACKS(X)
#undef X
  return count - (*lib.mjcb_time && *lib.mjcb_time == lib.own_timer);
}
