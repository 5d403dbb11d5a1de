/* What a scenario asks for as settings of ngtcp2. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <ngtcp2/ngtcp2.h>

#include "gargalo_stack.h"

extern const char *const settings_congestion[];
extern const char *const settings_specifications[]; /* of each, what it follows */

/* Fills both; returns what ngtcp2 cannot do, or NULL. */
const char *settings_from(const struct gargalo_stack_config *config, ngtcp2_settings *settings, ngtcp2_transport_params *params);

#endif
