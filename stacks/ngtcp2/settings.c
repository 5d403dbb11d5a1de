#include "settings.h"

#include <string.h>

const char *const settings_congestion[] = {"cubic", "reno", "bbr", "bbr2", NULL};
const char *const settings_specifications[] = {"", "", "bbr", "bbr2", NULL};
static const ngtcp2_cc_algo algorithms[] = {NGTCP2_CC_ALGO_CUBIC, NGTCP2_CC_ALGO_RENO, NGTCP2_CC_ALGO_BBR, NGTCP2_CC_ALGO_BBR2};

const char *settings_from(const struct gargalo_stack_config *config, ngtcp2_settings *settings, ngtcp2_transport_params *params) {
    int discovery = config->max_datagram_size > config->datagram_size;
    size_t i = 0;
    while (settings_congestion[i] && strcmp(settings_congestion[i], config->congestion)) i++;
    if (!settings_congestion[i]) return "ngtcp2 has no such congestion control";
    if (discovery && config->datagram_size != 1200)
        return "ngtcp2 discovers larger datagrams only from 1200 bytes on: leave datagram_size at 1200B, or mtu_discovery = false";
    ngtcp2_settings_default(settings);
    settings->cc_algo = algorithms[i];
    settings->initial_rtt = config->initial_rtt;
    settings->handshake_timeout = UINT64_MAX; /* the idle timeout ends handshakes too */
    settings->max_tx_udp_payload_size = config->max_datagram_size;
    settings->no_pmtud = settings->no_tx_udp_payload_size_shaping = !discovery;
    ngtcp2_transport_params_default(params);
    params->initial_max_stream_data_bidi_local = params->initial_max_stream_data_bidi_remote = config->stream_window;
    params->initial_max_data = config->connection_window;
    params->initial_max_streams_bidi = config->max_streams;
    params->initial_max_streams_uni = config->max_unidirectional_streams;
    params->initial_max_stream_data_uni = config->max_unidirectional_streams ? config->stream_window : 0;
    params->max_datagram_frame_size = config->max_datagram_frame;
    params->max_idle_timeout = config->idle_timeout;
    params->active_connection_id_limit = 7;
    return NULL;
}
