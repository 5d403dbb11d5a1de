/* Counters and the state of the sender. ngtcp2 tells the state; what it counts it writes into its qlog only. */
#ifndef STATS_H
#define STATS_H

#include <stdarg.h>

#include "gargalo_stack.h"
#include "streams.h"

struct stats {
    ngtcp2_conn_stat state;
    size_t datagram_size;
    uint64_t sent_packets, sent_bytes, retransmitted_packets, lost_packets, timeouts; /* as in gargalo_stack_stats */
    uint64_t noticed; /* lost packets that the host knows of */
    const char *phase; /* of `bbr` and `bbr2` */
};

/* Adds an event of qlog. */
void stats_count(struct stats *stats, const struct streams *streams, const char *event, size_t length);
/* Reads the phase of `bbr` or `bbr2` from a line of the log: ngtcp2 tells it nowhere else. */
void stats_log(struct stats *stats, const char *format, va_list values);
/* Reads the state and tells the host of changes. A round-trip sample that changes nothing in the state is not seen. */
void stats_update(struct stats *stats, ngtcp2_conn *quic, const struct gargalo_stack_host *host, int notices);
void stats_tell(const struct stats *stats, int pacing, ngtcp2_cc_algo algorithm, struct gargalo_stack_stats *out);

#endif
