#include "tls.h"

#include <openssl/x509.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* picoquic loads this provider before that of OpenSSL; its sources are left out. */
void picoquic_ptls_minicrypto_load(int unload) {}

static const uint16_t ed25519[] = {PTLS_SIGNATURE_ED25519, UINT16_MAX};
static const uint16_t p256[] = {PTLS_SIGNATURE_ECDSA_SECP256R1_SHA256, UINT16_MAX};

/* No data and no signature: the handshake ended before. */
static int verify_signature(void *data, uint16_t algorithm, ptls_iovec_t message, ptls_iovec_t signature) {
    EVP_MD_CTX *digest = message.len ? EVP_MD_CTX_new() : NULL;
    int is_p256 = data && EVP_PKEY_id(data) == EVP_PKEY_EC;
    int valid = digest && algorithm == (is_p256 ? p256 : ed25519)[0] &&
                EVP_DigestVerifyInit(digest, NULL, is_p256 ? EVP_sha256() : NULL, NULL, data) == 1 &&
                EVP_DigestVerify(digest, signature.base, signature.len, message.base, message.len) == 1;
    EVP_MD_CTX_free(digest);
    EVP_PKEY_free(data);
    return valid || !message.len ? 0 : PTLS_ALERT_DECRYPT_ERROR;
}
static X509 *read_certificate(const ptls_iovec_t *der) {
    const uint8_t *at = der->base;
    return d2i_X509(NULL, &at, (long)der->len);
}
static int on_certificate(ptls_verify_certificate_t *self, ptls_t *tls, const char *name,
                          int (**verify)(void *, uint16_t, ptls_iovec_t, ptls_iovec_t), void **data, ptls_iovec_t *got,
                          size_t count) {
    const ptls_iovec_t *trusted = &((struct tls *)self)->trusted;
    if (!count || got->len != trusted->len || memcmp(got->base, trusted->base, got->len)) return PTLS_ALERT_BAD_CERTIFICATE;
    X509 *certificate = read_certificate(trusted);
    *data = certificate ? X509_get_pubkey(certificate) : NULL;
    *verify = verify_signature;
    X509_free(certificate);
    return *data ? 0 : PTLS_ALERT_BAD_CERTIFICATE;
}
static void on_secret(ptls_log_event_t *self, ptls_t *tls, const char *type, const char *format, ...) {
    const struct gargalo_stack_host *host = ((struct secrets *)self)->host;
    char line[512];
    int length = snprintf(line, sizeof line, "%s ", type);
    ptls_iovec_t random = ptls_get_client_random(tls);
    for (size_t i = 0; i < random.len; i++) length += snprintf(line + length, sizeof line - (size_t)length, "%02x", random.base[i]);
    line[length++] = ' ';
    va_list values;
    va_start(values, format);
    vsnprintf(line + length, sizeof line - (size_t)length, format, values);
    va_end(values);
    host->secret(host->context, line);
}
/* The group that is offered first is the only one with a key: with another one, some servers ask for a second ClientHello. */
static void first_x25519(ptls_key_exchange_algorithm_t **groups) {
    for (size_t i = 1; groups[i]; i++) {
        if (groups[i]->id != PTLS_GROUP_X25519) continue;
        ptls_key_exchange_algorithm_t *x25519 = groups[i];
        memmove(groups + 1, groups, i * sizeof *groups);
        groups[0] = x25519;
    }
}
static ptls_iovec_t copy(struct gargalo_bytes bytes) {
    ptls_iovec_t made = {malloc(bytes.length), bytes.length};
    if (made.base) memcpy(made.base, bytes.data, bytes.length);
    return made;
}
static const char *start_server(ptls_context_t *context, const struct gargalo_stack_config *config) {
    const uint8_t *at = config->private_key.data;
    EVP_PKEY *key = d2i_AutoPrivateKey(NULL, &at, (long)config->private_key.length);
    ptls_openssl_sign_certificate_t *sign = malloc(sizeof *sign);
    ptls_iovec_t *chain = malloc(sizeof *chain);
    int error = !key || !sign || !chain || ptls_openssl_init_sign_certificate(sign, key);
    EVP_PKEY_free(key);
    if (error) return free(sign), free(chain), "OpenSSL does not take the private key";
    *chain = copy(config->certificate);
    context->certificates.list = chain;
    context->certificates.count = 1;
    context->sign_certificate = &sign->super;
    return NULL;
}
const char *tls_start(struct tls *tls, ptls_context_t *context, const struct gargalo_stack_config *config,
                      const struct gargalo_stack_host *host) {
    tls->trusted = copy(config->certificate);
    X509 *certificate = read_certificate(&tls->trusted);
    int is_p256 = certificate && EVP_PKEY_id(X509_get0_pubkey(certificate)) == EVP_PKEY_EC;
    X509_free(certificate);
    tls->verify = (ptls_verify_certificate_t){on_certificate, is_p256 ? p256 : ed25519};
    tls->secrets = (struct secrets){{on_secret}, host};
    if (config->secrets) context->log_event = &tls->secrets.event;
    if (!config->early_data) context->max_early_data_size = 0;
    first_x25519(context->key_exchanges);
    return config->is_server ? start_server(context, config) : NULL;
}
void tls_stop(struct tls *tls, ptls_context_t *context) {
    if (context) context->log_event = NULL; /* picoquic would free it */
    free(tls->trusted.base);
}
