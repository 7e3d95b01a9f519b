/* Layer normalisation over the channels of each row (Ba, Kiros, Hinton 2016): norm.cuh, centred. */
#include "../norm.cuh"

void cuda_layernorm_forward(const Run *run, void *y, void *sum, float *mean, float *rstd,
                            const void *x, const void *skip, const void *g, const void *b, int n,
                            int c, double eps) {
    const NormRows rows = {n, c, mean, rstd, (float)eps};
    WITH_VALUES(run, T,
                norm_forward<true, T>(run, (T *)y, (T *)sum, (const T *)x, (const T *)skip,
                                      (const T *)g, (const T *)b, rows));
}

void cuda_layernorm_input_gradient(const Run *run, void *dx, const void *addend, const void *dy,
                                   const void *x, const void *g, const float *mean,
                                   const float *rstd, int n, int c) {
    WITH_VALUES(run, T,
                norm_input_gradient<true, T>(run, (T *)dx, (const T *)addend, (const T *)dy,
                                             (const T *)x, (const T *)g, mean, rstd, n, c));
}

void cuda_layernorm_weight_gradient(const Run *run, float *dg, float *db, const void *dy,
                                    const void *x, const float *mean, const float *rstd, int n,
                                    int c, bool add_dg, bool add_db) {
    const StoreNormSums<2> result = {{dg, db}, {add_dg, add_db}};
    WITH_VALUES(run, T,
                norm_weight_gradient(
                    run, NormTerm<true, T>{(const T *)dy, (const T *)x, mean, rstd}, result, n, c));
}

size_t cuda_layernorm_workspace(int n, int c) { return columns_workspace(n, c, 2); }
