/* GnuTLS in virtual time: tls.c. */
#ifndef TLS_H
#define TLS_H

#include <gnutls/gnutls.h>
#include <ngtcp2/ngtcp2_crypto.h>

#include "gargalo_stack.h"

#define SECOND UINT64_C(1000000000)

struct tls {
    const struct gargalo_stack_host *host;
    uint64_t now;
    uint64_t lifetime; /* of the ticket that comes, ns */
    int replaced; /* gnutls_rnd is ours */
    uint8_t key[64];
    gnutls_datum_t certificate;
    gnutls_certificate_credentials_t credentials;
    gnutls_anti_replay_t replay;
    gnutls_session_t session;
    ngtcp2_crypto_conn_ref ref; /* what GnuTLS keeps with a session, for ngtcp2 */
    ngtcp2_conn **quic;
};

/* All that may use GnuTLS is between these two. */
void tls_enter(struct tls *tls, uint64_t now);
void tls_leave(void);

/* Random bytes of the host. */
void tls_random(void *out, size_t length);

/* Begins; returns what is wrong, or NULL. */
const char *tls_start(struct tls *tls, const struct gargalo_stack_config *config);
/* Resumes a session that `host.session` got; 0 if it cannot be. The transport parameters are the server's of that time. */
int tls_resume(struct tls *tls, struct gargalo_bytes session, ngtcp2_transport_params *params);
void tls_stop(struct tls *tls);

#endif
