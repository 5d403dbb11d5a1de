/* Addresses of the host as socket addresses, and back. */
#ifndef ADDRESS_H
#define ADDRESS_H

#include <arpa/inet.h>
#include <string.h>

#include "gargalo_stack.h"

static inline struct sockaddr_storage address_of(const struct gargalo_address *a) {
    struct sockaddr_storage store = {0};
    if (a->ip_length == 4) {
        struct sockaddr_in *in = (struct sockaddr_in *)&store;
        in->sin_family = AF_INET;
        in->sin_port = htons(a->port);
        memcpy(&in->sin_addr, a->ip, 4);
    } else {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&store;
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(a->port);
        memcpy(&in6->sin6_addr, a->ip, 16);
    }
    return store;
}
static inline struct gargalo_address host_address(const struct sockaddr_storage *store) {
    struct gargalo_address a = {0};
    if (store->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)store;
        a.ip_length = 4;
        a.port = ntohs(in->sin_port);
        memcpy(a.ip, &in->sin_addr, 4);
    } else {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)store;
        a.ip_length = 16;
        a.port = ntohs(in6->sin6_port);
        memcpy(a.ip, &in6->sin6_addr, 16);
    }
    return a;
}

#endif
