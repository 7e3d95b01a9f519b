/* The gradient of a bias: the sum of each column.  columns.cuh has both versions. */
#include "../columns.cuh"

struct StoreSum {
    float *db;
    bool add;
    DEVICE void finish(int column, const double (&sum)[1]) const {
        db[column] = (float)sum[0] + (add ? db[column] : 0.0f);
    }
};

void cuda_bias_gradient(const Run *run, float *db, const void *dy, int n, int c, int stride,
                        bool add) {
    WITH_VALUE_PACKS(
        run, T, V, packable(c, V, dy) && stride % V == 0,
        column_sums<V>(run, ColumnSum<T>{(const T *)dy}, StoreSum{db, add}, n, c, stride));
}

size_t cuda_bias_gradient_workspace(int n, int c) { return columns_workspace(n, c, 1); }
