/* The struct of the CUDA stage, and the functions that its files share. */
#pragma once

#include "../../ref/layout.h"
#include "../fuse.h"
#include "../update.h"
#include "plan.h"
#include "stage_cuda.h"

/* One piece of device memory for all tensors of a role that are allocated and freed together.  A
 * switch of submodel frees and allocates whole pieces, so that memory does not fragment. */
typedef struct {
    char *base; /* aligned to 256 bytes */
    MemRole role;
    size_t requested;
} Arena;

/* The staging buffer of a micro-batch, in page-locked memory.  Two of them take turns, so that one
 * is filled while the device still reads the other. */
typedef struct {
    char *pinned;                       /* laid out as the sent part of FixedOffsets */
    Event read;                         /* the device is done with it */
    bool inputs, targets, scale, slots; /* what has been sent of this batch */
} BatchBuffer;

/* All that determines the work of a step, and the graph captured for it. */
typedef struct {
    int n, first;
    bool accumulate, last;
} StepShape;
typedef struct {
    StepShape shape;
    Graph graph;   /* NULL if the step has run but is not captured */
    uint64_t used; /* the last step that used it; 0: none */
} CapturedStep;
enum { CAPTURED_STEPS = 8 };

/* A data set whose images stay on the device. */
typedef struct {
    const Dataset *data;
    DeviceImages images;
} Resident;
enum { RESIDENTS = 2 }; /* to train on, and to evaluate with */

/* What the host reads back of a step, page-locked. */
typedef struct {
    LossSums sums;
    double norm;
} StepAnswer;

/* An event on the stream.  The device time from it to the next charge's event is added to *ms. */
typedef struct {
    Event event;
    double *ms;
} Charge;

/* Optimizer state of a block: the first vectors of its parameters, then the second ones of those
 * that have two, each in the order of parameters.  It is in device memory (arena) or, with offload,
 * in page-locked host memory (pinned). */
typedef struct {
    Arena arena;
    char *pinned;
} BlockState;

/* Offload copies gradients to the host and weights to the device on a stream each, so that the
 * upper blocks' weights go up while the lower blocks' gradients still come down. */
typedef struct {
    Stream gradient_stream, weight_stream;
    char *gradients; /* laid out as `trained` */
    char *weights;   /* bf16: the rounded masters, laid out as `weights` */
    float *update;   /* workspace of the update of any parameter; NULL: none is needed */
    Event made;      /* the device has made the gradients of the block sent last */
    Event *arrived;  /* [blocks]: the block's gradients are on the host */
    Event loss_on_host;
    Event weights_on_device; /* all the new ones */
    bool *sent;              /* [blocks]: gradients that are being copied, and are final */
} Offload;

typedef struct {
    Stage base;
    StageTuning tuning;
    Run run;

    /* The model: weights of the value type in `parameters`. */
    ParamOffsets weights, floats;              /* of all parameters, as values and as floats */
    size_t *buffer_offset;                     /* [buffers]; of those not here: SIZE_MAX */
    Arena parameters, buffers, buffers_before; /* the last: a copy from the step's start */
    size_t buffer_bytes;                       /* of each of the two, gaps included */
    char *host_masters; /* laid out as `floats`: bf16 (stale while active), offload; else NULL */

    /* The submodel. */
    bool ready; /* all of it is allocated */
    bool *active;
    ParamOffsets trained; /* of its parameters, as floats: masters and gradients */
    Arena masters, gradients, activations, scratch;
    BlockState *state; /* [blocks] */
    Layout layout;
    StoredOffsets stored;
    Updater *updater;
    Offload offload;

    /* The step. */
    bool stepping; /* a step has begun, and neither updated nor been discarded */
    FixedOffsets fixed;
    Arena workspace; /* laid out as `fixed` */
    BatchBuffer batch_buffer[2];
    int buffer_in_use; /* index of the batch_buffer in use */
    bool buffer_taken; /* the batch in flight has taken it */
    StepAnswer *answer;
    Batch batch; /* in flight; the caller owns its arrays */
    int n;       /* its samples */
    int micro_batch;
    Mode mode;
    bool *gradient_made; /* [params] */
    int norm_done;  /* the norm that ran with the add at the end of the block below; -1: none */
    Fusion *fusion; /* [nodes] */
    CapturedStep captured[CAPTURED_STEPS];
    uint64_t steps;

    Resident resident[RESIDENTS];
    int residents;
    size_t resident_bytes; /* the part of settings.image_bytes in use */
    Arena cache;
    size_t cache_width;
    Arena kept;     /* of generation: the inputs of attentions, of all positions */
    char **kept_at; /* [values]: where they are; NULL for other values */
    Charge *charge; /* [charges], room for charges_capacity; events are used again */
    int charges, charges_capacity;
    char *staging; /* page-locked, STAGING_BYTES */
} CudaStage;

enum { STAGING_BYTES = 1 << 22 };

static inline CudaStage *cuda_stage(Stage *base) { return (CudaStage *)(void *)base; }

/* Returns true if the active parameters have float masters on the device, besides bf16 weights. */
static inline bool has_masters(const CudaStage *s) {
    return s->base.settings.precision == PRECISION_BF16 && !s->base.settings.offload;
}

/* Returns 0 if gradients are not clipped. */
static inline double clip_norm(const CudaStage *s) { return s->base.settings.optimizer.clip_norm; }

/* Each file calls only the files above it in this list.
 *
 * ---- addresses.c: where each array lies; NULL for what is not here now ---- */

void *weight_at(const CudaStage *s, int param);
float *buffer_at(const CudaStage *s, int buffer);
float *gradient_at(const CudaStage *s, int param);
float *master_at(const CudaStage *s, int param); /* on the device */
float *host_master_at(const CudaStage *s, int param);
float *state_at(const CudaStage *s, int vector, int param);
bool is_updated(const CudaStage *s, int param);    /* active, and owned by this stage */
size_t state_bytes(const CudaStage *s, int block); /* of optimizer state, gaps included */
/* A value of the batch in flight, its gradient, and what a node saves with its output. */
void *value_at(const CudaStage *s, int value);
void *value_gradient_at(const CudaStage *s, int value);
float *aux_at(const CudaStage *s, int node);
static inline void *fixed_at(const CudaStage *s, size_t offset) {
    return s->workspace.base + offset;
}

/* ---- stage_memory.c: memory of the submodel s->active, its optimizer state and masters ---- */

/* Allocates `bytes`, gaps between tensors included, and counts `requested`, without them.  Not
 * zeroed.  With bytes 0 the arena is empty.  -1 and an error that names role and bytes, when memory
 * runs out. */
int arena_open(CudaStage *s, Arena *arena, MemRole role, size_t bytes, size_t requested);
/* Leaves the arena all zero; it may be closed again. */
void arena_close(CudaStage *s, Arena *arena);
int submodel_allocate(CudaStage *s);
/* Frees the submodel, which may be allocated in part.  Optimizer state stays with keep_state, and
 * of active blocks that are in next[blocks]; next may be NULL. */
void submodel_free(CudaStage *s, const bool *next);
int state_allocate(CudaStage *s, int block);
void state_free(CudaStage *s, int block);
/* Copies the masters of the active blocks, if there are any, to the host, and waits. */
int masters_to_host(CudaStage *s);

/* ---- transfer.c: tensors to and from the host ---- */

int transfer_initial(CudaStage *s); /* parameters, unless settings.skip_init; running statistics */
size_t transfer_read(Stage *base, TensorRole role, int number, real *data);
int transfer_write(Stage *base, TensorRole role, int number, const real *data);
/* Copies `count` numbers of the given size (4: float, 2: bf16) to the host. -1 and an error if the
 * device has failed. */
int transfer_to_host(CudaStage *s, float *to, const void *from, size_t size, size_t count);
/* Computes y[count] = x rounded to bf16. */
void round_to_bf16(uint16_t *y, const float *x, size_t count);

/* ---- batch.c: a micro-batch to the device ---- */

int batch_open(CudaStage *s);
void batch_close(CudaStage *s);
int batch_keep_images(Stage *base, Dataset *data);
void batch_begin(Stage *base, const Batch *batch, Mode mode);
void batch_select(Stage *base, int micro_batch);
/* Send the inputs or the targets of the batch in flight to their place on the device, unless this
 * has been done.  Passes call these where they read them, as most calls on a stage of a pipeline
 * read neither. */
void batch_send_inputs(CudaStage *s);
void batch_send_targets(CudaStage *s);
/* Sends the first `count` tokens of the batch alone. */
void batch_send_tokens(CudaStage *s, size_t count);
/* Send the loss scale, or n slots of the cache, to their place on the device. */
void batch_send_scale(CudaStage *s, double scale);
void batch_send_slots(CudaStage *s, const int *slots, int n);

/* ---- times.c: device times ---- */

void times_charge(Stage *base, double *ms);
void times_drop(CudaStage *s); /* forgets times that are not yet added */
void times_close(CudaStage *s);

/* ---- boundary.c: outputs of blocks to and from the prefix cache, and messages ---- */

int cache_reserve(Stage *base, size_t width, size_t bytes);
void cache_put(Stage *base, int block, const int *slots, int n);
void cache_get(Stage *base, int block, const int *slots, int n);
void *stage_cuda_message_create(Stage *base, size_t count);
void stage_cuda_message_pack(Stage *base, TensorRole role, int block, void *message);
int stage_cuda_message_unpack(Stage *base, TensorRole role, int block, void *message);

/* ---- offload.c: the baseline that updates in host memory ---- */

int offload_start(CudaStage *s);
void offload_stop(CudaStage *s);
/* Sends a block's gradients to the host, after what is on the stream now. */
void offload_send(CudaStage *s, int block);
void offload_forget(CudaStage *s); /* forgets what was sent, when the step has ended */
/* Overwrites *norm with that of all gradients, on the host.  -1 and an error if the device has
 * failed. */
int offload_norm(CudaStage *s, double *norm);
/* Updates on the host and sends the weights back, block by block.  -1 and an error if the device
 * has failed. */
int offload_update(CudaStage *s, double lr, double gradient_scale);

/* ---- pass.c: forward and backward over a block ---- */

/* Returns the arrays that any pass over a node may need; the gradients are left to the caller. */
DeviceIO pass_node_io(const CudaStage *s, int node);
void pass_forward(Stage *base, int block);
void pass_input_gradient(Stage *base, int block);
void pass_weight_gradient(Stage *base, int block);
/* Computes the loss into sums (device memory), and with MODE_TRAIN the logits' gradient. */
void pass_loss(CudaStage *s, LossSums *sums, bool add);

/* ---- extend.c: generation ---- */

int extend_run(Stage *base, int first, const int *tokens, int count, real *logits);

/* ---- step.c: a whole step, captured as a CUDA graph and repeated ---- */

int step_run(Stage *base, int first, double scale, bool last, double lr, Loss *loss);
void step_forget(CudaStage *s);     /* frees the captured graphs */
Loss step_loss(const CudaStage *s); /* the loss in s->answer */
void step_discard(Stage *base);
int step_gradient_norm(Stage *base, double *norm);
int step_gradient_squares(Stage *base, double *square);
void step_update(Stage *base, double lr, double gradient_scale);
