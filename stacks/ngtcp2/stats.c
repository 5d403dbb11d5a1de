#include "stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void stats_count(struct stats *stats, const struct streams *streams, const char *event, size_t length) {
    unsigned long long offset, size;
    long long id;
    char line[8192];
    int eliciting = 0, again = 0;
    size_t kept = length < sizeof line ? length : sizeof line - 1;
    memcpy(line, event, kept);
    line[kept] = '\0';
    const char *name = strstr(line, "\"name\":\"");
    if (!name) return;
    name += strlen("\"name\":\"");
    stats->lost_packets += !strncmp(name, "recovery:packet_lost\"", 21);
    if (strncmp(name, "transport:packet_sent\"", 22)) return;
    for (const char *frame = line; (frame = strstr(frame, "\"frame_type\":\""));) {
        frame += strlen("\"frame_type\":\"");
        eliciting |= strncmp(frame, "ack\"", 4) && strncmp(frame, "padding\"", 8) && strncmp(frame, "connection_close\"", 17);
        if (sscanf(frame, "stream\",\"stream_id\":%lld,\"offset\":%llu,\"length\":%llu", &id, &offset, &size) != 3) continue;
        struct stream *s = stream_find(streams, id);
        stats->sent_bytes += size;
        if (!s) continue;
        again |= size && offset < s->highest;
        if (s->highest < offset + size) s->highest = offset + size;
    }
    stats->sent_packets += (uint64_t)eliciting;
    stats->retransmitted_packets += (uint64_t)again;
}
void stats_log(struct stats *stats, const char *format, va_list values) {
    static const char *const words[][2] = {
        {"Startup", "startup"}, {"Drain", "drain"}, {"ProbeBW", "probe-bw"}, {"ProbeRTT", "probe-rtt"},
        {"ProbeBW_DOWN", "probe-bw-down"}, {"ProbeBW_CRUISE", "probe-bw-cruise"}, {"ProbeBW_REFILL", "probe-bw-refill"},
        {"ProbeBW_UP", "probe-bw-up"}};
    if (strcmp(format, "I%08" PRIu64 " 0x%s %s %s")) return; /* a line about a packet */
    (void)va_arg(values, uint64_t);
    (void)va_arg(values, const char *);
    (void)va_arg(values, const char *);
    const char *text = va_arg(values, const char *), *last = strrchr(text, ' '); /* "bbr2 start ProbeBW_UP" */
    for (size_t i = 0; last && !strncmp(text, "bbr", 3) && i < sizeof words / sizeof *words; i++)
        if (!strcmp(last + 1, words[i][0])) stats->phase = words[i][1];
}
static void notice(const struct gargalo_stack_host *host, const char *kind, const char *format, uint64_t value) {
    char detail[64];
    snprintf(detail, sizeof detail, format, (unsigned long long)value);
    host->notice(host->context, kind, detail);
}
void stats_update(struct stats *stats, ngtcp2_conn *quic, const struct gargalo_stack_host *host, int notices) {
    ngtcp2_conn_stat was = stats->state, *is = &stats->state;
    size_t size = ngtcp2_conn_get_path_max_tx_udp_payload_size(quic);
    ngtcp2_conn_get_conn_stat(quic, is);
    if (is->min_rtt == UINT64_MAX) stats->phase = "startup"; /* at the beginning and on a new path, without a line of the log */
    if (is->min_rtt != UINT64_MAX &&
        (is->latest_rtt != was.latest_rtt || is->rttvar != was.rttvar || is->smoothed_rtt != was.smoothed_rtt))
        host->rtt_sample(host->context, is->latest_rtt);
    stats->timeouts += is->pto_count > was.pto_count;
    if (notices && is->pto_count > was.pto_count) notice(host, "timeout", "consecutive=%llu", is->pto_count);
    if (notices && stats->lost_packets > stats->noticed)
        notice(host, "loss", "packets=%llu", stats->lost_packets - stats->noticed);
    if (notices && is->congestion_recovery_start_ts != UINT64_MAX &&
        is->congestion_recovery_start_ts != was.congestion_recovery_start_ts)
        notice(host, "recovery", "cwnd_bytes=%llu", is->cwnd);
    if (notices && stats->datagram_size && size != stats->datagram_size) notice(host, "mtu", "datagram_bytes=%llu", size);
    stats->noticed = stats->lost_packets;
    stats->datagram_size = size;
}
void stats_tell(const struct stats *stats, int pacing, ngtcp2_cc_algo algorithm, struct gargalo_stack_stats *out) {
    const ngtcp2_conn_stat *s = &stats->state;
    uint64_t size = out->size;
    int known = s->cwnd > 0, sampled = known && s->min_rtt != UINT64_MAX; /* a server waits without any state */
    /* As in ngtcp2_conn_update_pkt_tx_time, in bytes per nanosecond. */
    double rate = s->pacing_rate > 0 ? s->pacing_rate : 1.25 * (double)s->cwnd / (double)(s->smoothed_rtt + !s->smoothed_rtt);
    struct gargalo_stack_stats all = {
        .size = size,
        .sent_packets = stats->sent_packets,
        .sent_bytes = stats->sent_bytes,
        .retransmitted_packets = stats->retransmitted_packets,
        .lost_packets = stats->lost_packets,
        .timeouts = stats->timeouts,
        .spurious = GARGALO_NONE,
        .cwnd = known ? s->cwnd : GARGALO_NONE,
        .ssthresh = known ? s->ssthresh : GARGALO_NONE,
        .in_flight = s->bytes_in_flight,
        .srtt = sampled ? s->smoothed_rtt : GARGALO_NONE,
        .pacing_rate = pacing && known ? (uint64_t)(8e9 * rate) : GARGALO_NONE,
        .delivery_rate = s->delivery_rate_sec ? 8 * s->delivery_rate_sec : GARGALO_NONE,
    };
    if (known && (algorithm == NGTCP2_CC_ALGO_BBR || algorithm == NGTCP2_CC_ALGO_BBR2)) all.phase = stats->phase;
    else if (known) all.phase = s->cwnd < s->ssthresh ? "slow-start" : "congestion-avoidance";
    memcpy(out, &all, size < sizeof all ? size : sizeof all);
}
