/* Every flag and every command, as data. */
#include <stddef.h>

#include "../../data/data.h"
#include "../../dist/schedule.h"
#include "options.h"

const char *const split_names[3] = {
    [SPLIT_TRAIN] = "train", [SPLIT_VALID] = "valid", [SPLIT_TEST] = "test"};

static const char *const frozen_norm_names[] = {
    [FROZEN_RUNNING] = "running", [FROZEN_BATCH] = "batch"};
static const char *const decay_names[] = {"all", "matrices"};
const char *const mode_names[2] = {[MODE_EVALUATE] = "eval", [MODE_TRAIN] = "train"};
const char *const device_names[DEVICE_KINDS] = {"cpu", "plain", "cuda", "simt"};
const char *const method_names[METHOD_KINDS] = {"bcd", "offload"};
const char *const preset_names[PRESET_KINDS] = {"smoke", "laptop", "gpu", "paper"};
static const char *const placement_choices[PLACEMENTS + 1] = {[PLACEMENT_PLAIN] = "plain",
                                                              [PLACEMENT_VIRTUAL] = "virtual",
                                                              [PLACEMENT_FIGURE2] = "figure2",
                                                              [PLACEMENT_AUTO] = "auto"};

/* Who takes a flag. */
#define TRAIN COMMAND_TRAIN
#define TRAINING (COMMAND_TRAIN | COMMAND_TRACE | COMMAND_EXPERIMENT)
#define LOADING (COMMAND_EVAL | COMMAND_SAMPLE | COMMAND_GRADIENTS)
#define RUNNING (TRAINING | LOADING)

#define TEXT(field) OPTION_IS_TEXT, offsetof(Options, field), 0, 0, NULL, 0
#define INT(field, min, max) OPTION_IS_INT, offsetof(Options, field), min, max, NULL, 0
#define COUNT(field, min, max) OPTION_IS_COUNT, offsetof(Options, field), min, max, NULL, 0
#define REAL(field, min, max) OPTION_IS_REAL, offsetof(Options, field), min, max, NULL, 0
#define BYTES(field) OPTION_IS_BYTES, offsetof(Options, field), 0, 1e15, NULL, 0
#define FLAG(field) OPTION_IS_FLAG, offsetof(Options, field), 0, 1, NULL, 0
#define CHOICE(field, names, count) OPTION_IS_CHOICE, offsetof(Options, field), 0, 0, names, count

#define FIXED OPTION_FIXED
#define FREE OPTION_FREE
#define LOCAL OPTION_LOCAL
#define ROUNDS OPTION_ROUNDS

/* No limit but that of the type: a range then reads "from 1 up". */
#define MANY 2147483647
#define EVER 9e15

const Option option_table[] = {
#define SECTION "Model and data"
    {"model", "SPEC", TEXT(model), FIXED, "resnet8", NULL, SECTION,
     "resnet8, resnet20, gpt2, ... (see bcd info), or free: gpt:layers=6,width=384,heads=6,"
     "context=256; vocabulary and classes come from the data",
     TRAINING},
    {"init", "DIR|FILE", TEXT(init), FIXED, "", "random, from the seed", SECTION,
     "start from the GPT-2, LLaMA or Mistral in DIR (config.json and safetensors, as Hugging Face "
     "has them), which also says what --model is; or, with --model, from FILE.safetensors: every "
     "tensor with its name and shape in a checkpoint, and no other; the running statistics may be "
     "left away",
     TRAIN | COMMAND_EXPERIMENT},
    {"init", "DIR", TEXT(init), LOCAL, "", "none", SECTION,
     "the GPT-2, LLaMA or Mistral in DIR, in place of a run", LOADING},
    {"data", "NAME", TEXT(data), FIXED, "synthetic", NULL, SECTION,
     "synthetic, text, text1, text2 (its halves; none of these needs a download), cifar10, "
     "cifar100, shakespeare, wikitext2, webtext2, wikitext2:N, shakespeare:N (in the first N "
     "tokens of GPT-2's vocabulary), or a FILE.tokens made by bcd tokenize",
     TRAINING},
    {"data", "NAME", TEXT(data), LOCAL, "", "the run's", SECTION,
     "a data set's name, or a FILE.tokens; --init needs one", COMMAND_EVAL},
    {"valid", "FILE", TEXT(valid), FIXED, "", "a part of --data is held out", SECTION,
     "token file to validate on; all of --data is then learned", TRAINING | COMMAND_EVAL},
    {"data-dir", "DIR", TEXT(data_dir), FREE, "", "$BCD_DATA, else datasets", SECTION,
     "where the data sets are", RUNNING | COMMAND_TOKENIZE},
    {"context", "TOKENS", INT(context, 0, 1 << 20), FIXED, "0", "the model's", SECTION,
     "tokens per sequence, at most the model's context",
     TRAINING | COMMAND_PLAN | COMMAND_EVAL | COMMAND_SAMPLE},
    {"limit", "SAMPLES", INT(limit, 0, MANY), FIXED, "0", "all", SECTION,
     "use only so many samples of each split", TRAINING | COMMAND_EVAL},
    {"augment", NULL, FLAG(augment), FIXED, "0", NULL, SECTION,
     "images: random crops and flips (not together with --cache)", TRAINING},
    {"fraction", "F", REAL(fraction, 1e-6, 1), FIXED, "1", NULL, SECTION,
     "dataset reduction: each submodel sees a fresh random part of the data", TRAINING},
#undef SECTION
#define SECTION "Block coordinate descent"
    {"submodels", "M", INT(submodels, 1, 10000), FIXED, "1", NULL, SECTION,
     "parts the network is trained in; 1 is ordinary training", TRAIN},
    {"submodels", "M", INT(submodels, 1, 10000), LOCAL, "1", "3", SECTION,
     "parts the network is trained in, next to the full update",
     COMMAND_TRACE | COMMAND_EXPERIMENT},
    {"partition", "LIST", TEXT(partition), FIXED, "", "balanced by parameters", SECTION,
     "by hand: blocks by number or name, submodels separated by /, as in 0-2/3-4", TRAINING},
    {"always-active", "LIST", TEXT(always_active), FIXED, "", "none", SECTION,
     "blocks that train next to every submodel, as in embedding,head; ends: the first and the last",
     TRAINING},
    {"order", "cyclic|descending|random|gauss-southwell", CHOICE(order, order_names, ORDER_KINDS),
     FIXED, "cyclic", NULL, SECTION,
     "which submodel comes next; random: another order each cycle, and never one twice in a row; "
     "gauss-southwell: the one with the largest gradient, which takes a forward and backward pass "
     "of each submodel at each switch",
     TRAINING},
    {"switch-every", "K|Ee|auto", OPTION_IS_SWITCH, 0, 0, 0, NULL, 0, FIXED, "1e", NULL, SECTION,
     "next submodel after K steps, E epochs (2e), or when the loss stops falling", TRAINING},
    {"auto-window", "STEPS", INT(auto_window, 1, MANY), FIXED, "50", NULL, SECTION,
     "auto: compare the mean loss of two windows of so many steps", TRAINING},
    {"auto-tolerance", "F", REAL(auto_tolerance, 0, 1), FIXED, "0.01", NULL, SECTION,
     "auto: switch when it fell by less than this fraction", TRAINING},
    {"auto-min", "STEPS", INT(auto_min, 1, MANY), FIXED, "100", NULL, SECTION, "auto: not before",
     TRAINING},
    {"auto-max", "STEPS", INT(auto_max, 1, MANY), FIXED, "10000", NULL, SECTION, "auto: not after",
     TRAINING},
    {"keep-state", NULL, FLAG(keep_state), FIXED, "0", NULL, SECTION,
     "keep a submodel's optimizer state when another becomes active", TRAINING},
    {"switch-warmup", "STEPS", INT(switch_warmup, 0, MANY), FIXED, "0", NULL, SECTION,
     "after each switch, rise to the rate in so many steps", TRAINING},
    {"submodel-lr", "LIST", TEXT(submodel_lr), FIXED, "", "1 each", SECTION,
     "factors of the learning rate, one for each submodel, as in 1,0.5,2", TRAINING},
    {"correct-above", "RATE", REAL(correct_above, 0, 1000), FIXED, "0", "none", SECTION,
     "frozen blocks above the submodel take a plain gradient step of this rate at each update, as "
     "in BREAD; on the processor, without --pipeline",
     TRAINING},
    {"frozen-norm", "running|batch", CHOICE(frozen_norm, frozen_norm_names, 2), FIXED, "running",
     NULL, SECTION, "statistics a frozen batch norm uses", TRAINING},
#undef SECTION
#define SECTION "Optimizer"
    {"optimizer", "sgd|adam|adamw|lion", CHOICE(optimizer, optimizer_names, OPTIMIZER_KINDS), FIXED,
     "sgd", "sgd; language models adamw", SECTION,
     "adam has coupled weight decay, adamw and lion decoupled", TRAINING},
    {"lr", "RATE", REAL(lr, 0, 1000), FIXED, NULL,
     "sgd 0.1, others 1e-4; language models 3e-4 by adam and adamw, 1e-5 with --init", SECTION,
     "learning rate", TRAINING},
    {"momentum", "F", REAL(momentum, 0, 0.999999), FIXED, NULL, "0.9", SECTION, "of sgd", TRAINING},
    {"beta1", "F", REAL(beta1, 0, 0.9999999), FIXED, "0.9", NULL, SECTION,
     "of adam, adamw, lion: decay of the first moment", TRAINING},
    {"beta2", "F", REAL(beta2, 0, 0.9999999), FIXED, "0.999", "0.999, lion 0.99", SECTION,
     "... of the second moment", TRAINING},
    {"eps", "F", REAL(eps, 0, 1), FIXED, "1e-8", NULL, SECTION,
     "of adam and adamw, next to the root of the second moment", TRAINING},
    {"weight-decay", "F", REAL(weight_decay, 0, 1000), FIXED, NULL, "1e-5, lion 0", SECTION, NULL,
     TRAINING},
    {"decay", "all|matrices", CHOICE(decay, decay_names, 2), FIXED, "all", NULL, SECTION,
     "which parameters decay", TRAINING},
    {"clip", "NORM", REAL(clip, 0, 1e9), FIXED, "0", "none; language models 1", SECTION,
     "largest global norm of the gradient", TRAINING},
    {"schedule", "constant|cosine|step", CHOICE(schedule, lr_names, LR_KINDS), FIXED, "constant",
     "constant; language models cosine", SECTION, "of the learning rate", TRAINING},
    {"warmup", "STEPS", INT(warmup, 0, MANY), FIXED, "0",
     "0; of a language model's own cosine a twentieth of the steps", SECTION,
     "rise from 0 to the rate first", TRAINING},
    {"final-lr", "F", REAL(final_lr, 0, 1), FIXED, "0.1", NULL, SECTION,
     "cosine: rate at the end, as a fraction of --lr", TRAINING},
    {"step-every", "STEPS", INT(step_every, 1, MANY), FIXED, "10000", NULL, SECTION,
     "step: change the rate every so many steps", TRAINING},
    {"step-factor", "F", REAL(step_factor, 0, 1), FIXED, "0.1", NULL, SECTION,
     "step: by this factor", TRAINING},
    {"batch", "SAMPLES", INT(batch, 1, 1 << 20), FIXED, NULL, "128 images or 8 sequences", SECTION,
     "samples per update", TRAINING},
    {"batch", "SAMPLES", INT(batch, 1, 1 << 20), LOCAL, NULL, "the run's", SECTION,
     "samples computed at the same time; the result is the same", COMMAND_EVAL},
    {"accumulate", "PARTS", INT(accumulate, 1, 1 << 20), FIXED, "1", NULL, SECTION,
     "compute a batch in so many parts, to save memory", TRAINING},
    {"steps", "N", COUNT(steps, 0, EVER), OPTION_EXTENDS, NULL, "from --epochs", SECTION,
     "updates in all; 0 only writes the checkpoint", TRAIN | COMMAND_TRACE},
    {"steps", "N", COUNT(steps, 1, EVER), LOCAL, NULL, "the preset's", SECTION,
     "updates of each training", COMMAND_EXPERIMENT},
    {"epochs", "N", REAL(epochs, 1e-9, 1e9), OPTION_EXTENDS, "6", NULL, SECTION,
     "passes over the data, instead of --steps", TRAINING},
    {"seed", "N", COUNT(seed, 0, EVER), FIXED, "1", NULL, SECTION, "of everything random",
     TRAINING | COMMAND_SAMPLE},
#undef SECTION
#define SECTION "Running"
    {"threads", "N", INT(threads, 0, 4096), FREE, "0", "all cores", SECTION,
     "never changes the result", RUNNING | COMMAND_INFO | COMMAND_PLAN},
    {"device", "cpu|plain|cuda|simt", CHOICE(device, device_names, DEVICE_KINDS), ROUNDS, "cpu",
     NULL, SECTION,
     "what it runs on: the processor; the processor by the loops of ref/ops, as the equations say, "
     "for learning and for doubt (plain: tens of times slower); an NVIDIA GPU; or the GPU's "
     "kernels run thread by thread on the processor, to test them (as slow)",
     RUNNING},
    {"precision", "fp32|tf32|bf16", CHOICE(precision, precision_names, PRECISIONS), ROUNDS, "fp32",
     NULL, SECTION,
     "fp32 is strict; tf32 rounds the factors of matrix products; bf16 keeps values and weights in "
     "16 bits, next to fp32 masters of the active submodel; the cpu has fp32 alone",
     RUNNING | COMMAND_INFO | COMMAND_PLAN},
    {"method", "bcd|offload", CHOICE(method, method_names, METHOD_KINDS), ROUNDS, "bcd", NULL,
     SECTION,
     "offload: what BCD is compared with, all parameters at each step, with optimizer state and "
     "update in host memory; not on the cpu",
     TRAIN | COMMAND_TRACE},
    {"recompute", NULL, FLAG(recompute), FREE, "0", NULL, SECTION,
     "keep only block inputs and recompute the rest: less memory, more time",
     TRAINING | COMMAND_PLAN},
    {"cache", "BYTES", BYTES(cache), FREE, "0", "none", SECTION,
     "compute the frozen prefix's outputs once; keep up to so much (2G, 512M) in host memory and "
     "the rest in a file in the run's directory",
     TRAINING},
    {"device-cache", "BYTES", BYTES(device_cache), FREE, "0", "none", SECTION,
     "... but first of all up to so much in the device's own memory", TRAINING},
    {"out", "DIR", TEXT(out), LOCAL, "", "a new one under runs/", SECTION,
     "where run.h5 and checkpoint.h5 go; must not hold a run yet", TRAIN},
    {"out", "DIR", TEXT(out), LOCAL, "", "results, or results-PRESET", SECTION,
     "where the tables go, and the trainings behind them", COMMAND_EXPERIMENT},
    {"like", "DIR", TEXT(like), LOCAL, "", "none", SECTION,
     "the settings of the run in DIR, but for the flags given here", TRAIN},
    {"resume", "DIR", TEXT(resume), LOCAL, "", NULL, SECTION,
     "go on with the run in DIR; needs no other flag; --steps or --epochs may extend it, --device "
     "and --precision move it",
     TRAIN},
    {"eval-every", "STEPS", INT(eval_every, 0, MANY), FREE, "0", "an epoch", SECTION,
     "evaluate on the validation split", TRAIN | COMMAND_EXPERIMENT},
    {"eval-samples", "SAMPLES", INT(eval_samples, 0, MANY), FREE, "0", "all", SECTION,
     "evaluate on so many samples of the split, its first ones", TRAIN | COMMAND_EXPERIMENT},
    {"save-every", "STEPS", INT(save_every, 0, MANY), FREE, "0", "about a minute", SECTION,
     "write a checkpoint", TRAIN | COMMAND_EXPERIMENT},
    {"keep-last", "N", INT(keep_last, 0, 100000), FREE, "0", NULL, SECTION,
     "also keep the last N checkpoints, as checkpoint-STEP.h5", TRAIN},
    {"quiet", NULL, FLAG(quiet), LOCAL, "0", NULL, SECTION, "print errors only",
     TRAIN | COMMAND_EXPERIMENT | COMMAND_EXPORT},
    {"log-samples", "FILE", TEXT(log_samples), LOCAL, "", "none", SECTION,
     "write which samples each update sees: a line with its number and theirs", TRAIN},
    {"config", "FILE", TEXT(config), LOCAL, "", "none", SECTION,
     "more flags, one in a line, as in \"lr 0.1\", # begins a comment; the command line goes over "
     "them",
     RUNNING | COMMAND_PLAN},
#undef SECTION
#define SECTION "Several devices"
    {"pipeline", "none|local:N|mpi|nccl", TEXT(pipeline), LOCAL, "none", NULL, SECTION,
     "cut the model over ranks: N threads of this process, or the processes that mpirun or srun "
     "started, joined by MPI, or by NCCL between their GPUs; give --accumulate parts enough to "
     "keep all of them busy",
     TRAIN},
    {"placement", "auto|plain|virtual|figure2",
     CHOICE(placement, placement_choices, PLACEMENTS + 1), LOCAL, "auto", NULL, SECTION,
     "which rank holds what: plain, a piece of the model each; virtual, a piece of every submodel "
     "each; figure2, the same with submodels that are not contiguous, as in the paper; auto, "
     "virtual where the blocks are enough",
     TRAIN | COMMAND_PLAN},
    {"pipeline-schedule", "1f1b|zero-bubble",
     CHOICE(pipeline_schedule, schedule_names, SCHEDULE_KINDS), LOCAL, "1f1b", NULL, SECTION,
     "zero-bubble: weight gradients wait and fill the gaps, for more memory", TRAIN | COMMAND_PLAN},
    {"replicas", "R", INT(replicas, 1, 4096), LOCAL, "1", NULL, SECTION,
     "replicas of the pipeline that share out each batch; ranks = R x those of a replica",
     TRAIN | COMMAND_PLAN},
    {"timeout", "SECONDS", REAL(timeout, 0.1, 1e6), LOCAL, "300", NULL, SECTION,
     "a rank that is silent for so long is taken for dead", TRAIN},
#undef SECTION
#define SECTION "Flags"
    {"split", "train|valid|test", CHOICE(split, split_names, 3), LOCAL, "valid", NULL, SECTION,
     "which part of the data", COMMAND_EVAL},
    {"prompt", "TEXT", TEXT(prompt), LOCAL, "", "nothing", SECTION, "what the text starts with",
     COMMAND_SAMPLE},
    {"tokens", "N", INT(tokens, 1, 1 << 20), LOCAL, "200", NULL, SECTION, "length of the text",
     COMMAND_SAMPLE},
    {"temperature", "T", REAL(temperature, 0, 100), LOCAL, "0.8", NULL, SECTION,
     "0: always the likeliest token; 1: as the model says; more: wilder", COMMAND_SAMPLE},
    {"top-k", "K", INT(top_k, 0, 1 << 24), LOCAL, "0", "all", SECTION,
     "choose among the K likeliest tokens", COMMAND_SAMPLE},
    {"top-p", "P", REAL(top_p, 1e-9, 1), LOCAL, "1", "all", SECTION,
     "... among the likeliest that have the probability P together", COMMAND_SAMPLE},
    {"model", "SPEC", TEXT(model), LOCAL, "", "all presets, in a table", SECTION,
     "show the blocks of one model", COMMAND_INFO},
    {"tokenizer", "bytes|gpt2|DIR", TEXT(tokenizer), LOCAL, "gpt2", NULL, SECTION,
     "how to cut text; DIR: as the model there does, by its tokenizer.json or tokenizer.model "
     "(needs Python and the package tokenizers or sentencepiece)",
     COMMAND_TOKENIZE},
    {"out", "FILE", TEXT(out), LOCAL, "", "the input's name, ending in .tokens", SECTION,
     "token file to write", COMMAND_TOKENIZE},
    {"checkpoint", "FILE", TEXT(checkpoint), LOCAL, "", NULL, SECTION, "checkpoint.h5 of a run",
     COMMAND_GRADIENTS},
    {"batch", "FILE", TEXT(batch_file), LOCAL, "", NULL, SECTION, "HDF5 file with the samples",
     COMMAND_GRADIENTS},
    {"mode", "train|eval", CHOICE(mode, mode_names, 2), LOCAL, "train", NULL, SECTION,
     "statistics of batch norm; train: the batch's, and the running ones as they are after it; "
     "eval: the running ones, and no gradients",
     COMMAND_GRADIENTS},
    {"out", "DIR", TEXT(out), LOCAL, "", NULL, SECTION,
     "where config.json and model.safetensors go", COMMAND_EXPORT},
    {"out", "FILE", TEXT(out), LOCAL, "", NULL, SECTION, "file to write",
     COMMAND_GRADIENTS | COMMAND_REPORT | COMMAND_TRACE},
    {"multiplier", "X|FILE,...", TEXT(multiplier), LOCAL, "", "the published ones alone", SECTION,
     "a B-F multiplier of our own, or the validity.h5 or run.h5 files that measured it",
     COMMAND_EXPERIMENT | COMMAND_PLAN},
    {"price", "GPU=DOLLARS,...", TEXT(price), LOCAL, "", "those of section 4.4.1", SECTION,
     "price of a GPU per hour, as in rtx4090=0.31,a100=1.12; plan: or one number",
     COMMAND_EXPERIMENT | COMMAND_PLAN},
    {"tokens", "N", REAL(train_tokens, 1, 1e18), LOCAL, "1e9", NULL, SECTION,
     "length of the training whose price is reported", COMMAND_EXPERIMENT | COMMAND_PLAN},
    {"table", "NAME", TEXT(table), LOCAL, "", "all", SECTION,
     "print this table alone, and write no page", COMMAND_REPORT},
    {"study", "FILE", TEXT(study), LOCAL, "", "none", SECTION,
     "write the trainings of all files as one study, what is computed from curves anew; no page",
     COMMAND_REPORT},
    {"markdown", NULL, FLAG(markdown), LOCAL, "0", NULL, SECTION,
     "print Markdown, and write no page", COMMAND_REPORT},
    {"figure", "FILE", TEXT(figure), LOCAL, "", NULL, SECTION,
     "also draw the cycle, as an SVG file of its own", COMMAND_TRACE},
    {"figures", "DIR", TEXT(figures), LOCAL, "", NULL, SECTION,
     "also write each figure of the page into DIR, as SVG and PDF", COMMAND_REPORT},
    {"active", "K", INT(active, 0, 10000), LOCAL, "0", "each in turn", SECTION,
     "show only submodel K, from 1", COMMAND_TRACE},
    {"preset", "smoke|laptop|gpu|paper", CHOICE(preset, preset_names, PRESET_KINDS), LOCAL,
     "laptop", NULL, SECTION, "how large", COMMAND_EXPERIMENT},
    {"models", "LIST", TEXT(models), LOCAL, "", "the preset's", SECTION,
     "models separated by spaces", COMMAND_EXPERIMENT | COMMAND_PLAN},
    {"optimizers", "LIST", TEXT(optimizers), LOCAL, "", "the preset's", SECTION,
     "sgd, adam, adamw, lion, separated by commas", COMMAND_EXPERIMENT},
    {"seeds", "N", INT(seeds, 1, 100), LOCAL, "3", "3; smoke and paper 1", SECTION,
     "trainings: repeat each with N seeds, --seed and those after it", COMMAND_EXPERIMENT},
    {"jobs", "N", INT(jobs, 1, 256), LOCAL, "1", NULL, SECTION,
     "trainings at the same time, each with its share of the cores: faster where one cannot use "
     "them all, but their seconds are then those of a busy machine",
     COMMAND_EXPERIMENT},
    {"minutes", "N", REAL(minutes, 0.001, 1e5), LOCAL, "100000", "no end", SECTION,
     "stop after so long with exit status 75; the same command goes on", COMMAND_EXPERIMENT},
    {"yes", NULL, FLAG(yes), LOCAL, "0", NULL, SECTION,
     "start a preset that takes hours without asking", COMMAND_EXPERIMENT},
#undef SECTION
#define SECTION "Plan"
    {"model", "SPEC", TEXT(model), LOCAL, "", "none", SECTION,
     "which training: G-10B, L-70B, ... (see bcd info), or free, as in gpt:layers=48,width=2048,"
     "heads=16,context=1024",
     COMMAND_PLAN},
    {"init", "DIR", TEXT(init), LOCAL, "", "none", SECTION,
     "of the GPT-2, LLaMA or Mistral in DIR, in place of --model", COMMAND_PLAN},
    {"gpu", "KEY|any", TEXT(gpu), LOCAL, "rtx4090", NULL, SECTION,
     "rtx4090, a100, a800, h100, h200; any, for --search: each of them", COMMAND_PLAN},
    {"per-node", "N", INT(per_node, 1, 64), LOCAL, "8", NULL, SECTION, "GPUs of a node",
     COMMAND_PLAN},
    {"nodes", "N", INT(nodes, 1, 512), LOCAL, "1", NULL, SECTION,
     "nodes, joined by the network; --search: at most", COMMAND_PLAN},
    {"network", "GBIT", REAL(network, 0.001, 1e6), LOCAL, "50", NULL, SECTION,
     "of a node, one direction, gigabits per second", COMMAND_PLAN},
    {"batch", "SAMPLES", INT(batch, 1, 1 << 20), LOCAL, "256", NULL, SECTION,
     "samples per update, over all GPUs", COMMAND_PLAN},
    {"micro-batches", "N", INT(micro_batches, 1, 1 << 20), LOCAL, "1", "chosen", SECTION,
     "parts a pipeline's share of the batch is computed in", COMMAND_PLAN},
    {"pipeline", "P", INT(plan_pipeline, 1, 4096), LOCAL, "1", "chosen", SECTION,
     "ranks the model is cut over", COMMAND_PLAN},
    {"submodels", "M", INT(submodels, 2, 10000), LOCAL, "3", NULL, SECTION,
     "parts of BCD; --search looks at 2 to 5", COMMAND_PLAN},
    {"optimizer", "sgd|adam|adamw|lion", CHOICE(optimizer, optimizer_names, OPTIMIZER_KINDS), LOCAL,
     "adam", NULL, SECTION, "whose state takes memory", COMMAND_PLAN},
    {"cache", NULL, FLAG(plan_cache), LOCAL, "0", NULL, SECTION,
     "BCD's frozen prefix is not computed: all of its outputs are kept (see bcd train --cache)",
     COMMAND_PLAN},
    {"trace", "FILE", TEXT(trace), LOCAL, "", "the GPU's data sheet", SECTION,
     "of bcd trace --out on such a GPU: products then take as long as measured there",
     COMMAND_PLAN},
    {"search", NULL, FLAG(search), LOCAL, "0", NULL, SECTION,
     "look over kinds and numbers of GPUs too, up to --per-node x --nodes", COMMAND_PLAN},
    {"gpus", "N", INT(most_gpus, 1, 32768), LOCAL, "32768", "any", SECTION,
     "--search: at most so many GPUs", COMMAND_PLAN},
    {"budget", "DOLLARS", REAL(budget, 0, 1e9), LOCAL, "0", "any", SECTION,
     "--search: all GPUs together cost at most so much per hour", COMMAND_PLAN},
    {"scale", NULL, FLAG(scale), LOCAL, "0", NULL, SECTION,
     "models of 7, 70 and 405 billion parameters (or --models) on 8 to 4096 GPUs", COMMAND_PLAN},
    {"out", "FILE", TEXT(out), LOCAL, "", "none", SECTION,
     "also write the tables as HDF5, for bcd report", COMMAND_PLAN},
#undef SECTION
    {.name = NULL},
};
_Static_assert(sizeof option_table / sizeof *option_table <= OPTIONS_MAX, "raise OPTIONS_MAX");
