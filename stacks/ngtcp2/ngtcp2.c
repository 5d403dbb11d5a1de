/* ngtcp2 as a stack of Gargalo (gargalo_stack.h); its TLS is in tls.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "settings.h"
#include "stats.h"
#include "streams.h"
#include "tls.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define CANCELLED 0x10c /* H3_REQUEST_CANCELLED */

struct conn {
    struct tls tls;
    const struct gargalo_stack_host *host;
    struct gargalo_stack_config config; /* its pointers are valid in `create` only */
    ngtcp2_settings settings;
    ngtcp2_transport_params params;
    ngtcp2_conn *quic; /* of a server: NULL until the first Initial */
    ngtcp2_connection_close_error reason;
    enum { OPEN, CLOSING, CLOSED, OVER } state; /* CLOSED: the packet that closes is sent, and kept for 3 PTO */
    int early, reset, confirmed;                /* early data was tried; a stateless reset came; the handshake is confirmed */
    uint8_t close[1500];                        /* the packet that closes */
    size_t close_length;
    struct gargalo_path path;                   /* of the last packet */
    uint64_t over_at, burst, burst_at; /* `burst`: bytes sent at `burst_at` */
    struct stats stats;
    struct streams streams;
    struct datagrams datagrams;
};

static void tell(struct conn *c, uint32_t kind, uint32_t value, const char *text) {
    c->host->event(c->host->context, kind, value, text);
}
/* After a call of ngtcp2 that may have changed the connection; `error` is its result. */
static void after(struct conn *c, int error) {
    ngtcp2_connection_close_error by;
    stats_update(&c->stats, c->quic, c->host, c->config.notices);
    if (!error || c->state != OPEN) return;
    ngtcp2_conn_get_connection_close_error(c->quic, &by);
    c->state = error == NGTCP2_ERR_IDLE_CLOSE || error == NGTCP2_ERR_DRAINING ? OVER : CLOSING;
    const char *why = error == NGTCP2_ERR_IDLE_CLOSE ? "timed out" : error != NGTCP2_ERR_DRAINING ? ngtcp2_strerror(error)
                      : c->reset ? "stateless reset by the peer" : by.error_code ? "closed by the peer with an error" : NULL;
    tell(c, why ? GARGALO_STACK_FAILED : GARGALO_STACK_CLOSED, 0, why);
    if (error == NGTCP2_ERR_CRYPTO)
        ngtcp2_connection_close_error_set_transport_error_tls_alert(&c->reason, ngtcp2_conn_get_tls_alert(c->quic), NULL, 0);
    else ngtcp2_connection_close_error_set_transport_error_liberr(&c->reason, error, NULL, 0);
}
static int on_stream_open(ngtcp2_conn *quic, int64_t id, void *user) {
    return stream_add(&((struct conn *)user)->streams, id) ? 0 : NGTCP2_ERR_CALLBACK_FAILURE;
}
static int on_stream_close(ngtcp2_conn *quic, uint32_t flags, int64_t id, uint64_t error, void *user, void *unused) {
    stream_remove(&((struct conn *)user)->streams, id);
    if (ngtcp2_conn_is_local_stream(quic, id)) return 0;
    if (ngtcp2_is_bidi_stream(id)) ngtcp2_conn_extend_max_streams_bidi(quic, 1);
    else ngtcp2_conn_extend_max_streams_uni(quic, 1);
    return 0;
}
static int on_data(ngtcp2_conn *quic, uint32_t flags, int64_t id, uint64_t offset, const uint8_t *data, size_t length,
                   void *user, void *unused) {
    const struct gargalo_stack_host *host = ((struct conn *)user)->host;
    host->received(host->context, (uint64_t)id, data, length, (flags & NGTCP2_STREAM_DATA_FLAG_FIN) != 0);
    ngtcp2_conn_extend_max_offset(quic, length);
    return ngtcp2_conn_extend_max_stream_offset(quic, id, length);
}
static int on_stream_reset(ngtcp2_conn *quic, int64_t id, uint64_t size, uint64_t error, void *user, void *unused) {
    const struct gargalo_stack_host *host = ((struct conn *)user)->host;
    host->reset(host->context, (uint64_t)id);
    return 0;
}
static int on_datagram(ngtcp2_conn *quic, uint32_t flags, const uint8_t *data, size_t length, void *user) {
    const struct gargalo_stack_host *host = ((struct conn *)user)->host;
    host->datagram(host->context, data, length);
    return 0;
}
static int on_acked(ngtcp2_conn *quic, int64_t id, uint64_t offset, uint64_t length, void *user, void *unused) {
    stream_acked(stream_find(&((struct conn *)user)->streams, id), offset, length);
    return 0;
}
static int on_reset(ngtcp2_conn *quic, const ngtcp2_pkt_stateless_reset *packet, void *user) {
    ((struct conn *)user)->reset = 1;
    return 0;
}
static void on_random(uint8_t *out, size_t length, const ngtcp2_rand_ctx *unused) { tls_random(out, length); }
static int on_connection_id(ngtcp2_conn *quic, ngtcp2_cid *id, uint8_t *token, size_t length, void *unused) {
    id->datalen = length;
    tls_random(id->data, length);
    tls_random(token, NGTCP2_STATELESS_RESET_TOKENLEN);
    return 0;
}
static int on_handshake(ngtcp2_conn *quic, void *user) {
    struct conn *c = user;
    int accepted = (gnutls_session_get_flags(c->tls.session) & GNUTLS_SFLAGS_EARLY_DATA) != 0, rejected = c->early && !accepted;
    if (rejected) ngtcp2_conn_early_data_rejected(quic); /* it forgets all streams */
    if (rejected) streams_clear(&c->streams);
    if (c->config.is_server) gnutls_session_ticket_send(c->tls.session, 1, 0);
    tell(c, GARGALO_STACK_CONNECTED, accepted ? GARGALO_STACK_EARLY_DATA_ACCEPTED
         : rejected ? GARGALO_STACK_EARLY_DATA_REJECTED : GARGALO_STACK_NO_EARLY_DATA, NULL);
    return 0;
}
static int on_confirmed(ngtcp2_conn *quic, void *user) {
    ((struct conn *)user)->confirmed = 1;
    return 0;
}
static void on_qlog(void *user, uint32_t flags, const void *data, size_t length) {
    struct conn *c = user;
    stats_count(&c->stats, &c->streams, data, length); /* so it is always on */
    c->host->qlog(c->host->context, data, length);
}
static void on_log(void *user, const char *format, ...) {
    va_list values;
    va_start(values, format);
    stats_log(&((struct conn *)user)->stats, format, values);
    va_end(values);
}
static const ngtcp2_callbacks callbacks = {
    .client_initial = ngtcp2_crypto_client_initial_cb, .recv_client_initial = ngtcp2_crypto_recv_client_initial_cb,
    .recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb, .handshake_completed = on_handshake, .handshake_confirmed = on_confirmed,
    .encrypt = ngtcp2_crypto_encrypt_cb, .decrypt = ngtcp2_crypto_decrypt_cb, .hp_mask = ngtcp2_crypto_hp_mask_cb,
    .recv_stream_data = on_data, .acked_stream_data_offset = on_acked, .stream_open = on_stream_open,
    .stream_close = on_stream_close, .stream_reset = on_stream_reset, .recv_datagram = on_datagram, .recv_stateless_reset = on_reset, .recv_retry = ngtcp2_crypto_recv_retry_cb,
    .rand = on_random, .get_new_connection_id = on_connection_id, .update_key = ngtcp2_crypto_update_key_cb,
    .delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,
    .delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,
    .get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb,
    .version_negotiation = ngtcp2_crypto_version_negotiation_cb};
/* A server's first Initial. */
static void accept_initial(struct conn *c, const struct gargalo_path *p, const uint8_t *data, size_t length) {
    ngtcp2_path_storage store;
    ngtcp2_path path = path_of(&store, p);
    ngtcp2_addr peer = path.remote;
    ngtcp2_pkt_hd head;
    ngtcp2_cid id, *original = &c->params.original_dcid;
    uint8_t token[NGTCP2_CRYPTO_MAX_RETRY_TOKENLEN], *key = c->tls.key;
    if (ngtcp2_accept(&head, data, length)) return;
    c->params.stateless_reset_token_present = !on_connection_id(NULL, &id, c->params.stateless_reset_token, 8, NULL);
    *original = head.dcid;
    if (c->config.retry && !head.token.len) {
        ngtcp2_ssize n = ngtcp2_crypto_generate_retry_token(token, key, sizeof c->tls.key, head.version, peer.addr, peer.addrlen,
                                                            &id, original, c->tls.now);
        n = ngtcp2_crypto_write_retry(c->close, sizeof c->close, head.version, &head.scid, &id, &head.dcid, token, (size_t)n);
        if (n > 0) c->host->send(c->host->context, p, c->close, (size_t)n);
        return;
    }
    if (c->config.retry && ngtcp2_crypto_verify_retry_token(original, head.token.base, head.token.len, key, sizeof c->tls.key,
                               head.version, peer.addr, peer.addrlen, &head.dcid, 10 * SECOND, c->tls.now)) return;
    if (c->config.retry) c->settings.token = head.token;
    c->params.retry_scid = head.dcid;
    c->params.retry_scid_present = c->config.retry;
    c->settings.qlog.odcid = *original;
    c->settings.initial_ts = c->tls.now;
    if (!ngtcp2_conn_server_new(&c->quic, &head.scid, &id, &path, head.version, &callbacks, &c->settings, &c->params, NULL, c))
        ngtcp2_conn_set_tls_native_handle(c->quic, c->tls.session);
}
static const char *start(struct conn *c, const struct gargalo_stack_config *config) {
    ngtcp2_path_storage store;
    ngtcp2_path path = path_of(&store, &(struct gargalo_path){.local = config->local, .remote = config->remote});
    ngtcp2_transport_params early;
    ngtcp2_cid id, peer;
    uint8_t unused[NGTCP2_STATELESS_RESET_TOKENLEN];
    const char *error = settings_from(config, &c->settings, &c->params);
    if (error || (error = tls_start(&c->tls, config))) return error;
    c->settings.initial_ts = c->tls.now;
    c->settings.qlog.write = on_qlog;
    if (!strncmp(config->congestion, "bbr", 3)) c->settings.log_printf = on_log;
    if (config->is_server) return NULL;
    on_connection_id(NULL, &id, unused, 8, NULL);
    on_connection_id(NULL, &peer, unused, 8, NULL);
    if (ngtcp2_conn_client_new(&c->quic, &peer, &id, &path, NGTCP2_PROTO_VER_V1, &callbacks, &c->settings, &c->params, NULL, c))
        return "ngtcp2 refuses the settings";
    ngtcp2_conn_set_tls_native_handle(c->quic, c->tls.session);
    c->early = tls_resume(&c->tls, config->session, &early) && config->early_data;
    if (c->early) ngtcp2_conn_set_early_remote_transport_params(c->quic, &early);
    if (c->early) tell(c, GARGALO_STACK_EARLY, 0, NULL);
    return NULL;
}
static void destroy(void *stack) {
    struct conn *c = stack;
    streams_clear(&c->streams);
    while (datagram_first(&c->datagrams)) datagram_remove(&c->datagrams);
    ngtcp2_conn_del(c->quic);
    tls_stop(&c->tls);
    free(c);
}
static void *create(const struct gargalo_stack_config *config, const struct gargalo_stack_host *host, uint64_t now,
                    char *error, size_t room) {
    struct conn *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->host = c->tls.host = host;
    c->tls.quic = &c->quic;
    memcpy(&c->config, config, MIN(config->size, sizeof c->config));
    c->streams.window = config->send_window;
    tls_enter(&c->tls, now);
    const char *why = start(c, config);
    tls_leave();
    if (!why) return c;
    snprintf(error, room, "%s", why);
    destroy(c);
    return NULL;
}
static void datagram_in(void *stack, uint64_t now, const struct gargalo_path *p, uint8_t *data, size_t length) {
    struct conn *c = stack;
    ngtcp2_path_storage store;
    ngtcp2_path path = path_of(&store, p);
    ngtcp2_pkt_info info = {.ecn = c->config.ecn ? p->ecn : 0};
    int error = 0;
    tls_enter(&c->tls, now);
    if (!c->quic && c->state == OPEN) accept_initial(c, p, data, length);
    if (c->quic && c->state == OPEN) error = ngtcp2_conn_read_pkt(c->quic, &path, &info, data, length, now);
    if (error == NGTCP2_ERR_DROP_CONN) { /* it was no Initial: another will come */
        ngtcp2_conn_del(c->quic);
        c->quic = NULL;
    } else if (c->quic) after(c, error);
    if (c->state == CLOSED) c->host->send(c->host->context, &c->path, c->close, c->close_length);
    tls_leave();
}
static ngtcp2_ssize write_packet(struct conn *c, ngtcp2_path *path, ngtcp2_pkt_info *info, uint8_t *out, size_t room) {
    ngtcp2_ssize n, taken;
    for (struct datagram *d; (d = datagram_first(&c->datagrams));) {
        ngtcp2_vec piece = {d->data, d->length};
        int written = 0;
        n = ngtcp2_conn_writev_datagram(c->quic, path, c->config.ecn ? info : NULL, out, room, &written,
                                        NGTCP2_WRITE_DATAGRAM_FLAG_MORE, 0, &piece, 1, c->tls.now);
        if (written) datagram_remove(&c->datagrams);
        if (n != NGTCP2_ERR_WRITE_MORE && (n || !written)) return n;
    }
    for (c->streams.packet++;;) {
        struct stream *s = stream_next(&c->streams);
        ngtcp2_vec pieces[2];
        size_t count = s ? stream_pieces(&c->streams, s, pieces) : 0;
        uint32_t flags = NGTCP2_WRITE_STREAM_FLAG_MORE | (s && s->end == WRITTEN ? NGTCP2_WRITE_STREAM_FLAG_FIN : 0);
        n = ngtcp2_conn_writev_stream(c->quic, path, c->config.ecn ? info : NULL, out, room, &taken, flags, s ? s->id : -1,
                                      pieces, count, c->tls.now);
        if (s && taken >= 0) stream_sent(&c->streams, s, (uint64_t)taken);
        if (n == NGTCP2_ERR_STREAM_SHUT_WR) c->host->stopped(c->host->context, (uint64_t)s->id); /* by the peer */
        if (n == NGTCP2_ERR_STREAM_DATA_BLOCKED || n == NGTCP2_ERR_STREAM_SHUT_WR) s->blocked = c->streams.packet;
        else if (n != NGTCP2_ERR_WRITE_MORE) return n;
    }
}
static size_t datagram_out(void *stack, uint64_t now, struct gargalo_path *p, uint8_t *out, size_t room) {
    struct conn *c = stack;
    ngtcp2_path_storage store;
    ngtcp2_pkt_info info = {0};
    ngtcp2_ssize n = 0;
    tls_enter(&c->tls, now);
    ngtcp2_path_storage_zero(&store);
    if (c->burst_at != now) c->burst = 0, c->burst_at = now;
    uint64_t most = c->quic && c->config.pacing ? ngtcp2_conn_get_send_quantum(c->quic) : UINT64_MAX;
    if (c->state == CLOSING && c->quic) {
        n = ngtcp2_conn_write_connection_close(c->quic, &store.path, &info, out, MIN(room, sizeof c->close), &c->reason, now);
        c->state = n > 0 ? CLOSED : OVER;
        c->over_at = now + 3 * ngtcp2_conn_get_pto(c->quic);
        c->close_length = n > 0 ? (size_t)n : 0;
        memcpy(c->close, out, c->close_length);
    } else if (c->state == OPEN && c->quic && c->burst < most) {
        n = write_packet(c, &store.path, &info, out, room);
        after(c, n < 0 ? (int)n : 0);
        c->burst += n > 0 ? (uint64_t)n : 0;
        if (c->config.pacing && (n <= 0 || c->burst >= most)) ngtcp2_conn_update_pkt_tx_time(c->quic, now);
    }
    tls_leave();
    if (n <= 0) return 0;
    if (store.path.local.addrlen) c->path = host_path(&store, info.ecn);
    *p = c->path;
    return (size_t)n;
}
static uint64_t next_timer(void *stack) {
    struct conn *c = stack;
    uint64_t at = c->state == CLOSED ? c->over_at : c->state == OPEN && c->quic ? ngtcp2_conn_get_expiry(c->quic) : GARGALO_NONE;
    return at <= c->tls.now ? c->tls.now + 1 : at; /* some timers of ngtcp2 expire only after the time that it tells */
}
static void timeout(void *stack, uint64_t now) {
    struct conn *c = stack;
    tls_enter(&c->tls, now);
    if (c->state == CLOSED && now >= c->over_at) c->state = OVER;
    if (c->state == OPEN && c->quic) after(c, ngtcp2_conn_handle_expiry(c->quic, now));
    tls_leave();
}
static int64_t open_stream(void *stack, uint64_t now) {
    struct conn *c = stack;
    int64_t id;
    if (c->state != OPEN || !c->quic || ngtcp2_conn_open_bidi_stream(c->quic, &id, NULL)) return -1;
    return stream_add(&c->streams, id) ? id : -1;
}
static int64_t open_unidirectional_stream(void *stack, uint64_t now) {
    struct conn *c = stack;
    int64_t id;
    if (c->state != OPEN || !c->quic || ngtcp2_conn_open_uni_stream(c->quic, &id, NULL)) return -1;
    return stream_add(&c->streams, id) ? id : -1;
}
static int send_datagram(void *stack, uint64_t now, const uint8_t *data, size_t length) {
    struct conn *c = stack;
    const ngtcp2_transport_params *peer = c->state == OPEN && c->quic ? ngtcp2_conn_get_remote_transport_params(c->quic) : NULL;
    if (!peer) return 0;
    uint64_t most = MIN(peer->max_datagram_frame_size, ngtcp2_conn_get_path_max_tx_udp_payload_size(c->quic));
    /* Header with a connection ID and a packet number, type and length of the frame, tag. */
    if (length + 1 + 20 + 4 + 3 + 16 > most) return -1;
    return datagram_add(&c->datagrams, data, length);
}
static void reset_stream(void *stack, uint64_t now, uint64_t id) {
    struct conn *c = stack;
    if (c->state != OPEN || !c->quic) return;
    ngtcp2_conn_shutdown_stream_write(c->quic, (int64_t)id, CANCELLED); /* fails if it has ended */
    stream_reset(stream_find(&c->streams, (int64_t)id));
}
static void stop_sending(void *stack, uint64_t now, uint64_t id) {
    struct conn *c = stack;
    if (c->state == OPEN && c->quic) ngtcp2_conn_shutdown_stream_read(c->quic, (int64_t)id, CANCELLED);
}
static void set_urgency(void *stack, uint64_t now, uint64_t id, uint8_t urgency) {
    struct conn *c = stack;
    struct stream *s = stream_find(&c->streams, (int64_t)id);
    if (s) s->urgency = urgency;
}
static int update_keys(void *stack, uint64_t now) {
    struct conn *c = stack;
    if (c->state != OPEN || !c->confirmed) return 0;
    tls_enter(&c->tls, now);
    int error = ngtcp2_conn_initiate_key_update(c->quic, now); /* before the last one is confirmed */
    tls_leave();
    return !error;
}
static size_t write_stream(void *stack, uint64_t now, uint64_t id, const uint8_t *data, size_t length, int fin) {
    struct conn *c = stack;
    return c->state == OPEN ? stream_write(&c->streams, stream_find(&c->streams, (int64_t)id), data, length, fin) : 0;
}
static uint64_t unacknowledged(void *stack) {
    struct conn *c = stack;
    return streams_unacknowledged(&c->streams, c->stats.state.bytes_in_flight > 0);
}
static void migrate(void *stack, uint64_t now, const struct gargalo_address *local) {
    struct conn *c = stack;
    ngtcp2_sockaddr_union store;
    if (c->state != OPEN || !c->quic) return;
    ngtcp2_path path = {address_of(&store, local), ngtcp2_conn_get_path(c->quic)->remote, NULL};
    tls_enter(&c->tls, now);
    if (ngtcp2_conn_initiate_immediate_migration(c->quic, &path, now)) ngtcp2_conn_set_local_addr(c->quic, &path.local);
    tls_leave();
}
static void close_in_order(void *stack, uint64_t now) {
    struct conn *c = stack;
    if (c->state != OPEN) return;
    c->state = c->quic ? CLOSING : OVER;
    ngtcp2_connection_close_error_set_application_error(&c->reason, 0, NULL, 0);
    tell(c, GARGALO_STACK_CLOSED, 0, NULL);
}
static int is_over(void *stack) { return ((struct conn *)stack)->state == OVER; }
static void stats(void *stack, struct gargalo_stack_stats *out) {
    struct conn *c = stack;
    stats_tell(&c->stats, c->config.pacing, c->settings.cc_algo, out);
}
static const struct gargalo_stack table = {
    GARGALO_STACK_ABI, GARGALO_STACK_ZERO_RTT | GARGALO_STACK_RETRY | GARGALO_STACK_MIGRATION | GARGALO_STACK_ECN |
    GARGALO_STACK_QLOG | GARGALO_STACK_NO_PACING | GARGALO_STACK_MTU_DISCOVERY | GARGALO_STACK_UNIDIRECTIONAL |
    GARGALO_STACK_DATAGRAMS | GARGALO_STACK_CANCEL | GARGALO_STACK_URGENCY | GARGALO_STACK_KEY_UPDATE, sizeof table, "ngtcp2",
    NGTCP2_VERSION, settings_congestion, create, destroy, datagram_in, datagram_out, next_timer, timeout, open_stream,
    write_stream, unacknowledged, migrate, close_in_order, is_over, stats, settings_specifications, NULL,
    open_unidirectional_stream, send_datagram, reset_stream, stop_sending, set_urgency, update_keys};
__attribute__((visibility("default"))) const struct gargalo_stack *gargalo_stack_v1(void) { return &table; }
