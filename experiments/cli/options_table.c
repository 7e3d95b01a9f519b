/* The table of all flags.  A flag that means something else in another command has a row for each
 * meaning.  --help shows the rows in this order; flags of few commands come first. */
#include <stddef.h>

#include "../../data/data.h"
#include "../../dist/schedule.h"
#include "options.h"

/* Names that others print, too. */
const char *const split_names[3] = {
    [SPLIT_TRAIN] = "train", [SPLIT_VALID] = "valid", [SPLIT_TEST] = "test"};
const char *const mode_names[2] = {[MODE_EVALUATE] = "eval", [MODE_TRAIN] = "train"};
const char *const export_names[3] = {"auto", "fp32", "bf16"};
const char *const plan_names[4] = {"full", "offload", "bcd", "all"};
const char *const device_names[DEVICE_KINDS] = {"cpu", "plain", "cuda", "simt"};
const char *const method_names[METHOD_KINDS] = {"bcd", "offload"};

static const char *const frozen_norm_names[] = {
    [FROZEN_RUNNING] = "running", [FROZEN_BATCH] = "batch"};
static const char *const decay_names[] = {"all", "matrices"};
static const char *const placement_choices[PLACEMENTS + 1] = {
    PLACEMENT_NAMES, [PLACEMENT_AUTO] = "auto"};

/* Groups of commands that share flags. */
#define TRAIN COMMAND_TRAIN
#define TRACING (TRAIN | COMMAND_TRACE) /* what a single step depends on */
#define LOADING (COMMAND_EVAL | COMMAND_SAMPLE | COMMAND_GRADIENTS)
#define RUNNING (TRACING | LOADING)

/* The columns from the kind to the choices. */
#define VALUE(field, kind, min, max) kind, offsetof(Options, field), min, max, NULL, 0
#define ROOM(field) (sizeof((Options *)0)->field - 1) /* the longest text */
#define TEXT(field) VALUE(field, OPTION_IS_TEXT, 0, ROOM(field))
#define NAMES(names) names, sizeof names / sizeof *names
#define INT(field, min, max) VALUE(field, OPTION_IS_INT, min, max)
#define COUNT(field, min, max) VALUE(field, OPTION_IS_COUNT, min, max)
#define REAL(field, min, max) VALUE(field, OPTION_IS_REAL, min, max)
#define BYTES(field) VALUE(field, OPTION_IS_BYTES, 0, 1e15)
#define FLAG(field) VALUE(field, OPTION_IS_FLAG, 0, 1)
#define SWITCH(field) VALUE(field, OPTION_IS_SWITCH, 0, 0)
#define CHOICE(field, names) OPTION_IS_CHOICE, offsetof(Options, field), 0, 0, NAMES(names)

#define FIXED OPTION_FIXED
#define FREE OPTION_FREE
#define MOVES OPTION_MOVES
#define LOCAL OPTION_LOCAL
#define ROUNDS OPTION_ROUNDS

/* Limits of the types.  A range that ends at one of them is printed as "from 1 up". */
#define MANY 2147483647
#define EVER 9e15

const Option option_table[] = {
    {.name = "", .help = "Plan"},
    {"model", "SPEC", TEXT(model), LOCAL, "", "none",
     "model to plan for: G-10B, L-70B, ... (see bcd info), or a shape such as "
     "gpt:layers=48,width=2048,heads=16,context=1024",
     COMMAND_PLAN},
    {"init", "DIR", TEXT(init), LOCAL, "", "none",
     "plan for the model in DIR (Hugging Face's), in place of --model", COMMAND_PLAN},
    {"gpu", "KEY|cpu|any", TEXT(plan.gpu), LOCAL, "rtx4090", NULL,
     "rtx4090, a100, a800, h100, h200; cpu, a processor here, which is measured; with --search any",
     COMMAND_PLAN},
    {"per-node", "N", INT(plan.per_node, 1, 64), LOCAL, "8", "8; with --gpu cpu all processors",
     "GPUs per node", COMMAND_PLAN},
    {"nodes", "N", INT(plan.nodes, 1, 512), LOCAL, "1", NULL,
     "nodes, joined by the network; the maximum for --search", COMMAND_PLAN},
    {"network", "GBIT", REAL(plan.network, 0.001, 1e6), LOCAL, "50", NULL,
     "network bandwidth of a node in one direction, gigabits per second", COMMAND_PLAN},
    {"batch", "SAMPLES", INT(batch, 1, 1 << 20), LOCAL, "256", NULL,
     "samples per update, over all GPUs", COMMAND_PLAN},
    {"micro-batches", "N", INT(plan.micro_batches, 1, 1 << 20), LOCAL, "1", "chosen",
     "micro-batches of a pipeline", COMMAND_PLAN},
    {"pipeline", "P", INT(plan.pipeline, 1, 4096), LOCAL, "1", "chosen", "ranks of a pipeline",
     COMMAND_PLAN},
    {"submodels", "M", INT(submodels, 2, 10000), LOCAL, "3", NULL,
     "number of BCD's submodels; --search tries 2 to 5, and more where nothing fits", COMMAND_PLAN},
    {"optimizer", NULL, CHOICE(optimizer.kind, optimizer_names), LOCAL, "adam", NULL,
     "optimizer; its state takes memory", COMMAND_PLAN},
    {"cache", NULL, FLAG(plan.cache), LOCAL, "0", NULL,
     "all outputs of BCD's frozen prefix are in a cache, see bcd train --cache", COMMAND_PLAN},
    {"trace", "FILE", TEXT(plan.trace), LOCAL, "", "the GPU's data sheet",
     "take the speed of matrix products from FILE, which bcd trace --out wrote on such a GPU",
     COMMAND_PLAN},
    {"method", NULL, CHOICE(plan.method, plan_names), LOCAL, "all", NULL,
     "plan only the full update, the full update with the optimizer in host memory, or BCD",
     COMMAND_PLAN},
    {"efficiency", "F", REAL(plan.efficiency, 1e-4, 10), LOCAL, NULL, "0.73, tf32 0.84, bf16 0.80",
     "fraction of the GPU's peak, or of a processor's measured speed, that products of matrices "
     "reach at --precision, or at each where none is given",
     COMMAND_PLAN},
    {"host-rate", "GB/S", REAL(plan.host_rate, 1e-3, 1e6), LOCAL, NULL, "100",
     "offload: what Adam of one GPU's process moves in host memory", COMMAND_PLAN},
    {"host-memory", "GIB", REAL(plan.host_memory, 1e-3, 1e6), LOCAL, NULL, "any",
     "memory of a node's host, for what is offloaded and in bf16 the parameters", COMMAND_PLAN},
    {"unfused-attention", NULL, FLAG(plan.unfused_attention), LOCAL, "0", NULL,
     "attention scores go through memory, as in software without a fused attention; bytes stay "
     "those of a fused one",
     COMMAND_PLAN},
    {"equal-work", NULL, FLAG(plan.equal_work), LOCAL, "0", NULL,
     "submodels that take the same time, instead of those of bcd train, of as many parameters",
     COMMAND_PLAN},
    {"ignore-memory", NULL, FLAG(plan.ignore_memory), LOCAL, "0", NULL,
     "plan also what does not fit into the GPUs' memory; not with --search", COMMAND_PLAN},
    {"step-ms", "MS", REAL(plan.step_ms, 1e-6, 1e12), LOCAL, NULL, "not known",
     "a measured step of --method: plan with the --efficiency (offload: --host-rate) of it",
     COMMAND_PLAN},
    {"search", NULL, FLAG(plan.search), LOCAL, "0", NULL,
     "also try numbers of GPUs, up to --per-node x --nodes, and with --gpu any their kinds",
     COMMAND_PLAN},
    {"gpus", "N", INT(plan.max_gpus, 1, 32768), LOCAL, "32768", "any",
     "--search: maximum number of GPUs", COMMAND_PLAN},
    {"budget", "DOLLARS", REAL(plan.budget, 0.01, 1e9), LOCAL, NULL, "any",
     "--search: maximum price of all GPUs together, per hour", COMMAND_PLAN},
    {.name = "", .help = "Flags"},
    {"split", NULL, CHOICE(split, split_names), LOCAL, "valid", NULL, "split to evaluate on",
     COMMAND_EVAL},
    {"prompt", "TEXT|-", TEXT(sample.prompt), LOCAL, "", "nothing",
     "beginning of the text; - reads it from standard input", COMMAND_SAMPLE},
    {"chat", NULL, FLAG(sample.chat), LOCAL, "0", NULL, "answer the prompt", COMMAND_SAMPLE},
    {"tokens", "N", INT(sample.tokens, 1, 1 << 20), LOCAL, "200", NULL, "number of tokens to add",
     COMMAND_SAMPLE},
    {"temperature", "T", REAL(sample.temperature, 0, 100), LOCAL, "0.8", NULL,
     "0 always takes the most likely token, 1 samples the model's distribution, more a flatter one",
     COMMAND_SAMPLE},
    {"top-k", "K", INT(sample.top_k, 0, 1 << 24), LOCAL, "0", "all",
     "sample among the K most likely tokens", COMMAND_SAMPLE},
    {"top-p", "P", REAL(sample.top_p, 1e-9, 1), LOCAL, "1", "all",
     "sample among the most likely tokens that together have probability P", COMMAND_SAMPLE},
    {"model", "SPEC", TEXT(model), LOCAL, "", "all presets, in a table",
     "show the blocks of one model, and its memory", COMMAND_INFO},
    {"init", "DIR", TEXT(init), LOCAL, "", "none",
     "show the model in DIR, in Hugging Face's format, in place of --model", COMMAND_INFO},
    {"batch", "SAMPLES", INT(batch, 1, 1 << 20), LOCAL, "1", NULL,
     "--model: samples per update, for activations", COMMAND_INFO},
    {"optimizer", NULL, CHOICE(optimizer.kind, optimizer_names), LOCAL, "sgd", "sgd and adam",
     "--model: the optimizer", COMMAND_INFO},
    {"momentum", "F", REAL(optimizer.momentum, 0, 0.999999), LOCAL, NULL, NULL,
     "--optimizer: momentum; sgd with 0 has no state", COMMAND_INFO | COMMAND_PLAN},
    {"tokenizer", "bytes|gpt2|DIR", TEXT(tokenizer), LOCAL, "gpt2", NULL,
     "tokenizer; DIR: a model's directory with tokenizer.json or tokenizer.model (needs Python and "
     "the package transformers)",
     COMMAND_TOKENIZE},
    {"context", "TOKENS", INT(context, 0, 1 << 20), LOCAL, "0", "records follow each other",
     "--tokenizer DIR: keep records whole in windows of TOKENS", COMMAND_TOKENIZE},
    {"out", "FILE", TEXT(out), LOCAL, "",
     "the input's name, ending in .tokens; no file is replaced then", "token file to write",
     COMMAND_TOKENIZE},
    {"checkpoint", "FILE", TEXT(gradients.checkpoint), LOCAL, "", NULL, "checkpoint.h5 of a run",
     COMMAND_GRADIENTS},
    {"batch", "FILE", TEXT(gradients.batch_file), LOCAL, "", NULL, "HDF5 file with the samples",
     COMMAND_GRADIENTS},
    {"mode", NULL, CHOICE(gradients.mode, mode_names), LOCAL, "train", NULL,
     "train: batch norm uses the statistics of the batch and updates the running ones; eval: it "
     "uses the running ones, and there are no gradients",
     COMMAND_GRADIENTS},
    {"out", "DIR", TEXT(out), LOCAL, "", NULL,
     "directory for config.json and model.safetensors; those that are there are replaced",
     COMMAND_EXPORT},
    {"init", "DIR", TEXT(init), LOCAL, "", "where the training found it",
     "the model that the training began with, if it has been moved; its settings and its tokenizer "
     "are kept",
     COMMAND_EXPORT},
    {"precision", NULL, CHOICE(export_numbers, export_names), LOCAL, "auto", NULL,
     "numbers of the weights; auto: bf16 if the model that the training began with has them in "
     "bf16, otherwise fp32.  bf16 rounds the trained weights, and halves the file",
     COMMAND_EXPORT},
    {"out", "FILE", TEXT(out), LOCAL, "", NULL, "HDF5 file to write", COMMAND_GRADIENTS},
    {"out", "FILE", TEXT(out), LOCAL, "", "none", "also write the tables as HDF5, for bcd report",
     COMMAND_INFO | COMMAND_TRACE | COMMAND_PLAN},
    {"multiplier", "X", REAL(plan.multiplier, 1e-6, 1e6), LOCAL, NULL,
     "as measured, by --submodels",
     "B-F multiplier (updates of BCD over those of the full update) of the cost to the same loss; "
     "bcd report --table multipliers prints those of files",
     COMMAND_PLAN},
    {"price", "GPU=DOLLARS,...", TEXT(plan.price), LOCAL, "", "those of section 4.4.1",
     "price of a GPU per hour, as in rtx4090=0.31,a100=1.12, or one number", COMMAND_PLAN},
    {"tokens", "N", REAL(plan.tokens, 1, 1e18), LOCAL, "1e9", NULL,
     "length of the training that is priced, in tokens", COMMAND_PLAN},
    {"active", "K", INT(trace.active, 0, 10000), LOCAL, "0", "each in turn",
     "show only submodel K, counted from 1", COMMAND_TRACE},
    {"steps", "N", INT(trace.steps, 1, 1 << 20), LOCAL, "30", NULL,
     "time at most N steps of each submodel; fewer if they take long", COMMAND_TRACE},
    {.name = "", .help = "Model and data"},
    {"model", "SPEC", TEXT(model), FIXED, "resnet8", NULL,
     "resnet8, resnet20, gpt2, ... (see bcd info), or a shape such as "
     "gpt:layers=6,width=384,heads=6,context=256; vocabulary and classes come from the data",
     TRACING},
    {"init", "DIR|FILE", TEXT(init), FIXED, "", "random, from the seed",
     "start from the GPT-2, LLaMA, Mistral, Qwen2, Qwen3, SmolLM3 or OLMo 2 in DIR (Hugging Face's "
     "config.json and safetensors), in place of --model; or, with --model, from FILE.safetensors, "
     "which has exactly the tensors of a checkpoint, under the same names; running statistics may "
     "be missing",
     TRAIN},
    {"init", "DIR", TEXT(init), LOCAL, "", "none",
     "use the model in DIR (Hugging Face's), in place of a run", LOADING},
    /* A resume finds out by its checksum whether it is the same. */
    {"data", "NAME", TEXT(data), MOVES, "synthetic", NULL,
     "DATASETS; or a FILE.tokens made by bcd tokenize", TRACING},
    {"data", "NAME", TEXT(data), LOCAL, "", "the run's",
     "a data set's name, or a FILE.tokens; needed with --init", COMMAND_EVAL},
    {"valid", "FILE", TEXT(valid), FIXED, "", "a part of --data is held out",
     "token file to validate on; nothing of --data is held out then", TRAIN | COMMAND_EVAL},
    {"data-dir", "DIR", TEXT(data_dir), MOVES, "", "$BCD_DATA, else datasets",
     "where the data sets are", TRACING | COMMAND_EVAL | COMMAND_SAMPLE | COMMAND_TOKENIZE},
    {"context", "TOKENS", INT(context, 0, 1 << 20), FIXED, "0",
     "the model's; of --init at most 1024", "tokens per sequence, at most the model's context",
     TRACING | COMMAND_EVAL | COMMAND_PLAN | COMMAND_INFO},
    {"context", "TOKENS", INT(context, 0, 1 << 20), FIXED, "0", "of --init as many as are needed",
     "tokens that the model reads at a time", COMMAND_SAMPLE | COMMAND_GRADIENTS},
    {"limit", "SAMPLES", INT(limit, 0, MANY), FIXED, "0", "all", "use only SAMPLES of each split",
     TRACING | COMMAND_EVAL},
    {"augment", NULL, FLAG(augment), FIXED, "0", NULL,
     "crop and flip images at random; not with --cache", TRAIN},
    {"fraction", "F", REAL(fraction, 1e-6, 1), FIXED, "1", NULL,
     "train each submodel on a new random fraction of the data (the paper's dataset reduction)",
     TRAIN},
    {.name = "", .help = "Block coordinate descent"},
    {"submodels", "M", INT(submodels, 1, 10000), FIXED, "1", NULL,
     "number of submodels, trained in turn; 1 is ordinary training", TRAIN},
    {"submodels", "M", INT(submodels, 1, 10000), LOCAL, "1", "3", "number of submodels",
     COMMAND_INFO | COMMAND_TRACE},
    {"partition", "LIST", TEXT(partition), FIXED, "", "balanced by parameters",
     "blocks of each submodel, by number or name, submodels separated by /, as in 0-2/3-4",
     TRACING | COMMAND_INFO},
    {"always-active", "LIST", TEXT(always_active), FIXED, "",
     "none; bcd train: ends for images, unless --cache, --partition or --placement figure2 is "
     "given, or too few blocks are between them",
     "blocks that are trained with every submodel, as in embedding,head; ends means the first and "
     "the last, none refuses the default; their optimizer state and step count go on at a switch",
     TRACING | COMMAND_PLAN | COMMAND_INFO},
    {"order", NULL, CHOICE(order, order_names), FIXED, "cyclic", NULL,
     "which submodel comes next; random draws a new order for each cycle, without repeating a "
     "submodel; gauss-southwell takes the one with the largest gradient, which costs a forward and "
     "backward pass of every submodel at each switch",
     TRAIN},
    {"switch-every", "K|Ee|auto", SWITCH(switch_rule), FIXED, "1e",
     "1e; with --init 20, or fewer, so that every submodel gets a turn",
     "switch to the next submodel after K steps, after E epochs (2e), or when the loss stops "
     "falling (auto)",
     TRAIN},
    {"auto-window", "STEPS", INT(switch_rule.window, 1, MANY), FIXED, "50", NULL,
     "auto compares the mean losses of two successive windows of STEPS", TRAIN},
    {"auto-tolerance", "F", REAL(switch_rule.tolerance, 0, 1), FIXED, "0.01", NULL,
     "auto switches when the loss fell by less than this fraction", TRAIN},
    {"auto-min", "STEPS", INT(switch_rule.min_steps, 1, MANY), FIXED, "100", NULL,
     "auto switches after STEPS at the earliest", TRAIN},
    {"auto-max", "STEPS", INT(switch_rule.max_steps, 1, MANY), FIXED, "10000", NULL,
     "auto switches after STEPS at the latest", TRAIN},
    {"keep-state", NULL, FLAG(keep_state), FIXED, "0", NULL,
     "keep the optimizer state of submodels that are not active; without it each phase begins with "
     "new state, except for blocks that are always active",
     TRACING},
    {"switch-warmup", "STEPS", INT(switch_warmup, 0, MANY), FIXED, "0", NULL,
     "after each switch raise the learning rate by its STEPS-th part an update", TRAIN},
    {"submodel-lr", "LIST", TEXT(submodel_lr), FIXED, "", "1 each",
     "factors of the learning rate, one for each submodel, as in 1,0.5,2", TRAIN},
    {"correct-above", "FACTOR", REAL(correct_above, 0, 1e6), FIXED, "0", "none",
     "at each update frozen blocks above the active submodel take a plain gradient step of FACTOR "
     "times the learning rate, as in BREAD; only on the CPU, not with --pipeline",
     TRACING | COMMAND_INFO},
    {"frozen-norm", NULL, CHOICE(frozen_norm, frozen_norm_names), FIXED, "running", NULL,
     "statistics that a frozen batch norm uses: running ones or the batch's", TRACING},
    {.name = "", .help = "Optimizer"},
    {"optimizer", NULL, CHOICE(optimizer.kind, optimizer_names), FIXED, "sgd",
     "sgd; language models adamw",
     "optimizer; weight decay is part of the gradient in COUPLED, and a step of its own in the "
     "others",
     TRACING},
    {"lr", "RATE", REAL(optimizer.lr, 0, 1000), FIXED, NULL, NULL,
     "learning rate; with --init those of adamw, lion and sgd were the best of three or four for a "
     "model of 135 million parameters; models of billions take lower ones; adamw takes 4 times its "
     "own from 6 submodels on, and from 30 on 16 times, but with blocks that are always active 4",
     TRAIN},
    {"momentum", "F", REAL(optimizer.momentum, 0, 0.999999), FIXED, NULL, NULL, "momentum",
     TRACING},
    {"beta1", "F", REAL(optimizer.beta1, 0, 0.9999999), FIXED, NULL, NULL,
     "decay of the first moment; in lion the weight of the momentum", TRAIN},
    {"beta2", "F", REAL(optimizer.beta2, 0, 0.9999999), FIXED, NULL, NULL,
     "decay of the second moment; in lion of the momentum", TRAIN},
    {"eps", "F", REAL(optimizer.eps, 0, 1), FIXED, NULL, NULL,
     "added to the root of the second moment", TRAIN},
    {"weight-decay", "F", REAL(optimizer.weight_decay, 0, 1000), FIXED, NULL, "0 of others",
     "weight decay", TRAIN},
    {"decay", NULL, CHOICE(decay, decay_names), FIXED, "all", NULL,
     "apply weight decay to all parameters or to matrices only", TRAIN},
    {"clip", "NORM", REAL(optimizer.clip_norm, 0, 1e9), FIXED, "0", "none; language models 1",
     "clip the gradient to this global norm", TRACING},
    {"schedule", NULL, CHOICE(optimizer.schedule, lr_names), FIXED, "constant",
     "constant; language models cosine", "schedule of the learning rate", TRAIN},
    {"warmup", "STEPS", INT(optimizer.warmup_steps, 0, MANY), FIXED, "0",
     "0; a twentieth of the steps if a language model has the default schedule",
     "raise the learning rate by its STEPS-th part in each of the first STEPS", TRAIN},
    {"final-lr", "F", REAL(optimizer.final_fraction, 0, 1), FIXED, "0.1", NULL,
     "cosine: learning rate at the end, as a fraction of --lr", TRAIN},
    {"step-every", "STEPS", INT(optimizer.step_every, 1, MANY), FIXED, "10000", NULL,
     "step: multiply the learning rate by --step-factor every STEPS", TRAIN},
    {"step-factor", "F", REAL(optimizer.step_factor, 0, 1), FIXED, "0.1", NULL,
     "step: factor of the learning rate", TRAIN},
    {.name = "", .help = "Batch, length, seed"},
    {"batch", "SAMPLES", INT(batch, 1, 1 << 20), FIXED, NULL, "128 images or 8 sequences",
     "samples per update", TRACING},
    {"batch", "SAMPLES", INT(batch, 1, 1 << 20), LOCAL, NULL, "the run's",
     "samples computed at a time; does not change the result", COMMAND_EVAL},
    {"accumulate", "PARTS", INT(accumulate, 1, 1 << 20), FIXED, "1", NULL,
     "compute each batch in at most PARTS micro-batches, one after the other, to save memory",
     TRACING},
    {"steps", "N", COUNT(steps, 0, EVER), OPTION_EXTENDS, NULL, "from --epochs",
     "number of updates; 0 only writes the checkpoint", TRAIN},
    {"epochs", "N", REAL(epochs, 1e-9, 1e9), OPTION_EXTENDS, "6", NULL,
     "passes over the data, in place of --steps", TRAIN},
    {"seed", "N", COUNT(seed, 0, EVER), FIXED, "1", NULL, "seed of all random numbers",
     TRACING | COMMAND_SAMPLE},
    {.name = "", .help = "Running"},
    {"threads", "N", INT(threads, 0, 4096), FREE, "0", "all cores",
     "number of threads; does not change the result", RUNNING | COMMAND_INFO | COMMAND_PLAN},
    {"device", NULL, CHOICE(device, device_names), ROUNDS, "cpu", NULL,
     "cpu: vectorized and threaded; plain: the CPU with the textbook loops of ref/ops, tens of "
     "times slower; cuda: an NVIDIA GPU; simt: the GPU's kernels run thread by thread on the CPU, "
     "to test them, as slow as plain",
     RUNNING},
    {"precision", NULL, CHOICE(precision, precision_names), ROUNDS, "fp32", NULL,
     "tf32 rounds the factors of matrix products; bf16 keeps activations and weights in 16 bits, "
     "with fp32 masters of the active submodel; the CPU has only fp32",
     RUNNING | COMMAND_INFO | COMMAND_PLAN},
    {"method", NULL, CHOICE(method, method_names), ROUNDS, "bcd", NULL,
     "offload is a baseline to compare BCD with: every step updates all parameters in host memory, "
     "where the optimizer state is; only for cuda and simt",
     TRAIN | COMMAND_TRACE},
    {"recompute", NULL, FLAG(recompute), FREE, "0", NULL,
     "keep only the inputs of blocks and recompute the rest in the backward pass: less memory, "
     "more time",
     TRACING | COMMAND_PLAN | COMMAND_INFO},
    {"cache", "BYTES", BYTES(cache), FREE, "0", "none",
     "compute the outputs of the frozen prefix once and keep them: up to BYTES (2G, 512M) in host "
     "memory, for each replica, the rest in a file in the run's directory",
     TRACING},
    {"pre-infer", NULL, FLAG(pre_infer), FREE, "0", NULL,
     "fill --cache before each phase, by all ranks; needs --pipeline", TRAIN},
    {"device-cache", "BYTES", BYTES(device_cache), FREE, "0", "none",
     "keep up to BYTES of these outputs in the device's memory; the rest goes to --cache", TRAIN},
    {"out", "DIR", TEXT(out), LOCAL, "", "a new one under runs/",
     "directory for run.h5 and checkpoint.h5; must not hold a run yet", TRAIN},
    {"like", "DIR", TEXT(like), LOCAL, "", "none",
     "take the settings of the run in DIR, except for the flags given here", TRAIN},
    {"resume", "DIR", TEXT(resume), LOCAL, "", NULL,
     "continue the run in DIR; needs no other flag; --steps or --epochs may extend it; --device, "
     "--precision, --pipeline and, without batch norms, --replicas may change, which can change "
     "roundings; flags such as --threads, --cache and --recompute change no result",
     TRAIN},
    {"eval-every", "STEPS", INT(eval_every, 0, MANY), FREE, "0", "an epoch",
     "evaluate on the validation split every STEPS", TRAIN},
    {"eval-samples", "SAMPLES", INT(eval_samples, 0, MANY), FREE, "0", "all",
     "evaluate on the first SAMPLES of the split", TRAIN},
    {"save-every", "STEPS", INT(save_every, 0, MANY), FREE, "0", "about a minute",
     "write a checkpoint every STEPS", TRAIN},
    {"keep-last", "N", INT(keep_last, 0, 100000), FREE, "0", NULL,
     "also keep the last N checkpoints, as checkpoint-STEP.h5", TRAIN},
    {"quiet", NULL, FLAG(quiet), LOCAL, "0", NULL, "print errors only", TRAIN | COMMAND_EXPORT},
    {"brief", NULL, FLAG(brief), LOCAL, "0", NULL,
     "print only progress, and the result in one line", TRAIN},
    {"log-samples", "FILE", TEXT(log_samples), LOCAL, "", "none",
     "write which samples each update uses: a line with the update's number and the samples'",
     TRAIN},
    {"config", "FILE", TEXT(config), LOCAL, "", "none",
     "read flags from FILE, one per line, as in \"lr 0.1\"; # begins a comment; flags on the "
     "command line override them",
     RUNNING | COMMAND_PLAN},
    {.name = "", .help = "Several devices"},
    {"pipeline", "none|local:N|mpi|nccl", TEXT(pipeline), FREE, "none", NULL,
     "divide the model over ranks: local:N, threads of this process; mpi, the processes that "
     "mpirun or srun started; nccl, the same with NCCL between their GPUs (bcd trace: local:N); "
     "--accumulate should be at least twice the number of ranks, to keep them busy",
     TRAIN | COMMAND_TRACE},
    {"placement", NULL, CHOICE(placement, placement_choices), FREE, "auto", NULL,
     "what each rank holds: plain, a piece of the model; virtual, a piece of every submodel; "
     "figure2, the same with submodels that are not contiguous, as in the paper; auto, virtual if "
     "every submodel has a block for each rank, and none is always active",
     TRAIN | COMMAND_PLAN | COMMAND_TRACE},
    {"pipeline-schedule", NULL, CHOICE(pipeline_schedule, schedule_names), FREE, "1f1b",
     "1f1b; bcd plan: chosen",
     "zero-bubble delays weight gradients to fill the gaps, and needs more memory",
     TRAIN | COMMAND_PLAN | COMMAND_TRACE},
    {"replicas", "R", INT(replicas, 1, 4096), ROUNDS, "1", "1; bcd plan: chosen",
     "data-parallel replicas of the pipeline, which divide each batch; ranks = R x ranks of a "
     "replica; batch norms see the samples of one replica",
     TRAIN | COMMAND_PLAN | COMMAND_TRACE},
    {"timeout", "SECONDS", REAL(timeout, 0.1, 1e6), FREE, "300", NULL,
     "with mpi and nccl: give up when a rank has not answered for this long, or, with mpi while it "
     "computes or writes a file, has sent nothing for ten times as long",
     TRAIN},
    {.name = NULL},
};
_Static_assert(sizeof option_table / sizeof *option_table <= OPTIONS_MAX, "raise OPTIONS_MAX");
