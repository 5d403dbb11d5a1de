// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The dumbbell of benches/scenarios/*.toml for ns-3, written against ns-3's public API
// only. ns-3 itself is GPL-2.0: a binary linked with it falls under the GPL when it is
// distributed. This project distributes none; benches/compare.py compiles this file
// on the machine that measures, and the result stays there.
//
// Prints one JSON object: packets the bottleneck took from its queue (data direction),
// packets it dropped, bytes the receivers got, events handled, peak memory, and the wall-clock
// and processor seconds that Simulator::Run took. Building the topology and tearing it down are not
// measured.

#include "../peak_memory.h"

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

struct Options
{
    uint32_t flows = 20;
    std::string congestion = "TcpCubic";
    std::string rate = "1Gbps";
    std::string accessRate = "10Gbps";
    double accessDelayMs = 1.0;
    double rttMs = 200.0;
    uint32_t queuePackets = 2500;
    uint32_t initialWindow = 10;
    uint32_t mss = 1448;
    uint32_t bufferBytes = 64'000'000;
    double staggerMs = 0.0;
    double seconds = 10.0;
};

Options
Parse(int argc, char** argv)
{
    Options o;
    CommandLine cmd;
    cmd.AddValue("flows", "number of flows, one host pair each", o.flows);
    cmd.AddValue("congestion", "ns-3 type name without the namespace", o.congestion);
    cmd.AddValue("rate", "bottleneck rate", o.rate);
    cmd.AddValue("accessRate", "access link rate", o.accessRate);
    cmd.AddValue("accessDelayMs", "access link one-way delay", o.accessDelayMs);
    cmd.AddValue("rttMs", "round-trip propagation delay, end to end", o.rttMs);
    cmd.AddValue("queuePackets", "bottleneck droptail limit", o.queuePackets);
    cmd.AddValue("initialWindow", "initial window in segments", o.initialWindow);
    cmd.AddValue("mss", "payload bytes per full segment", o.mss);
    cmd.AddValue("bufferBytes", "socket send and receive buffer", o.bufferBytes);
    cmd.AddValue("staggerMs", "time between one flow's start and the next", o.staggerMs);
    cmd.AddValue("seconds", "virtual time", o.seconds);
    cmd.Parse(argc, argv);
    return o;
}

// One link with addresses at both ends, whose only queue is the device's droptail.
NetDeviceContainer
Wire(PointToPointHelper& link, Ipv4AddressHelper& addresses, Ptr<Node> a, Ptr<Node> b)
{
    NetDeviceContainer devices = link.Install(a, b);
    addresses.Assign(devices);
    addresses.NewNetwork();
    // Assigning an address installs the default root queue disc; the limit under test
    // is the device queue, so take it off again.
    TrafficControlHelper none;
    none.Uninstall(devices);
    return devices;
}

Ipv4Address
AddressOf(Ptr<Node> host)
{
    return host->GetObject<Ipv4>()->GetAddress(1, 0).GetLocal(); // interface 0 is loopback
}

} // namespace

int
main(int argc, char** argv)
{
    const Options o = Parse(argc, argv);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                       TypeIdValue(TypeId::LookupByName("ns3::" + o.congestion)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(o.mss));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(o.bufferBytes));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(o.bufferBytes));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(o.initialWindow));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));

    NodeContainer routers;
    routers.Create(2);
    NodeContainer left;
    left.Create(o.flows);
    NodeContainer right;
    right.Create(o.flows);
    InternetStackHelper stack;
    stack.Install(routers);
    stack.Install(left);
    stack.Install(right);

    PointToPointHelper bottleneck;
    bottleneck.SetDeviceAttribute("DataRate", StringValue(o.rate));
    bottleneck.SetChannelAttribute("Delay",
                                   TimeValue(Seconds((o.rttMs / 2 - 2 * o.accessDelayMs) / 1e3)));
    bottleneck.SetQueue("ns3::DropTailQueue<Packet>",
                        "MaxSize",
                        QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, o.queuePackets)));
    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue(o.accessRate));
    access.SetChannelAttribute("Delay", TimeValue(Seconds(o.accessDelayMs / 1e3)));
    access.SetQueue("ns3::DropTailQueue<Packet>",
                    "MaxSize",
                    QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, 1'000'000)));

    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    NetDeviceContainer middle = Wire(bottleneck, addresses, routers.Get(0), routers.Get(1));
    for (uint32_t i = 0; i < o.flows; i++)
    {
        Wire(access, addresses, left.Get(i), routers.Get(0));
        Wire(access, addresses, routers.Get(1), right.Get(i));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    constexpr uint16_t port = 5001;
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    ApplicationContainer sinks = sink.Install(right);
    sinks.Start(Seconds(0));
    for (uint32_t i = 0; i < o.flows; i++)
    {
        BulkSendHelper source("ns3::TcpSocketFactory",
                              InetSocketAddress(AddressOf(right.Get(i)), port));
        source.SetAttribute("MaxBytes", UintegerValue(0));
        source.SetAttribute("SendSize", UintegerValue(o.mss));
        source.Install(left.Get(i)).Start(Seconds(i * o.staggerMs / 1e3));
    }

    // A full device queue stops the layer above it, which then drops: droptail still, but
    // counted there and not by the queue.
    uint64_t dropped = 0;
    routers.Get(0)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext(
        "TcDrop",
        Callback<void, Ptr<const Packet>>([&dropped](Ptr<const Packet>) { dropped++; }));

    Simulator::Stop(Seconds(o.seconds));
    const auto before = std::chrono::steady_clock::now();
    const std::clock_t cpuBefore = std::clock();
    Simulator::Run();
    const double cpu = double(std::clock() - cpuBefore) / CLOCKS_PER_SEC;
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - before;

    Ptr<Queue<Packet>> queue = DynamicCast<PointToPointNetDevice>(middle.Get(0))->GetQueue();
    dropped += queue->GetTotalDroppedPackets();
    const uint64_t sent = uint64_t{queue->GetTotalReceivedPackets()} - queue->GetNPackets();
    uint64_t delivered = 0;
    for (uint32_t i = 0; i < sinks.GetN(); i++)
    {
        delivered += DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx();
    }
    std::printf("{\"packets\": %llu, \"dropped\": %llu, \"delivered_bytes\": %llu, "
                "\"events\": %llu, \"peak_kib\": %ld, \"wall_s\": %.6f, \"cpu_s\": %.6f}\n",
                static_cast<unsigned long long>(sent),
                static_cast<unsigned long long>(dropped),
                static_cast<unsigned long long>(delivered),
                static_cast<unsigned long long>(Simulator::GetEventCount()),
                PeakMemoryKib(),
                wall.count(),
                cpu);
    Simulator::Destroy();
    return 0;
}
