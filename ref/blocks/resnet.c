/* ResNets for small images (He et al. 2016): a 3x3 convolution as the stem, stages of residual
 * blocks, then global average pooling and a linear head.  Each stage but the first begins by
 * halving the size and doubling the width.  Where the shape changes, the shortcut is a 1x1
 * convolution with batch norm. */
#include <math.h>

#include "../base/error.h"
#include "family.h"

/* Appends relu(bn(x) + skip), as one node if `fused`, or else as three; without a skip if it is -1.
 */
static int norm_relu(Model *m, const char *name, int x, int skip, bool fused) {
    if (fused) return build_batchnorm(m, name, x, skip, true);
    x = build_batchnorm(m, name, x, -1, false);
    if (skip >= 0) x = build_add(m, x, skip);
    return build_relu(m, x);
}

static int shortcut(Model *m, int x, int width, int stride, bool project) {
    if (!project) return x;
    x = build_conv2d(m, "project", x, width, 1, stride);
    return build_batchnorm(m, "project_norm", x, -1, false);
}

static int basic_block(Model *m, int x, int width, int stride, bool project, bool fused) {
    int skip = shortcut(m, x, width, stride, project);
    x = build_conv2d(m, "conv1", x, width, 3, stride);
    x = norm_relu(m, "norm1", x, -1, fused);
    x = build_conv2d(m, "conv2", x, width, 3, 1);
    return norm_relu(m, "norm2", x, skip, fused);
}

/* The stride is that of the second convolution, as in torchvision; in the paper of the first. */
static int bottleneck_block(Model *m, int x, int width, int stride, bool project, bool fused) {
    int skip = shortcut(m, x, 4 * width, stride, project);
    x = build_conv2d(m, "conv1", x, width, 1, 1);
    x = norm_relu(m, "norm1", x, -1, fused);
    x = build_conv2d(m, "conv2", x, width, 3, stride);
    x = norm_relu(m, "norm2", x, -1, fused);
    x = build_conv2d(m, "conv3", x, 4 * width, 1, 1);
    return norm_relu(m, "norm3", x, skip, fused);
}

typedef int (*ResidualBlock)(Model *m, int x, int width, int stride, bool project, bool fused);

/* Builds stages of blocks[i] residual blocks each; all but the first stage start with stride 2.  A
 * residual block has `expansion` times the stage's width in its output. */
static int build_stages(Model *m, const Settings *settings, ResidualBlock residual, int expansion,
                        const int *blocks, int stages) {
    const int width = setting_int(settings, "width"), size = setting_int(settings, "size");
    const bool fused = setting_int(settings, "fused") != 0;
    int all = 2; /* stem and head */
    for (int stage = 0; stage < stages; stage++) all += blocks[stage];
    if (build_tables(m, all, (Shape){size, size, 3}, false)) return -1;
    build_block(m, "stem");
    int x = build_conv2d(m, "conv", 0, width, 3, 1);
    x = norm_relu(m, "norm", x, -1, fused);
    int number = 0, channels = width;
    for (int stage = 0; stage < stages; stage++)
        for (int i = 0; i < blocks[stage]; i++) {
            const int stride = stage > 0 && i == 0 ? 2 : 1, out = expansion * (width << stage);
            build_block(m, "block%d", ++number);
            x = residual(m, x, width << stage, stride, channels != out, fused);
            channels = out;
        }
    build_block(m, "head");
    x = build_avgpool(m, x);
    /* The deviation is that of PyTorch's default, uniform in +-1 / sqrt(channels). */
    build_linear(m, "", x, setting_int(settings, "classes"), true, sqrt(1.0 / (3.0 * channels)));
    return 0;
}

static int resnet_build(Model *m, const Settings *settings) {
    const int depth = setting_int(settings, "depth");
    const int n = (depth - 2) / 6;
    if (n < 1 || 6 * n + 2 != depth)
        return error_set("model: resnet depth %d is not 6n+2; use 8, 14, 20, 26, 32, 44, 56 ...",
                         depth);
    return build_stages(m, settings, basic_block, 1, (int[]){n, n, n}, 3);
}

static int bottleneck_build(Model *m, const Settings *settings) {
    const int depth = setting_int(settings, "depth");
    static const struct {
        int depth, blocks[4];
    } known[] = {
        {14, {1, 1, 1, 1}},   {26, {2, 2, 2, 2}},   {50, {3, 4, 6, 3}},
        {101, {3, 4, 23, 3}}, {152, {3, 8, 36, 3}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].depth == depth)
            return build_stages(m, settings, bottleneck_block, 4, known[i].blocks, 4);
    return error_set("model: no bottleneck ResNet of depth %d; use 14, 26, 50, 101 or 152", depth);
}

const Family family_resnet = {
    .name = "resnet",
    .key = {REQUIRED("depth", 8, 1202), DEFAULT("width", 16, 1, 4096),
            DEFAULT("classes", 10, 2, 100000), DEFAULT("size", 32, 4, 1024),
            DEFAULT("fused", 1, 0, 1)},
    .build = resnet_build,
};
const Family family_bottleneck = {
    .name = "bottleneck",
    .key = {REQUIRED("depth", 14, 152), DEFAULT("width", 64, 1, 4096),
            DEFAULT("classes", 10, 2, 100000), DEFAULT("size", 32, 8, 1024),
            DEFAULT("fused", 1, 0, 1)},
    .build = bottleneck_build,
};
