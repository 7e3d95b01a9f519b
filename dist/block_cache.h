/* Costs and bytes of blocks, remembered: a search among settings asks for the same ones again and
 * again, and laying out a model's memory takes most of the time of a prediction. */
#pragma once

#include "../ref/memory.h"
#include "cost.h"

/* Of one model, optimizer, kind of GPU and its efficiency.  Threads may share it. */
typedef struct BlockCache BlockCache;

/* Returns a cache for block_cache_free to free; NULL and an error when memory runs out. */
BlockCache *block_cache_create(int blocks);
void block_cache_free(BlockCache *cache);

/* Overwrites cost[blocks] and bytes[blocks] as block_costs and memory_blocks do; without a cache,
 * NULL, it only calls these.  bytes: NULL if they are not wanted.  -1 and an error. */
int block_cache_find(BlockCache *cache, BlockCost *cost, BlockMemory *bytes, const Model *model,
                     const StageSettings *settings, const bool *active, const Gpu *gpu,
                     const Efficiency *efficiency);
