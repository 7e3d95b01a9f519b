/* How far the trainings of an experiment are. */
#include <math.h>
#include <unistd.h>

#include "../store/rundir.h"
#include "trainings.h"

int trainings_read_run(RunFile *run, const TrainingRow *row) {
    const Text path = rundir_path(row->options.out, "run.h5");
    *run = (RunFile){0};
    if (access(path.text, F_OK)) return 0;
    return runfile_read(run, path.text) ? -1 : 1;
}

double trainings_done(const TrainingRow *row) {
    const Options *o = &row->options;
    RunFile run;
    double done = 0;
    if (trainings_read_run(&run, row) > 0 && run.curve_rows) {
        double steps = o->epochs > 0 ? o->epochs * run.steps_per_epoch : (double)o->steps;
        done = fmin(1, (double)run.curve[run.curve_rows - 1].step / steps);
    }
    runfile_free(&run);
    return done;
}

double trainings_work_left(const TrainingPlan *plan) {
    double work = 0;
    for (const TrainingRow *row = plan->row; row < plan->row + plan->rows; row++)
        if (!row->finished && !row->ended) work += row->work * (1 - trainings_done(row));
    return work;
}
