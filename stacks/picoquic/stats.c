#include "stats.h"

#include <picoquic_internal.h>
#include <picoquic_unified_log.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "turn.h"

struct stream *stream_find(const struct stats *stats, uint64_t id) {
    struct stream *s = stats->streams;
    while (s && s->id != id) s = s->next;
    return s;
}
struct stream *stream_add(struct stats *stats, uint64_t id) {
    struct stream *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->id = id;
    s->next = stats->streams;
    return stats->streams = s;
}
void stream_remove(struct stats *stats, uint64_t id) {
    for (struct stream **at = &stats->streams, *s; (s = *at); at = &s->next) {
        if (s->id != id) continue;
        *at = s->next;
        free(s);
        return;
    }
}
void stats_stop(struct stats *stats) {
    for (struct stream *s; (s = stats->streams); free(s)) stats->streams = s->next;
}
/* picoquic counts the end of a stream as one more byte, and forgets a stream that is done. */
static uint64_t unacknowledged(struct stream *s, picoquic_cnx_t *cnx) {
    picoquic_stream_head_t *head = picoquic_find_stream(cnx, s->id);
    uint64_t all = s->written + (s->ended != 0), acked = 0;
    if (!head) return 0;
    for (picoquic_sack_item_t *range = picoquic_sack_first_item(&head->sack_list); range; range = picoquic_sack_next_item(range)) {
        uint64_t start = picoquic_sack_item_range_start(range), end = picoquic_sack_item_range_end(range);
        if (end >= start) acked += end - start + 1;
    }
    return acked < all ? all - acked : 0;
}
uint64_t stats_unacknowledged(struct stats *stats, picoquic_cnx_t *cnx) {
    uint64_t sum = 0;
    for (struct stream **at = &stats->streams, *s; cnx && (s = *at);) {
        sum += unacknowledged(s, cnx);
        if (s->ended && !picoquic_find_stream(cnx, s->id)) *at = s->next, free(s);
        else at = &s->next;
    }
    return sum;
}

static size_t payload_of(picoquic_cnx_t *cnx, const picoquic_path_t *path, const uint8_t *sent, size_t length, size_t pn_length) {
    picoquic_packet_header head = {0};
    picoquic_cnx_t *of = cnx;
    if (!(*sent & 0x80)) return 1 + path->first_tuple->p_remote_cnxid->cnx_id.id_len + pn_length;
    picoquic_parse_packet_header(cnx->quic, sent, length, (struct sockaddr *)&path->first_tuple->local_addr, &head, &of, 0);
    return head.pn_offset ? head.pn_offset + pn_length : length;
}
static void on_sent(picoquic_cnx_t *cnx, void *context, picoquic_path_t *path, uint8_t *bytes, uint64_t number, size_t pn_length,
                    size_t length, uint8_t *sent, size_t sent_length, uint64_t now) {
    struct stats *stats = context;
    struct path *known = stats->paths ? path_of(stats->paths, path ? path : cnx->path[0]) : NULL;
    int eliciting = 0, again = 0, ack_alone, end;
    uint64_t id, offset;
    for (size_t at = payload_of(cnx, path ? path : cnx->path[0], sent, sent_length, pn_length), used, size; at < length; at += used) {
        const uint8_t *frame = bytes + at;
        if (picoquic_skip_frame(frame, length - at, &used, &ack_alone) || !used) break;
        eliciting |= !ack_alone && *frame != picoquic_frame_type_padding && *frame != picoquic_frame_type_connection_close &&
                     *frame != picoquic_frame_type_application_close;
        if ((*frame & 0xf8) != picoquic_frame_type_stream_range_min) continue;
        if (picoquic_parse_stream_header(frame, length - at, &id, &offset, &size, &end, &(size_t){0})) continue;
        struct stream *s = stream_find(stats, id);
        stats->sent_bytes += size;
        if (known) known->sent_bytes += size;
        if (!s) continue;
        again |= size && offset < s->highest;
        if (s->highest < offset + size) s->highest = offset + size;
    }
    stats->sent_packets += (uint64_t)eliciting;
    stats->retransmitted_packets += (uint64_t)again;
    if (!known) return;
    known->sent_packets += (uint64_t)eliciting;
    known->retransmitted_packets += (uint64_t)again;
}
static void on_lost(picoquic_cnx_t *cnx, void *context, picoquic_path_t *path, picoquic_packet_type_enum type, uint64_t number,
                    const char *why, picoquic_connection_id_t *to, size_t size, uint64_t now) {
    struct stats *stats = context;
    struct path *known = stats->paths ? path_of(stats->paths, path ? path : cnx->path[0]) : NULL;
    stats->lost_packets++;
    if (known) known->lost_packets++;
}
/* Decrypted, in both directions. */
static void on_packet(picoquic_cnx_t *cnx, void *context, picoquic_path_t *path, int in, uint64_t now,
                      struct st_picoquic_packet_header_t *head, const uint8_t *bytes, size_t length) {
    struct stats *stats = context;
    struct path *known = in && path && stats->paths ? path_of(stats->paths, path) : NULL;
    size_t end = head->offset + head->payload_length;
    if (!known || end > length) return;
    for (size_t at = head->offset, used, size; at < end; at += used) {
        uint64_t id, offset;
        int alone, fin;
        if (picoquic_skip_frame(bytes + at, end - at, &used, &alone) || !used) break;
        if ((bytes[at] & 0xf8) != picoquic_frame_type_stream_range_min) continue;
        if (picoquic_parse_stream_header(bytes + at, end - at, &id, &offset, &size, &fin, &(size_t){0})) continue;
        paths_arrived(stats->paths, known, id, offset, size, turn_host_time(now));
    }
}
static void on_new(picoquic_cnx_t *cnx, void *parameter, void **context) { *context = parameter; }

/* All of them are called, whether there is something to do or not. */
static void no_close(picoquic_quic_t *quic, void *parameter) {}
static void no_message(picoquic_cnx_t *cnx, void *context, const char *format, va_list values) {}
static void no_pdu(picoquic_cnx_t *cnx, void *context, int in, uint64_t now, const struct sockaddr *peer,
                   const struct sockaddr *local, size_t length, uint64_t path, unsigned char ecn) {}
static void no_drop(picoquic_cnx_t *cnx, void *context, picoquic_path_t *path, struct st_picoquic_packet_header_t *head,
                    size_t size, int error, uint64_t now) {}
static void no_buffered(picoquic_cnx_t *cnx, void *context, picoquic_path_t *path, picoquic_packet_type_enum type, uint64_t now) {}
static void no_alpn(picoquic_cnx_t *cnx, void *context, int local, const uint8_t *sni, size_t sni_length, const uint8_t *alpn,
                    size_t alpn_length, const ptls_iovec_t *list, size_t count) {}
static void no_extension(picoquic_cnx_t *cnx, void *context, int local, size_t length, uint8_t *parameters) {}
static void no_ticket(picoquic_cnx_t *cnx, void *context, uint8_t *ticket, uint16_t length) {}
static void no_end(picoquic_cnx_t *cnx, void *context) {}
static void no_dump(picoquic_cnx_t *cnx, void *context, picoquic_path_t *path, uint64_t now) {}

static picoquic_unified_logging_t log_of_packets = {
    .log_quic_close = no_close, .log_app_message = no_message, .log_pdu = no_pdu, .log_packet = on_packet,
    .log_dropped_packet = no_drop, .log_buffered_packet = no_buffered, .log_outgoing_packet = on_sent,
    .log_packet_lost = on_lost, .log_negotiated_alpn = no_alpn, .log_transport_extension = no_extension,
    .log_picotls_ticket = no_ticket, .log_new_connection = on_new, .log_close_connection = no_end, .log_cc_dump = no_dump,
    .log_flush = no_end};

void stats_start(struct stats *stats, picoquic_quic_t *quic) {
    picoquic_set_log_level(quic, 1); /* all packets, not the first hundred */
    picoquic_register_log_functions(quic, &log_of_packets, stats);
}

static void notice(const struct stats *stats, const char *kind, const char *format, uint64_t value) {
    char detail[64];
    snprintf(detail, sizeof detail, format, (unsigned long long)value);
    if (stats->notices) stats->host->notice(stats->host->context, kind, detail);
}
void stats_update(struct stats *stats, picoquic_cnx_t *cnx) {
    const picoquic_path_t *path = cnx->path[0];
    if (path->rtt_is_initialized && (path->rtt_sample != stats->rtt || !stats->sampled)) {
        stats->host->rtt_sample(stats->host->context, path->rtt_sample * 1000);
        stats->rtt = path->rtt_sample;
        stats->sampled = 1;
    }
    if (path->nb_retransmit > stats->retransmit) {
        stats->timeouts += path->nb_retransmit - stats->retransmit;
        notice(stats, "timeout", "consecutive=%llu", path->nb_retransmit);
    }
    stats->retransmit = path->nb_retransmit;
    if (stats->lost_packets > stats->noticed) notice(stats, "loss", "packets=%llu", stats->lost_packets - stats->noticed);
    stats->noticed = stats->lost_packets;
    if (stats->mtu && path->send_mtu != stats->mtu) notice(stats, "mtu", "datagram_bytes=%llu", path->send_mtu);
    stats->mtu = path->send_mtu;
}

/* In the order of each algorithm's own states, which its observer tells. BBR has a STARTUP of its own for long round trips. */
static const char *phase_of(const char *algorithm, uint64_t state) {
    static const char *const bbr[] = {"startup", "drain", "probe-bw-down", "probe-bw-cruise", "probe-bw-refill",
                                      "probe-bw-up", "probe-rtt", "startup", "startup"};
    static const char *const bbr1[] = {"startup", "drain", "probe-bw", "probe-rtt", "startup"};
    static const char *const c4[] = {"initial", "recovery", "cruising", "probing", "pushing", "resuming"};
    static const char *const fast[] = {"initial", "evaluation", "freeze"};
    static const char *const reno[] = {"slow-start", "congestion-avoidance"};
    static const char *const cubic[] = {"slow-start", "recovery", "congestion-avoidance"};
    static const struct {
        const char *name, *const *words;
        size_t count;
    } all[] = {{"bbr", bbr, 9}, {"bbr1", bbr1, 5}, {"c4", c4, 6}, {"fast", fast, 3}, {"newreno", reno, 2}, {"prague", reno, 2},
               {"cubic", cubic, 3}, {"dcubic", cubic, 3}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i].name, algorithm)) return state < all[i].count ? all[i].words[state] : NULL;
    return NULL;
}
static uint64_t state_of(picoquic_cnx_t *cnx, picoquic_path_t *path, uint64_t *parameter) {
    uint64_t state = 0;
    if (path->congestion_alg_state) cnx->congestion_alg->alg_observe(path, &state, parameter);
    return state & 0xff;
}
void stats_tell_path(const struct path *known, picoquic_cnx_t *cnx, struct gargalo_stack_stats *out) {
    int at = picoquic_get_path_id_from_unique(cnx, known->id);
    picoquic_path_t *path = at < 0 ? NULL : cnx->path[at];
    uint64_t parameter;
    *out = (struct gargalo_stack_stats){
        .size = out->size,
        .sent_packets = known->sent_packets,
        .sent_bytes = known->sent_bytes,
        .retransmitted_packets = known->retransmitted_packets,
        .lost_packets = known->lost_packets,
        .timeouts = known->timeouts,
        .spurious = GARGALO_NONE,
        .cwnd = path ? path->cwin : GARGALO_NONE,
        .ssthresh = GARGALO_NONE,
        .in_flight = path ? path->bytes_in_transit : 0,
        .srtt = path && path->rtt_is_initialized ? path->smoothed_rtt * 1000 : GARGALO_NONE,
        .pacing_rate = path && path->pacing.rate ? 8 * path->pacing.rate : GARGALO_NONE,
        .delivery_rate = path && path->bandwidth_estimate ? 8 * path->bandwidth_estimate : GARGALO_NONE,
        .phase = path && cnx->congestion_alg ? phase_of(cnx->congestion_alg->congestion_algorithm_id, state_of(cnx, path, &parameter)) : NULL,
    };
}
void stats_tell(const struct stats *stats, picoquic_cnx_t *cnx, struct gargalo_stack_stats *out) {
    uint64_t size = out->size, state = 0, parameter = 0;
    const picoquic_path_t *path = cnx ? cnx->path[0] : NULL;
    const char *name = cnx && cnx->congestion_alg ? cnx->congestion_alg->congestion_algorithm_id : "";
    if (*name && path->congestion_alg_state) cnx->congestion_alg->alg_observe(cnx->path[0], &state, &parameter);
    int threshold = (!strcmp(name, "newreno") || !strcmp(name, "prague")) && parameter;
    struct gargalo_stack_stats all = {
        .size = size,
        .sent_packets = stats->sent_packets,
        .sent_bytes = stats->sent_bytes,
        .retransmitted_packets = stats->retransmitted_packets,
        .lost_packets = stats->lost_packets,
        .timeouts = stats->timeouts,
        .spurious = cnx ? cnx->nb_spurious : 0,
        .cwnd = path ? path->cwin : GARGALO_NONE,
        .ssthresh = threshold ? parameter : GARGALO_NONE,
        .in_flight = path ? path->bytes_in_transit : 0,
        .srtt = path && path->rtt_is_initialized ? path->smoothed_rtt * 1000 : GARGALO_NONE,
        .pacing_rate = path && path->pacing.rate ? 8 * path->pacing.rate : GARGALO_NONE,
        .delivery_rate = path && path->bandwidth_estimate ? 8 * path->bandwidth_estimate : GARGALO_NONE,
        .phase = *name ? phase_of(name, state & 0xff) : NULL,
    };
    memcpy(out, &all, size < sizeof all ? size : sizeof all);
}
