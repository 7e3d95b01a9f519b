#include "transport_module.h"

#include "library.h"

Transport *transport_module_mpi(double timeout_s) {
    static Transport *(*create)(double timeout_s);
    if (!create) {
        void *library = library_open("mpi", "--pipeline mpi", " where it finds mpicc");
        if (!library || library_find(library, "transport_mpi_create", &create)) return NULL;
    }
    return create(timeout_s);
}
