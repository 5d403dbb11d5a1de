/* picotls with OpenSSL: the certificate, and what the host is to know of the secrets. */
#ifndef TLS_H
#define TLS_H

#include <picotls.h>
#include <picotls/openssl.h>

#include "gargalo_stack.h"

struct tls {
    ptls_verify_certificate_t verify; /* these two: the first field of a structure that gets them as their argument */
    ptls_iovec_t trusted;             /* the only certificate */
    struct secrets {
        ptls_log_event_t event;
        const struct gargalo_stack_host *host;
    } secrets;
};

/* NULL, or why not. The context takes what is its own. */
const char *tls_start(struct tls *tls, ptls_context_t *context, const struct gargalo_stack_config *config,
                      const struct gargalo_stack_host *host);
/* Before the context is freed. */
void tls_stop(struct tls *tls, ptls_context_t *context);

#endif
