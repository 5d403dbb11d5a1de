/* The paths of a connection with several (draft-ietf-quic-multipath): what picoquic does not keep of each. */
#ifndef MULTIPATH_H
#define MULTIPATH_H

#include <picoquic.h>

#include "gargalo_stack.h"

#define MOST_PATHS 16

struct path {
    uint64_t id, opened, closed; /* ns */
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

/* The path with picoquic's number of it, or NULL. */
struct path *path_find(struct paths *paths, uint64_t id);
void paths_want(struct paths *paths, const struct gargalo_path *path);
/* After each call: opens what is wanted, notes which paths there are, and tells samples. `now` in ns and in picoquic's clock. */
void paths_update(struct paths *paths, picoquic_cnx_t *cnx, const struct gargalo_stack_host *host, size_t datagram_size,
                  uint64_t now, uint64_t clock);
/* A piece of a stream has arrived on a path. */
void paths_arrived(struct paths *paths, struct path *path, uint64_t stream, uint64_t offset, uint64_t length);
void paths_stop(struct paths *paths);

#endif
