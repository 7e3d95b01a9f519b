#include "cluster.h"

#include <math.h>
#include <string.h>

#include "../ref/base/error.h"

#define GIB (1024.0 * 1024 * 1024)
#define TERA 1e12
#define GIGA 1e9

/* fp32 is the rate of ordinary float arithmetic; tf32 and bf16 those of the tensor cores, dense,
 * with float accumulation.  An interconnect's bandwidth is half of what data sheets give for both
 * directions. */
const Gpu gpu_table[] = {
    {.key = "rtx4090",
     .name = "RTX 4090",
     .flops = {82.6 * TERA, 82.6 * TERA, 165.2 * TERA},
     .memory_bytes = 24 * GIB,
     .memory_rate = 1008 * GIGA,
     .interconnect_bandwidth = 31.5 * GIGA,
     .interconnect = "PCIe 4.0 x16",
     .host_rate = 31.5 * GIGA,
     .dollars_per_hour = 0.29,
     .source = "NVIDIA Ada GPU architecture white paper, appendix A"},
    {.key = "a100",
     .name = "A100 80GB",
     .flops = {19.5 * TERA, 156 * TERA, 312 * TERA},
     .memory_bytes = 80 * GIB,
     .memory_rate = 2039 * GIGA,
     .interconnect_bandwidth = 300 * GIGA,
     .interconnect = "NVLink 3",
     .host_rate = 31.5 * GIGA,
     .dollars_per_hour = 1.20,
     .source = "NVIDIA A100 data sheet, SXM"},
    {.key = "a800",
     .name = "A800 80GB",
     .flops = {19.5 * TERA, 156 * TERA, 312 * TERA},
     .memory_bytes = 80 * GIB,
     .memory_rate = 1935 * GIGA,
     .interconnect_bandwidth = 31.5 * GIGA,
     .interconnect = "PCIe 4.0 x16",
     .host_rate = 31.5 * GIGA,
     .dollars_per_hour = 0.69,
     .source = "A100 PCIe data sheet; the paper says its A800 are joined by PCIe"},
    {.key = "h100",
     .name = "H100 SXM",
     .flops = {66.9 * TERA, 494.7 * TERA, 989.4 * TERA},
     .memory_bytes = 80 * GIB,
     .memory_rate = 3352 * GIGA,
     .interconnect_bandwidth = 450 * GIGA,
     .interconnect = "NVLink 4",
     .host_rate = 63 * GIGA,
     .source = "NVIDIA H100 data sheet, SXM"},
    {.key = "h200",
     .name = "H200 SXM",
     .flops = {66.9 * TERA, 494.7 * TERA, 989.4 * TERA},
     .memory_bytes = 139 * GIB, /* of 141 GB, what a program sees */
     .memory_rate = 4800 * GIGA,
     .interconnect_bandwidth = 450 * GIGA,
     .interconnect = "NVLink 4",
     .host_rate = 63 * GIGA,
     .source = "NVIDIA H200 data sheet, SXM"},
    {.key = NULL},
};

double efficiency_node_rate(const Efficiency *e) {
    return fmax(e->host_memory_rate, e->host_process_rate);
}

const Efficiency efficiency_default = {
    .products = {0.73, 0.84, 0.80},
    .memory = 0.90,
    .interconnect = 0.80,
    .launch_s = 2e-6,
    .interconnect_latency_s = 10e-6,
    .network_latency_s = 30e-6,
    .host_process_rate = 100e9,
    .host_memory_rate = 100e9,
};

const Gpu *gpu_find(const char *key) {
    char known[128] = "";
    for (const Gpu *gpu = gpu_table; gpu->key; gpu++) {
        if (strcmp(gpu->key, key) == 0) return gpu;
        if (*known) strcat(known, ", ");
        strcat(known, gpu->key);
    }
    return error_null("gpu: \"%.40s\" is not in the table; known are %s", key, known);
}

/* Returns the seconds of one message, over the network with an equal share of it for each of
 * `sharing` GPUs. */
static double message_s(const Cluster *c, bool network, int sharing, double bytes) {
    const Efficiency *e = &c->efficiency;
    double rate = network ? c->network_rate / sharing : c->gpu->interconnect_bandwidth;
    double latency = network ? e->network_latency_s : e->interconnect_latency_s;
    return latency + bytes / (rate * e->interconnect);
}

double cluster_message_s(const Cluster *c, int from, int to, double bytes) {
    return message_s(c, from / c->per_node != to / c->per_node, 1, bytes);
}

double cluster_all_reduce_s(const Cluster *c, int replicas, int stride, double bytes) {
    if (replicas <= 1) return 0;
    int sharing = stride < c->per_node ? stride : c->per_node;
    double turns = 2.0 * (replicas - 1);
    return turns * message_s(c, replicas * stride > c->per_node, sharing, bytes / replicas);
}

double gpu_usable_bytes(double bytes) { return 0.97 * bytes; }
