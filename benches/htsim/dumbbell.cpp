// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The dumbbell of benches/scenarios/*.toml for htsim, written against its public classes
// (TcpSrc, TcpSink, Queue, Pipe, Route, EventList). Nothing of htsim is in this repository:
// benches/compare.py compiles this file with the sources in a directory that the user names.
//
// With --access-rate 0 the network is one queue and one pipe in each direction, shared by all
// flows, and the pipe has the delay of the whole path: the least work htsim can do for it. With a
// rate every flow has its own queue and pipe at both ends too, as in the scenario.
//
// Prints one JSON object: packets the bottleneck sent (data direction), packets it dropped, bytes
// the receivers have in order, events handled, fast recoveries begun, peak memory, and the wall-clock
// and processor seconds of the event loop. Building the topology is not measured.

#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "route.h"
#include "tcp.h"
#include "tcppacket.h"

#include "../peak_memory.h"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace
{

constexpr double kPicosecondsPerMs = 1e9;
// Room in queues that must never drop.
constexpr mem_b kUnlimited = 1LL << 40;
// htsim looks at all retransmission timers at this interval.
constexpr double kTimerScanMs = 10.0;

/// Options as --name value; every one has a default and must be a number.
class Options
{
  public:
    Options(int argc, char** argv)
    {
        for (int i = 1; i < argc; i += 2)
        {
            const std::string name = argv[i];
            const auto known = m_values.find(name);
            if (known == m_values.end() || i + 1 == argc)
            {
                std::fprintf(stderr, "dumbbell: %s: unknown, or without a value\n", argv[i]);
                std::exit(2);
            }
            char* end = nullptr;
            known->second = std::strtod(argv[i + 1], &end);
            if (end == argv[i + 1] || *end != '\0')
            {
                std::fprintf(stderr, "dumbbell: %s %s: not a number\n", argv[i], argv[i + 1]);
                std::exit(2);
            }
        }
    }

    double operator[](const std::string& name) const
    {
        return m_values.at(name);
    }

  private:
    std::map<std::string, double> m_values = {
        {"--flows", 20},
        {"--rate", 1e9},            // bit/s
        {"--delay-ms", 98},         // one way, of the bottleneck
        {"--queue-packets", 2500},  // of the bottleneck
        {"--access-rate", 0},       // bit/s; 0: no access links of their own
        {"--access-delay-ms", 1},   // one way, of each of the two
        {"--packet-bytes", 1500},   // of a full packet on the wire
        {"--initial-window", 10},   // packets
        {"--slow-start-packets", 0}, // slow start threshold; 0: none
        {"--stagger-ms", 0},        // between the starts of two flows
        {"--seconds", 10},          // virtual time
    };
};

simtime_picosec
Picoseconds(double ms)
{
    return static_cast<simtime_picosec>(std::llround(ms * kPicosecondsPerMs));
}

/// A queue that counts what it has sent.
class Counted : public Queue
{
  public:
    using Queue::Queue;

    uint64_t sent() const
    {
        return m_sent;
    }

  protected:
    void completeService() override
    {
        m_sent++;
        Queue::completeService();
    }

  private:
    uint64_t m_sent = 0;
};

/// One direction: queues and pipes in the order in which packets pass them.
class Network
{
  public:
    Network(const Options& options, EventList& events)
        : m_options(options), m_events(events)
    {
        const double access_ms = options["--access-rate"] > 0 ? 0 : 2 * options["--access-delay-ms"];
        const mem_b limit = static_cast<mem_b>(options["--queue-packets"] * options["--packet-bytes"]);
        m_delay_ms = options["--delay-ms"] + access_ms;
        m_bottleneck = Make<Counted>(Rate("--rate"), limit, events, nullptr);
        m_forward = Make<Pipe>(Picoseconds(m_delay_ms), events);
        m_back_queue = Make<Queue>(Rate("--rate"), kUnlimited, events, nullptr);
        m_back = Make<Pipe>(Picoseconds(m_delay_ms), events);
    }

    void Connect(TcpSrc& source, TcpSink& sink, simtime_picosec start)
    {
        Route* out = Make<Route>();
        Access(*out);
        out->push_back(m_bottleneck);
        out->push_back(m_forward);
        Access(*out);
        out->push_back(&sink);
        Route* back = Make<Route>();
        Access(*back);
        back->push_back(m_back_queue);
        back->push_back(m_back);
        Access(*back);
        back->push_back(&source);
        source.connect(*out, *back, sink, start);
    }

    const Counted& bottleneck() const
    {
        return *m_bottleneck;
    }

  private:
    linkspeed_bps Rate(const char* option) const
    {
        return static_cast<linkspeed_bps>(m_options[option]);
    }

    void Access(Route& route)
    {
        if (m_options["--access-rate"] > 0)
        {
            route.push_back(Make<Queue>(Rate("--access-rate"), kUnlimited, m_events, nullptr));
            route.push_back(Make<Pipe>(Picoseconds(m_options["--access-delay-ms"]), m_events));
        }
    }

    /// Lives as long as the process: packets in flight refer to it.
    template <typename T, typename... Args>
    T* Make(Args&&... args)
    {
        return new T(std::forward<Args>(args)...);
    }

    const Options& m_options;
    EventList& m_events;
    double m_delay_ms = 0;
    Counted* m_bottleneck = nullptr;
    Queue* m_back_queue = nullptr;
    Pipe* m_forward = nullptr;
    Pipe* m_back = nullptr;
};

} // namespace

int
main(int argc, char** argv)
{
    const Options options(argc, argv);
    // htsim reports timeouts on standard output; a stream without a buffer drops them.
    std::cout.rdbuf(nullptr);

    Packet::set_packet_size(static_cast<int>(options["--packet-bytes"]));
    EventList& events = EventList::getTheEventList();
    EventList::setEndtime(Picoseconds(options["--seconds"] * 1e3));
    Network network(options, events);
    TcpRtxTimerScanner timers(Picoseconds(kTimerScanMs), events);
    const uint64_t packet = static_cast<uint64_t>(options["--packet-bytes"]);
    const double threshold = options["--slow-start-packets"];

    std::vector<TcpSrc*> sources;
    std::vector<TcpSink*> sinks;
    for (int i = 0; i < static_cast<int>(options["--flows"]); i++)
    {
        sources.push_back(new TcpSrc(nullptr, nullptr, events));
        sinks.push_back(new TcpSink());
        sources[i]->set_cwnd(static_cast<uint64_t>(options["--initial-window"]) * packet);
        sources[i]->set_ssthresh(threshold > 0 ? static_cast<uint64_t>(threshold * packet) : 0x7fffffff);
        timers.registerTcp(*sources[i]);
        network.Connect(*sources[i], *sinks[i], Picoseconds(i * options["--stagger-ms"]));
    }

    uint64_t handled = 0;
    const auto before = std::chrono::steady_clock::now();
    const std::clock_t cpu_before = std::clock();
    while (EventList::doNextEvent())
    {
        handled++;
    }
    const double cpu = double(std::clock() - cpu_before) / CLOCKS_PER_SEC;
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - before;

    uint64_t delivered = 0;
    uint64_t recoveries = 0;
    for (size_t i = 0; i < sinks.size(); i++)
    {
        delivered += sinks[i]->_cumulative_ack;
        recoveries += sources[i]->_drops;
    }
    std::printf("{\"packets\": %llu, \"dropped\": %llu, \"delivered_bytes\": %llu, "
                "\"events\": %llu, \"recoveries\": %llu, \"peak_kib\": %ld, "
                "\"wall_s\": %.6f, \"cpu_s\": %.6f}\n",
                static_cast<unsigned long long>(network.bottleneck().sent()),
                static_cast<unsigned long long>(network.bottleneck().num_drops()),
                static_cast<unsigned long long>(delivered),
                static_cast<unsigned long long>(handled),
                static_cast<unsigned long long>(recoveries),
                PeakMemoryKib(),
                wall.count(),
                cpu);
    std::fflush(stdout);
    std::_Exit(0); // Packets in flight are not worth freeing.
}
