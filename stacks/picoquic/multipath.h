/* The paths of a connection with several (draft-ietf-quic-multipath): what picoquic does not keep of each. */
#ifndef MULTIPATH_H
#define MULTIPATH_H

#include <picoquic.h>

#include "gargalo_stack.h"

#define MOST_PATHS 16

struct path {
    uint64_t id, opened, closed; /* ns; `opened` is GARGALO_NONE before it carries data */
    struct gargalo_address local, remote;
    uint64_t sent_packets, sent_bytes, retransmitted_packets, lost_packets, timeouts, received_bytes;
    uint64_t rtt, retransmit; /* as last seen */
};
/* Parts of a stream that have arrived, disjoint and in order. */
struct range {
    struct range *next;
    uint64_t from, to;
};
struct arrived {
    struct arrived *next;
    uint64_t stream;
    struct range *ranges;
};
struct paths {
    struct path all[MOST_PATHS];
    size_t count;
    struct gargalo_path wanted[MOST_PATHS];
    size_t wanted_count;
    struct arrived *arrived;
};

/* What is known of a path of picoquic's; NULL: there are too many. */
struct path *path_of(struct paths *paths, const picoquic_path_t *path);
void paths_want(struct paths *paths, const struct gargalo_path *path);
/* After each call: opens what is wanted, notes which paths there are, and tells samples. `now` in ns and in picoquic's clock. */
void paths_update(struct paths *paths, picoquic_cnx_t *cnx, const struct gargalo_stack_host *host, size_t datagram_size,
                  uint64_t now, uint64_t clock);
/* A piece of a stream has arrived on a path. */
void paths_arrived(struct paths *paths, struct path *path, uint64_t stream, uint64_t offset, uint64_t length, uint64_t now);
void paths_stop(struct paths *paths);

#endif
