#include "paper.h"

#include <string.h>

#include "../train/setup.h"

int measured_options(Options *o, const Options *asked, const MeasuredNetwork *network,
                     int submodels) {
    options_defaults(o);
    o->device = asked->device;
    o->precision = asked->precision;
    return options_set_all(o, "model=%s data=%s optimizer=%s", network->model, network->data,
                           network->optimizer) ||
                   setup_pin(o) ||
                   options_set_all(o, "batch=%s submodels=%d limit=256", network->batch, submodels)
               ? -1
               : 0;
}

static int find_network(MeasuredNetwork *network, const MeasuredNetwork *like, const char *name) {
    Model *model = setup_model(name, 0, 0);
    if (!model) return -1;
    const char *data = model->tokens ? "text" : "synthetic";
    while (like[1].model && strcmp(like->data, data)) like++;
    *network = (MeasuredNetwork){name, data, model->tokens ? "adam" : "sgd", like->batch};
    model_free(model);
    return 0;
}

int measured_for_each(Tables *tables, const CommandLine *asked, const MeasuredNetwork *preset,
                      AddNetwork *add) {
    Text models = text_of("%s", asked->experiment.models);
    int number = 0;
    for (char *name = strtok(models.text, " "); name; name = strtok(NULL, " ")) {
        MeasuredNetwork network;
        if (find_network(&network, preset, name) || add(tables, asked, &network, ++number))
            return -1;
    }
    for (; !*asked->experiment.models && preset->model; preset++)
        if (add(tables, asked, preset, ++number)) return -1;
    return 0;
}
