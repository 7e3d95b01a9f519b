/* Root mean square normalisation over the channels of each row (Zhang & Sennrich 2019, eq. 4):
 * norm.cuh, not centred. */
#include "../norm.cuh"

void cuda_rmsnorm_forward(const Run *run, void *y, void *sum, float *rrms, const void *x,
                          const void *skip, const void *g, int n, int c, double eps) {
    const NormRows rows = {n, c, NULL, rrms, (float)eps};
    WITH_VALUES(run, T,
                norm_forward<false, T>(run, (T *)y, (T *)sum, (const T *)x, (const T *)skip,
                                       (const T *)g, NULL, rows));
}

void cuda_rmsnorm_input_gradient(const Run *run, void *dx, const void *addend, const void *dy,
                                 const void *x, const void *g, const float *rrms, int n, int c) {
    WITH_VALUES(run, T,
                norm_input_gradient<false, T>(run, (T *)dx, (const T *)addend, (const T *)dy,
                                              (const T *)x, (const T *)g, NULL, rrms, n, c));
}

void cuda_rmsnorm_weight_gradient(const Run *run, float *dg, const void *dy, const void *x,
                                  const float *rrms, int n, int c, bool add) {
    const StoreNormSums<1> result = {{dg}, {add}};
    WITH_VALUES(
        run, T,
        norm_weight_gradient(run, NormTerm<false, T>{(const T *)dy, (const T *)x, NULL, rrms},
                             result, n, c));
}

size_t cuda_rmsnorm_workspace(int n, int c) { return columns_workspace(n, c, 1); }
