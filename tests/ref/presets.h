/* The settings of the presets; a part of test_model.c. */
#pragma once

void presets_are_as_published(void);
