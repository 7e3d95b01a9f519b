/* Linear layers as matrix products (ref/fast/linear.c has the equations).  Weights are [o][c]. */
#include "../matmul.h"

static Product forward(void *y, const void *x, const void *w, const void *b, int n, int c, int o,
                       int stride) {
    return (Product){.c = y,
                     .a = x,
                     .b = w,
                     .ldc = stride,
                     .lda = c,
                     .ldb = c,
                     .transpose_b = true,
                     .m = n,
                     .n = o,
                     .k = c,
                     .bias = b};
}

void cuda_linear_forward(const Run *run, void *y, const void *x, const void *w, const void *b,
                         int n, int c, int o, int stride) {
    Product product = forward(y, x, w, b, n, c, o, stride);
    cuda_matmul(run, &product);
}

void cuda_linear_gelu_forward(const Run *run, void *y, void *saved, const void *x, const void *w,
                              const void *b, int n, int c, int o) {
    Product product = forward(y, x, w, b, n, c, o, o);
    product.epilogue = EPILOGUE_GELU;
    product.saved = saved;
    cuda_matmul(run, &product);
}

static Product input_gradient(void *dx, const void *dy, const void *w, int n, int c, int o,
                              int stride) {
    return (Product){
        .c = dx, .a = dy, .b = w, .ldc = c, .lda = stride, .ldb = c, .m = n, .n = c, .k = o};
}

void cuda_linear_input_gradient(const Run *run, void *dx, const void *dy, const void *w, int n,
                                int c, int o, int stride, bool add) {
    Product product = input_gradient(dx, dy, w, n, c, o, stride);
    product.add = add;
    cuda_matmul(run, &product);
}

void cuda_linear_gelu_input_gradient(const Run *run, void *dx, const void *dy, const void *w,
                                     const void *saved, int n, int c, int o) {
    Product product = input_gradient(dx, dy, w, n, c, o, o);
    product.epilogue = EPILOGUE_GELU_GRADIENT;
    product.saved = (void *)saved; /* this epilogue only reads it */
    cuda_matmul(run, &product);
}

void cuda_linear_weight_gradient(const Run *run, float *dw, float *db, const void *dy,
                                 const void *x, int n, int c, int o, int stride, bool add_dw,
                                 bool add_db) {
    bool together = dw && db && !add_db; /* the product reads dy anyway */
    if (dw) {
        Product product = {.c = dw,
                           .a = dy,
                           .b = x,
                           .ldc = c,
                           .lda = stride,
                           .ldb = c,
                           .transpose_a = true,
                           .m = o,
                           .n = c,
                           .k = n,
                           .add = add_dw,
                           .c_float = true,
                           .column_sums = together ? db : NULL};
        cuda_matmul(run, &product);
    }
    if (db && !together) cuda_bias_gradient(run, db, dy, n, o, stride, add_db);
}
