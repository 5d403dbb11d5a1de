/* GnuTLS in virtual time, with random bytes of the host and sessions as bytes. README.md tells how. */
#include "tls.h"

#include <gnutls/crypto.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EPOCH 1735689600 /* 2025-01-01: the time of day for GnuTLS at the start of a run */
#define PRIORITY "NORMAL:-VERS-ALL:+VERS-TLS1.3:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:%DISABLE_TLS13_COMPAT_MODE"
#define PARAMS 1024 /* bytes of transport parameters, at most */

/* GnuTLS asks for time and random bytes without a context: they are those of the object that runs in this thread. */
static _Thread_local struct tls *current;

void tls_enter(struct tls *tls, uint64_t now) {
    current = tls;
    tls->now = now;
}
void tls_leave(void) { current = NULL; }

/* In place of the function in libgnutls, also for its own calls. */
__attribute__((visibility("default"))) int gnutls_rnd(gnutls_rnd_level_t level, void *out, size_t length) {
    if (!current) return getentropy(out, length) ? GNUTLS_E_RANDOM_FAILED : 0;
    current->replaced = 1;
    current->host->random(current->host->context, out, length);
    return 0;
}
void tls_random(void *out, size_t length) { gnutls_rnd(GNUTLS_RND_NONCE, out, length); }

static void virtual_gettime(struct timespec *now) {
    if (!current) clock_gettime(CLOCK_REALTIME, now);
    else *now = (struct timespec){EPOCH + (time_t)(current->now / SECOND), (long)(current->now % SECOND)};
}
static time_t virtual_time(time_t *out) {
    struct timespec now;
    virtual_gettime(&now);
    return out ? *out = now.tv_sec : now.tv_sec;
}
/* Not in a header of GnuTLS, whose own tests use it as this does. */
extern void _gnutls_global_set_gettime_function(void (*function)(struct timespec *));

static struct tls *tls_of(gnutls_session_t session) {
    return ((ngtcp2_crypto_conn_ref *)gnutls_session_get_ptr(session))->user_data;
}
static ngtcp2_conn *quic_of(ngtcp2_crypto_conn_ref *ref) { return *((struct tls *)ref->user_data)->quic; }

static int on_certificate(gnutls_session_t session) {
    unsigned count;
    const gnutls_datum_t *got = gnutls_certificate_get_peers(session, &count), *trusted = &tls_of(session)->certificate;
    return !got || got->size != trusted->size || memcmp(got->data, trusted->data, got->size) != 0;
}
static int on_secret(gnutls_session_t session, const char *label, const gnutls_datum_t *secret) {
    const struct gargalo_stack_host *host = tls_of(session)->host;
    gnutls_datum_t client, server;
    char line[512], random[65], value[129];
    size_t random_size = sizeof random, value_size = sizeof value;
    gnutls_session_get_random(session, &client, &server);
    gnutls_hex_encode(&client, random, &random_size);
    gnutls_hex_encode(secret, value, &value_size);
    snprintf(line, sizeof line, "%s %s %s", label, random, value);
    host->secret(host->context, line);
    return 0;
}
/* The bytes of a session: when it began and ends, the server's transport parameters, and what GnuTLS keeps. */
struct kept {
    uint64_t since, until, params_size;
    uint8_t params[PARAMS], session[8192];
};
static int on_ticket(gnutls_session_t session, unsigned type, unsigned when, unsigned in, const gnutls_datum_t *message) {
    struct tls *tls = tls_of(session);
    struct kept kept = {0};
    size_t size = sizeof kept.session;
    if (when == GNUTLS_HOOK_PRE && message->size >= 4) { /* the lifetime in seconds comes first (RFC 8446 §4.6.1) */
        const uint8_t *d = message->data;
        tls->lifetime = ((uint32_t)d[0] << 24 | (uint32_t)d[1] << 16 | (uint32_t)d[2] << 8 | d[3]) * SECOND;
        return 0;
    }
    ngtcp2_ssize n = ngtcp2_encode_transport_params(kept.params, PARAMS, NGTCP2_TRANSPORT_PARAMS_TYPE_ENCRYPTED_EXTENSIONS,
                                                    ngtcp2_conn_get_remote_transport_params(*tls->quic));
    if (n < 0 || gnutls_session_get_data(session, kept.session, &size)) return 0;
    kept.since = tls->now;
    kept.until = tls->now + tls->lifetime;
    kept.params_size = (uint64_t)n;
    tls->host->session(tls->host->context, (void *)&kept, sizeof kept - sizeof kept.session + size);
    return 0;
}
int tls_resume(struct tls *tls, struct gargalo_bytes session, ngtcp2_transport_params *params) {
    struct kept kept;
    size_t head = sizeof kept - sizeof kept.session;
    if (session.length <= head || session.length > sizeof kept) return 0;
    memcpy(&kept, session.data, session.length);
    /* GnuTLS fails with one that has expired, or is of a later time: of another run. */
    return kept.since <= tls->now && tls->now < kept.until && kept.params_size <= PARAMS &&
           !ngtcp2_decode_transport_params(params, NGTCP2_TRANSPORT_PARAMS_TYPE_ENCRYPTED_EXTENSIONS, kept.params, kept.params_size) &&
           !gnutls_session_set_data(tls->session, kept.session, session.length - head);
}
/* All early data is accepted: the host's links do not replay packets, and a record would tie connections to each other. */
static int on_early_data(void *unused, time_t expires, const gnutls_datum_t *key, const gnutls_datum_t *data) { return 0; }

static int start_server(struct tls *tls, const struct gargalo_stack_config *config) {
    gnutls_datum_t ticket_key = {tls->key, sizeof tls->key};
    gnutls_datum_t key = {(void *)config->private_key.data, (unsigned)config->private_key.length};
    uint64_t now = tls->now;
    int error = ngtcp2_crypto_gnutls_configure_server_session(tls->session);
    tls->now = 0; /* tickets of before the record of early data are refused: let it begin with the run */
    if (error || (error = gnutls_anti_replay_init(&tls->replay))) return error;
    tls->now = now;
    gnutls_anti_replay_set_add_function(tls->replay, on_early_data);
    gnutls_anti_replay_enable(tls->session, tls->replay);
    gnutls_record_set_max_early_data_size(tls->session, UINT32_MAX);
    if ((error = gnutls_session_ticket_enable_server(tls->session, &ticket_key))) return error;
    return gnutls_certificate_set_x509_key_mem(tls->credentials, &tls->certificate, &key, GNUTLS_X509_FMT_DER);
}
static int start_client(struct tls *tls, const struct gargalo_stack_config *config) {
    gnutls_handshake_set_hook_function(tls->session, GNUTLS_HANDSHAKE_NEW_SESSION_TICKET, GNUTLS_HOOK_BOTH, on_ticket);
    gnutls_certificate_set_verify_function(tls->credentials, on_certificate);
    int error = ngtcp2_crypto_gnutls_configure_client_session(tls->session);
    return error ? error : gnutls_server_name_set(tls->session, GNUTLS_NAME_DNS, config->server_name, strlen(config->server_name));
}
const char *tls_start(struct tls *tls, const struct gargalo_stack_config *config) {
    unsigned role = config->is_server ? GNUTLS_SERVER | GNUTLS_NO_AUTO_SEND_TICKET : GNUTLS_CLIENT | GNUTLS_KEY_SHARE_TOP;
    unsigned early = config->early_data ? GNUTLS_ENABLE_EARLY_DATA | GNUTLS_NO_END_OF_EARLY_DATA : 0;
    gnutls_datum_t alpn = {(void *)config->alpn, (unsigned)strlen(config->alpn)}, probe;
    int error;
    gnutls_global_set_time_function(virtual_time);
    _gnutls_global_set_gettime_function(virtual_gettime);
    if (!gnutls_key_generate(&probe, 16)) gnutls_free(probe.data);
    if (!tls->replaced)
        return "this process has loaded GnuTLS or another copy of this library before, so random bytes cannot be the host's: "
               "use one copy, in a process of its own";
    tls->certificate = (gnutls_datum_t){malloc(config->certificate.length), (unsigned)config->certificate.length};
    memcpy(tls->certificate.data, config->certificate.data, config->certificate.length);
    if (config->ticket_key.length == sizeof tls->key) memcpy(tls->key, config->ticket_key.data, sizeof tls->key);
    tls->ref = (ngtcp2_crypto_conn_ref){quic_of, tls};
    if (!(error = gnutls_init(&tls->session, role | early)) &&
        !(error = gnutls_priority_set_direct(tls->session, PRIORITY, NULL)) &&
        !(error = gnutls_certificate_allocate_credentials(&tls->credentials)) &&
        !(error = gnutls_credentials_set(tls->session, GNUTLS_CRD_CERTIFICATE, tls->credentials)) &&
        !(error = gnutls_alpn_set_protocols(tls->session, &alpn, 1, GNUTLS_ALPN_MANDATORY)))
        error = config->is_server ? start_server(tls, config) : start_client(tls, config);
    if (error) return gnutls_strerror(error);
    gnutls_session_set_ptr(tls->session, &tls->ref);
    if (config->secrets) gnutls_session_set_keylog_function(tls->session, on_secret);
    return NULL;
}
void tls_stop(struct tls *tls) {
    if (tls->session) gnutls_deinit(tls->session);
    if (tls->credentials) gnutls_certificate_free_credentials(tls->credentials);
    if (tls->replay) gnutls_anti_replay_deinit(tls->replay);
    free(tls->certificate.data);
}
