/* GPUs, links and prices, as data: what the planner knows about machines that are not here. */
#ifndef DIST_CLUSTER_H
#define DIST_CLUSTER_H

#include <stdbool.h>

#include "../ref/real.h"

typedef struct {
    const char *key, *name;          /* "rtx4090", "RTX 4090" */
    double flops[PRECISIONS];        /* peak of dense products, operations per second */
    double memory_bytes;             /* on the card */
    double memory_rate;              /* peak, bytes per second */
    double interconnect_bandwidth;   /* to another card of the node, one direction, peak */
    const char *interconnect;        /* "PCIe 4.0 x16", "NVLink 3" */
    double host_rate;                /* to host memory, one direction, peak */
    double dollars_per_hour;         /* section 4.4.1 of the paper; 0: not in it */
    double min_dollars, max_dollars; /* range of its appendix A.4 */
    const char *source;              /* of the rates */
} Gpu;

extern const Gpu gpu_table[]; /* ends with key NULL */

/* NULL and an error that names the known ones. */
const Gpu *gpu_find(const char *key);

/* Bytes a training may use: the driver's context takes the rest. */
double gpu_usable_bytes(const Gpu *gpu);

/* What of a peak is reached in practice, and the small costs of doing anything at all. */
typedef struct {
    double products[PRECISIONS], memory, interconnect; /* fractions */
    double launch_s;                                   /* of a kernel in a captured step */
    double interconnect_latency_s, network_latency_s;
    /* Bytes per second that Adam moves in host memory: by the process of one GPU, and by those of a
     * node together, at most. */
    double host_process_rate, host_memory_rate;
    /* Software without fused attention: scores go through memory, with dense products and a pass
     * each for scale and mask, softmax and dropout. */
    bool scores_in_memory;
} Efficiency;

/* Fractions observed on an H200 (design notes: bf16 790 of 989 TFLOP/s, tf32 415 of 495, fp32 49 of
 * 67, copies 4.3 of 4.8 TB/s); the rest are round guesses, and every one can be set. */
extern const Efficiency efficiency_default;

typedef struct {
    const Gpu *gpu;
    int per_node, nodes;
    double network_rate; /* of a node, one direction, bytes per second */
    Efficiency efficiency;
} Cluster;

/* Seconds of a message between two GPUs, which are numbered node by node: over the node's links, or
 * the network where they are on two nodes. */
double cluster_message_s(const Cluster *cluster, int from, int to, double bytes);

/* Seconds of a ring all-reduce of `bytes` at each of `replicas` GPUs, `stride` apart, while the
 * GPUs between them do the same: those of a node share its network. */
double cluster_reduce_s(const Cluster *cluster, int replicas, int stride, double bytes);

/* The paper's network: 2 x 25 Gb/s. */
#define NETWORK_2X25G (2 * 25e9 / 8)

#endif
