#include "planned.h"

#include "../../cuda/stage/plan.h"
#include "../../ref/base/error.h"
#include "../../ref/memory.h"
#include "../test.h"

void check_planned(size_t host[MEM_ROLES], const Stage *stage, const MemCount *counted,
                   const bool *active, const char *who) {
    /* What ref/memory.h plans in closed form; the others depend on how the device computes. */
    static const MemRole exact[] = {MEM_PARAMETERS, MEM_BUFFERS, MEM_GRADIENTS, MEM_STATE,
                                    MEM_ACTIVATIONS};
    size_t device[MEM_ROLES], closed[MEM_ROLES], total = 0;
    CHECK(cuda_memory_plan(device, host, stage->model, &stage->settings, active) == 0, "%s",
          error_message());
    CHECK(memory_plan(closed, stage->model, &stage->settings, active) == 0, "%s", error_message());
    for (int r = 0; r < MEM_ROLES; r++) {
        total += device[r];
        CHECK(counted->current[r] == device[r], "%s: %zu bytes of %s, planned %zu", who,
              counted->current[r], mem_role_names[r], device[r]);
    }
    CHECK(counted->total_current == total, "%s: %zu bytes in all, planned %zu", who,
          counted->total_current, total);
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
        CHECK(device[exact[i]] == closed[exact[i]], "%s: %zu bytes of %s, by ref/memory.h %zu", who,
              device[exact[i]], mem_role_names[exact[i]], closed[exact[i]]);
}
