/* A multilayer perceptron: hidden layers that are linear and a GELU, then a linear head.  It is the
 * network of ref/lesson/bcd_lesson.c, whose losses tests/ref/test_lesson.c compares with those of
 * the same numbers here. */
#include <math.h>

#include "family.h"

static int mlp_build(Model *m, const Settings *settings) {
    const int layers = setting_int(settings, "layers"), width = setting_int(settings, "width");
    const int inputs = setting_int(settings, "inputs");
    if (build_tables(m, layers + 1, (Shape){1, 1, inputs}, false)) return -1;
    int x = 0, channels = inputs;
    /* Hidden weights start as in He et al. 2015, which keeps the size of values through many layers
     * of ReLU.  With GELU their mean square still falls, to half in about four.  The deviation of
     * the head's is that of PyTorch's default, uniform in
     * +-1 / sqrt(channels). */
    for (int i = 0; i < layers; i++) {
        build_block(m, "layer%d", i + 1);
        x = build_linear(m, "", x, width, true, sqrt(2.0 / channels));
        x = build_gelu(m, x);
        channels = width;
    }
    build_block(m, "head");
    build_linear(m, "", x, setting_int(settings, "classes"), true, sqrt(1.0 / (3.0 * channels)));
    return 0;
}

const Family family_mlp = {
    .name = "mlp",
    .key = {REQUIRED("inputs", 1, 1 << 20), REQUIRED("layers", 1, 4096),
            REQUIRED("width", 1, 65536), REQUIRED("classes", 2, 100000)},
    .build = mlp_build,
};
