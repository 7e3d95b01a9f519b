/* GPUs, their connections and prices: what the planner knows about machines that are not here. */
#pragma once

#include <stdbool.h>

#include "../ref/base/real.h"

typedef struct {
    const char *key, *name;        /* "rtx4090", "RTX 4090" */
    double flops[PRECISIONS];      /* peak of dense products, operations per second */
    double memory_bytes;           /* on the card */
    double memory_rate;            /* peak, bytes per second */
    double interconnect_bandwidth; /* to another card of the node, one direction, peak */
    const char *interconnect;      /* "PCIe 4.0 x16", "NVLink 3" */
    double host_rate;              /* to host memory, one direction, peak */
    double dollars_per_hour;       /* section 4.4.1 of the paper; 0: not in it */
    const char *source;            /* where the rates come from */
} Gpu;

extern const Gpu gpu_table[]; /* ends with key NULL */

/* Returns the GPU with this key, or NULL and an error that lists the keys. */
const Gpu *gpu_find(const char *key);

/* Returns how many of a GPU's bytes a training may use; the driver, kernels of libraries and graphs
 * need the rest. */
double gpu_usable_bytes(double bytes);

/* The efficiency, that is the fraction of peak rates that is reached, and fixed costs. */
typedef struct {
    double products[PRECISIONS], memory, interconnect; /* fractions */
    double launch_s;                                   /* of a kernel in a captured step */
    double interconnect_latency_s, network_latency_s;
    /* Offload: bytes per second that Adam moves in host memory, in the process of one GPU, and in
     * all processes of a node together. */
    double host_process_rate, host_memory_rate;
    /* The software has no fused attention: scores go through memory, with dense products and one
     * pass each for scale and mask, softmax, and dropout. */
    bool scores_in_memory;
} Efficiency;

/* Returns the bytes per second that Adam moves on a node: no less than in one of its processes. */
double efficiency_node_rate(const Efficiency *efficiency);

/* The default.  Fractions of products and memory are those of cuBLAS and of plain copies on an H200
 * (bf16 790 of 989 TFLOP/s, tf32 415 of 495, fp32 49 of 67, copies 4.3 of 4.8 TB/s), not of this
 * program; the other values are round guesses. */
extern const Efficiency efficiency_default;

typedef struct {
    const Gpu *gpu;
    int per_node, nodes;
    double network_rate; /* of a node, in one direction, bytes per second */
    Efficiency efficiency;
} Cluster;

/* Returns the seconds that a message takes from one GPU to another, inside a node or over the
 * network.  GPUs are numbered node by node. */
double cluster_message_s(const Cluster *cluster, int from, int to, double bytes);

/* Returns the seconds of a ring all-reduce of `bytes` between `replicas` GPUs whose numbers are
 * `stride` apart.  The GPUs between them do the same at the same time, so those of a node share its
 * network. */
double cluster_all_reduce_s(const Cluster *cluster, int replicas, int stride, double bytes);

/* The paper's network: 2 x 25 Gb/s. */
#define NETWORK_2X25G (2 * 25e9 / 8)
