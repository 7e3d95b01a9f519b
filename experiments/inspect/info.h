/* Tables of bcd info that say what the program knows, whatever the model. */
#pragma once

#include "../tables/table.h"

/* What depends on the optimizer alone. */
void info_optimizers(Tables *tables);
/* What bcd plan knows of GPUs. */
void info_gpus(Tables *tables);

/* For other programs; these are not printed. */

/* The flags of bcd train: kind and role as in options.h, and the optimizers that take one that is
 * their own setting. */
void info_flags(Tables *tables);
/* What a data set holds, and the file without which it is missing. */
void info_data(Tables *tables);
