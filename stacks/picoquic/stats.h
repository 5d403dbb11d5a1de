/* Counters and state of the sender. picoquic tells of packets in the calls of its logs. */
#ifndef STATS_H
#define STATS_H

#include <picoquic.h>

#include "gargalo_stack.h"
#include "multipath.h"

/* A stream that this end writes to. */
struct stream {
    struct stream *next;
    uint64_t id, written, highest; /* bytes; `highest` in any packet, to tell retransmissions */
    int ended;
};
struct stats {
    struct stream *streams;
    uint64_t sent_packets, sent_bytes, retransmitted_packets, lost_packets, timeouts;
    uint64_t retransmit, rtt, noticed; /* as last seen: timeouts in a row, the last sample, losses */
    size_t mtu;
    int sampled;
    const struct gargalo_stack_host *host;
    struct paths *paths; /* NULL: there is one */
    int notices;
};

/* Has picoquic tell of packets. */
void stats_start(struct stats *stats, picoquic_quic_t *quic);
void stats_stop(struct stats *stats);

struct stream *stream_find(const struct stats *stats, uint64_t id);
/* NULL: out of memory. */
struct stream *stream_add(struct stats *stats, uint64_t id);
void stream_remove(struct stats *stats, uint64_t id);
/* Bytes and ends that are not acknowledged; streams that are done are forgotten. */
uint64_t stats_unacknowledged(struct stats *stats, picoquic_cnx_t *cnx);

/* After each call. */
void stats_update(struct stats *stats, picoquic_cnx_t *cnx);
/* Of one of several paths. */
void stats_tell_path(const struct path *known, picoquic_cnx_t *cnx, struct gargalo_stack_stats *out);
void stats_tell(const struct stats *stats, picoquic_cnx_t *cnx, struct gargalo_stack_stats *out);

#endif
