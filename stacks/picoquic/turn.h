/* Whose turn it is. picoquic, OpenSSL and the generator of picoquic's connection IDs and lengths have state of the whole
 * process and ask for random bytes without a context: one object at a time runs, and these are its own. */
#ifndef TURN_H
#define TURN_H

#include "gargalo_stack.h"

struct turn {
    const struct gargalo_stack_host *host;
    uint64_t now;  /* picoquic's clock: microseconds since 1970 */
    uint64_t seed; /* of the generator, in the next call */
};

void turn_enter(struct turn *turn, uint64_t now);
/* Only to look: nothing that is random follows from it, so that a run is the same however often it is looked at. */
void turn_look(void);
void turn_leave(void);

/* The host's nanoseconds since the start of a run, of picoquic's clock. A run starts on 2025-01-01. */
uint64_t turn_host_time(uint64_t clock);

#endif
