// SPDX-License-Identifier: MIT OR Apache-2.0
//
// One bulk transfer, or two, over one bottleneck for ns-3, written against ns-3's public API only.
// ns-3 itself is GPL-2.0: a binary linked with it falls under the GPL when it is
// distributed. This project distributes none; benches/crosscheck.py compiles this file on
// the machine that runs it, and the result stays there.
//
// Prints one JSON object: bytes the receiver's application got within [warmup, duration],
// the mean time a packet waited at the bottleneck then, and what was lost and sent again
// in all; of a transfer of so many bytes, when the last arrived. Attributes of ns-3 can be
// set as options too: --ns3::TcpCubic::HyStart=false.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <list>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint16_t PORT = 5001;
// A full packet is 1500 bytes, on ns-3's links with two more of PPP.
constexpr double FRAMING = 1502.0 / 1500.0;

struct Options
{
    std::string congestion = "TcpCubic";
    double rate = 20e6;
    double delayMs = 20.0;
    uint32_t queuePackets = 67;
    double loss = 0.0;
    uint32_t markAbove = 0;
    double duration = 60.0;
    double warmup = 10.0;
    uint32_t bufferBytes = 16'000'000;
    uint32_t run = 1;
    std::string trace;
    uint64_t bytes = 0;
    double second = -1.0;
    double onOffRate = 0.0;
    double backRate = 0.0;
    std::string queue;
    std::string lost;
};

// What every run has in common, before the command line, which may say otherwise.
void
Common()
{
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(true));
}

Options
Parse(int argc, char** argv)
{
    Options o;
    CommandLine cmd;
    cmd.AddValue("congestion", "ns-3 type name without the namespace", o.congestion);
    cmd.AddValue("rate", "bottleneck rate in bit/s", o.rate);
    cmd.AddValue("delayMs", "bottleneck one-way delay", o.delayMs);
    cmd.AddValue("queuePackets", "bottleneck droptail limit", o.queuePackets);
    cmd.AddValue("loss", "random loss of data packets", o.loss);
    cmd.AddValue("markAbove", "ECN: mark when so many packets wait; 0: no ECN", o.markAbove);
    cmd.AddValue("duration", "virtual seconds", o.duration);
    cmd.AddValue("warmup", "seconds before goodput counts", o.warmup);
    cmd.AddValue("bufferBytes", "socket send and receive buffer", o.bufferBytes);
    cmd.AddValue("run", "substream of the random numbers", o.run);
    cmd.AddValue("trace", "file for samples of the sender every 100 ms", o.trace);
    cmd.AddValue("bytes", "bytes of the transfer, after which the run ends; 0: no end", o.bytes);
    cmd.AddValue("second", "start of a second flow in seconds; negative: none", o.second);
    cmd.AddValue("onOffRate", "bit/s written for 2 s of every 3; 0: always as fast as can be", o.onOffRate);
    cmd.AddValue("backRate", "bit/s for acknowledgements; 0: the bottleneck's", o.backRate);
    cmd.AddValue("queue", "type of the queueing discipline; empty: droptail", o.queue);
    cmd.AddValue("lost", "packets lost before the queue, by number from 1: 12,340", o.lost);
    Common();
    cmd.Parse(argc, argv);
    RngSeedManager::SetRun(o.run);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                       TypeIdValue(TypeId::LookupByName("ns3::" + o.congestion)));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(o.bufferBytes));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(o.bufferBytes));
    return o;
}

// Two nodes and a link whose queue nobody ever fills.
NetDeviceContainer
Access(Ptr<Node> a, Ptr<Node> b)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    link.SetChannelAttribute("Delay", StringValue("1us"));
    link.SetQueue("ns3::DropTailQueue<Packet>",
                  "MaxSize",
                  QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, 1'000'000)));
    return link.Install(a, b);
}

NetDeviceContainer
Bottleneck(const Options& o, Ptr<Node> a, Ptr<Node> b)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(o.rate * FRAMING))));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(o.delayMs / 1e3)));
    // Under a queueing discipline the device holds one packet, the next to be sent.
    const uint32_t limit = o.markAbove || !o.queue.empty() ? 1 : o.queuePackets;
    link.SetQueue("ns3::DropTailQueue<Packet>",
                  "MaxSize",
                  QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, limit)));
    NetDeviceContainer devices = link.Install(a, b);
    if (o.loss > 0)
    {
        Ptr<RateErrorModel> model = CreateObject<RateErrorModel>();
        model->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        model->SetRate(o.loss);
        DynamicCast<PointToPointNetDevice>(devices.Get(1))->SetReceiveErrorModel(model);
    }
    if (o.backRate > 0)
    {
        const DataRate rate{uint64_t(o.backRate)};
        DynamicCast<PointToPointNetDevice>(devices.Get(1))->SetDataRate(rate);
    }
    return devices;
}

// Loses the packets that reach a device as the n-th, n as listed.
void
Lose(const std::string& listed, Ptr<NetDevice> device)
{
    std::list<uint32_t> numbers;
    std::istringstream text(listed);
    for (std::string number; std::getline(text, number, ',');)
    {
        numbers.push_back(std::stoul(number) - 1);
    }
    Ptr<ReceiveListErrorModel> model = CreateObject<ReceiveListErrorModel>();
    model->SetList(numbers);
    DynamicCast<PointToPointNetDevice>(device)->SetReceiveErrorModel(model);
}

// The queueing discipline above the bottleneck's device, if there is one.
Ptr<QueueDisc> StepMarking(const Options& o, Ptr<NetDevice> device);

Ptr<QueueDisc>
Discipline(const Options& o, Ptr<NetDevice> device)
{
    if (o.markAbove)
    {
        return StepMarking(o, device);
    }
    if (o.queue.empty())
    {
        return nullptr;
    }
    TrafficControlHelper helper;
    helper.SetRootQueueDisc("ns3::" + o.queue);
    return helper.Install(device).Get(0);
}

// The step marking of RFC 8257: RED without averaging whose two thresholds coincide.
Ptr<QueueDisc>
StepMarking(const Options& o, Ptr<NetDevice> device)
{
    TrafficControlHelper red;
    red.SetRootQueueDisc("ns3::RedQueueDisc",
                         "MaxSize",
                         QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, o.queuePackets)),
                         "MinTh",
                         DoubleValue(o.markAbove),
                         "MaxTh",
                         DoubleValue(o.markAbove),
                         "QW",
                         DoubleValue(1.0),
                         "MeanPktSize",
                         UintegerValue(1500),
                         "UseEcn",
                         BooleanValue(true),
                         "Gentle",
                         BooleanValue(false),
                         "UseHardDrop",
                         BooleanValue(false));
    return red.Install(device).Get(0);
}

// What lies in the bottleneck's queue, over time.
struct Waiting
{
    double packetSeconds = 0.0;
    uint64_t served = 0;
    uint32_t packets = 0;
    double since = 0.0;
    double from = 0.0;

    void Changed(uint32_t before, uint32_t now)
    {
        const double time = Simulator::Now().GetSeconds();
        if (time > from)
        {
            packetSeconds += packets * (time - std::max(since, from));
            served += now < before;
        }
        since = time;
        packets = now;
    }
};

struct Sender
{
    uint32_t cwnd = 0;
    uint32_t ssthresh = 0;
    double rttS = 0.0;
    uint64_t timeouts = 0;
    uint64_t recoveries = 0;

    void Watch(Ptr<Socket> socket)
    {
        socket->TraceConnectWithoutContext("CongestionWindow", MakeCallback(&Sender::Cwnd, this));
        socket->TraceConnectWithoutContext("SlowStartThreshold",
                                           MakeCallback(&Sender::Ssthresh, this));
        socket->TraceConnectWithoutContext("RTT", MakeCallback(&Sender::Rtt, this));
        socket->TraceConnectWithoutContext("CongState", MakeCallback(&Sender::State, this));
    }

    void Cwnd(uint32_t, uint32_t now)
    {
        cwnd = now;
    }

    void Ssthresh(uint32_t, uint32_t now)
    {
        ssthresh = now;
    }

    void Rtt(Time, Time now)
    {
        rttS = now.GetSeconds();
    }

    void State(TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now)
    {
        timeouts += now == TcpSocketState::CA_LOSS;
        recoveries += now == TcpSocketState::CA_RECOVERY;
    }
};

void
Sample(std::FILE* file, const Sender& sender, const Waiting& waiting, Ptr<PacketSink> sink)
{
    std::fprintf(file,
                 "%.3f,%u,%u,%.6f,%u,%llu\n",
                 Simulator::Now().GetSeconds(),
                 sender.cwnd,
                 sender.ssthresh,
                 sender.rttS,
                 waiting.packets,
                 static_cast<unsigned long long>(sink->GetTotalRx()));
    Simulator::Schedule(MilliSeconds(100), [file, &sender, &waiting, sink] {
        Sample(file, sender, waiting, sink);
    });
}

// One connection and what came of it.
struct Flow
{
    Ptr<BulkSendApplication> source;
    Ptr<Socket> socket;
    Ptr<PacketSink> sink;
    Sender sender;
    uint64_t before = 0;
    double doneS = -1.0;

    double Goodput(const Options& o) const
    {
        const double end = doneS < 0 ? o.duration : doneS;
        return 8.0 * (sink->GetTotalRx() - before) / (end - o.warmup);
    }

    // Writes a packet's payload at a time, at the rate, for two seconds of every three.
    void Write(double rate)
    {
        constexpr uint32_t payload = 1448;
        if (std::fmod(Simulator::Now().GetSeconds(), 3.0) < 2.0)
        {
            socket->Send(Create<Packet>(payload));
        }
        Simulator::Schedule(Seconds(8.0 * payload / rate), [this, rate] { Write(rate); });
    }

    void Received(uint64_t bytes)
    {
        if (doneS < 0 && sink->GetTotalRx() >= bytes)
        {
            doneS = Simulator::Now().GetSeconds();
            Simulator::Stop();
        }
    }
};

std::unique_ptr<Flow>
Connect(const Options& o, Ptr<Node> from, Ptr<Node> to, Ipv4Address destination, int index)
{
    auto flow = std::make_unique<Flow>();
    Flow* made = flow.get();
    const uint16_t port = PORT + index;
    const double start = index ? o.second : 0.0;
    PacketSinkHelper sinks("ns3::TcpSocketFactory",
                           InetSocketAddress(Ipv4Address::GetAny(), port));
    flow->sink = DynamicCast<PacketSink>(sinks.Install(to).Get(0));
    flow->sink->SetStartTime(Seconds(0));
    if (o.onOffRate > 0)
    {
        Simulator::Schedule(Seconds(start), [=] {
            made->socket = Socket::CreateSocket(from, TcpSocketFactory::GetTypeId());
            made->socket->Connect(InetSocketAddress(destination, port));
            made->sender.Watch(made->socket);
            made->Write(o.onOffRate);
        });
        return flow;
    }
    BulkSendHelper sources("ns3::TcpSocketFactory", InetSocketAddress(destination, port));
    sources.SetAttribute("MaxBytes", UintegerValue(o.bytes));
    sources.SetAttribute("SendSize", UintegerValue(1448));
    flow->source = DynamicCast<BulkSendApplication>(sources.Install(from).Get(0));
    flow->source->SetStartTime(Seconds(start));
    Simulator::Schedule(Seconds(start) + NanoSeconds(1),
                        [made] { made->sender.Watch(made->source->GetSocket()); });
    if (o.bytes)
    {
        const uint64_t bytes = o.bytes;
        flow->sink->TraceConnectWithoutContext(
            "Rx",
            Callback<void, Ptr<const Packet>, const Address&>(
                [made, bytes](Ptr<const Packet>, const Address&) { made->Received(bytes); }));
    }
    return flow;
}

void
Print(const Options& o,
      const std::vector<std::unique_ptr<Flow>>& flows,
      double queueDelay,
      uint64_t dropped,
      uint64_t lost,
      uint64_t marked)
{
    const Flow& first = *flows.front();
    std::printf("{\"goodput_bps\": %.1f, \"queue_delay_s\": %.6f, \"dropped\": %llu, "
                "\"lost\": %llu, \"marked\": %llu, \"recoveries\": %llu, \"timeouts\": %llu",
                first.Goodput(o),
                queueDelay,
                static_cast<unsigned long long>(dropped),
                static_cast<unsigned long long>(lost),
                static_cast<unsigned long long>(marked),
                static_cast<unsigned long long>(first.sender.recoveries),
                static_cast<unsigned long long>(first.sender.timeouts));
    if (flows.size() > 1)
    {
        std::printf(", \"second_bps\": %.1f", flows.back()->Goodput(o));
    }
    if (first.doneS >= 0)
    {
        std::printf(", \"completion_s\": %.6f", first.doneS);
    }
    std::printf("}\n");
}

} // namespace

int
main(int argc, char** argv)
{
    const Options o = Parse(argc, argv);

    NodeContainer nodes;
    nodes.Create(4);
    InternetStackHelper().Install(nodes);
    NetDeviceContainer left = Access(nodes.Get(0), nodes.Get(1));
    NetDeviceContainer middle = Bottleneck(o, nodes.Get(1), nodes.Get(2));
    NetDeviceContainer right = Access(nodes.Get(2), nodes.Get(3));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    Ipv4Address destination;
    for (const NetDeviceContainer& devices : {left, middle, right})
    {
        destination = addresses.Assign(devices).GetAddress(1);
        addresses.NewNetwork();
        // Assigning an address installs a root queue discipline; the queues under test are
        // the devices', so take it off again.
        TrafficControlHelper().Uninstall(devices);
    }
    Ptr<QueueDisc> disc = Discipline(o, middle.Get(0));
    if (!o.lost.empty())
    {
        Lose(o.lost, left.Get(1));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    std::vector<std::unique_ptr<Flow>> flows;
    for (int index = 0; index <= (o.second >= 0 ? 1 : 0); index++)
    {
        flows.push_back(Connect(o, nodes.Get(0), nodes.Get(3), destination, index));
    }
    Flow& first = *flows.front();

    Waiting above;
    Waiting waiting;
    above.from = waiting.from = o.warmup;
    Ptr<Queue<Packet>> queue = DynamicCast<PointToPointNetDevice>(middle.Get(0))->GetQueue();
    queue->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&Waiting::Changed, &waiting));
    if (disc)
    {
        disc->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&Waiting::Changed, &above));
    }
    // A full device queue stops the layer above it, which then drops: droptail still, but
    // counted there and not by the queue.
    uint64_t dropped = 0;
    nodes.Get(1)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext(
        "TcDrop",
        Callback<void, Ptr<const Packet>>([&dropped](Ptr<const Packet>) { dropped++; }));
    uint64_t lost = 0;
    for (const Ptr<NetDevice>& device : {left.Get(1), middle.Get(1)})
    {
        device->TraceConnectWithoutContext(
            "PhyRxDrop",
            Callback<void, Ptr<const Packet>>([&lost](Ptr<const Packet>) { lost++; }));
    }

    std::FILE* trace = o.trace.empty() ? nullptr : std::fopen(o.trace.c_str(), "w");
    if (trace)
    {
        Simulator::Schedule(NanoSeconds(1),
                            [&] { Sample(trace, first.sender, waiting, first.sink); });
    }
    Simulator::Schedule(Seconds(o.warmup), [&] {
        for (auto& flow : flows)
        {
            flow->before = flow->sink->GetTotalRx();
        }
    });
    Simulator::Stop(Seconds(o.duration));
    Simulator::Run();

    waiting.Changed(waiting.packets, waiting.packets);
    above.Changed(above.packets, above.packets);
    const double packetSeconds = waiting.packetSeconds + above.packetSeconds;
    uint64_t marked = 0;
    if (disc)
    {
        marked = disc->GetStats().nTotalMarkedPackets;
        dropped += disc->GetStats().nTotalDroppedPackets;
    }
    dropped += queue->GetTotalDroppedPackets();
    Print(o, flows, waiting.served ? packetSeconds / waiting.served : 0.0, dropped, lost, marked);
    if (trace)
    {
        std::fclose(trace);
    }
    Simulator::Destroy();
    return 0;
}
