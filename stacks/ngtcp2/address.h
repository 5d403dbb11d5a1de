/* Addresses of the host as socket addresses, which ngtcp2 only compares: IPv4 is in the first bytes of IPv6 too, and the
 * scope keeps the length. */
#ifndef ADDRESS_H
#define ADDRESS_H

#include <arpa/inet.h>
#include <ngtcp2/ngtcp2.h>
#include <string.h>

#include "gargalo_stack.h"

static inline ngtcp2_addr address_of(ngtcp2_sockaddr_union *store, const struct gargalo_address *a) {
    store->in6 = (ngtcp2_sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(a->port), .sin6_scope_id = a->ip_length};
    memcpy(&store->in6.sin6_addr, a->ip, sizeof a->ip);
    return (ngtcp2_addr){&store->sa, sizeof store->in6};
}
static inline ngtcp2_path path_of(ngtcp2_path_storage *store, const struct gargalo_path *p) {
    return (ngtcp2_path){address_of(&store->local_addrbuf, &p->local), address_of(&store->remote_addrbuf, &p->remote), NULL};
}
static inline struct gargalo_address host_address(const ngtcp2_sockaddr_in6 *in6) {
    struct gargalo_address a = {.port = ntohs(in6->sin6_port), .ip_length = (uint8_t)in6->sin6_scope_id};
    memcpy(a.ip, &in6->sin6_addr, sizeof a.ip);
    return a;
}
static inline struct gargalo_path host_path(const ngtcp2_path_storage *store, uint32_t ecn) {
    return (struct gargalo_path){.local = host_address(&store->local_addrbuf.in6),
                                 .remote = host_address(&store->remote_addrbuf.in6),
                                 .ecn = (uint8_t)ecn};
}

#endif
