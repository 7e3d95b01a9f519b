#include "transport_module.h"

#include "library.h"

Link *link_module_mpi(double timeout_s) {
    static Link *(*create)(double timeout_s);
    if (!create) {
        void *library = library_open("mpi", "--pipeline mpi", " where it finds mpicc");
        if (!library || library_find(library, "link_mpi_create", &create)) return NULL;
    }
    return create(timeout_s);
}
