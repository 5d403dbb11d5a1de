"""What RFC 9743 asks and no run can answer: printed as blanks to fill."""

from gargalo.evaluation.model import Question

QUESTIONS = (
    Question("RFC 9743 3.2", "MUST", "In the abstract: is there consensus that it is safe for use "
        "on the Internet, and where is it not recommended?"),
    Question("RFC 9743 5.3.1", "MUST", "Which deviations from RFC 2914 (congestion control "
        "principles) and RFC 7141 (byte and packet marking) are there, and why?"),
    Question("RFC 9743 5.3.2", "MUST", "How is it deployed incrementally, beside hosts that do not have it?"),
    Question("RFC 9743 5.3.2", "SHOULD", "What is known of it with routers, transparent proxies, "
        "WAN optimisers, intrusion detection and home routers?"),
    Question("RFC 9743 5.3.2", "SHOULD", "If its scope is restricted: how is it kept there?"),
    Question("RFC 9743 5", "MUST", "Which criteria marked SHOULD are not met, and for what reason?"),
    Question("RFC 9743 6.2", "MUST", "If it relies on explicit signals of the path: what happens "
        "in tunnels, and with nested ECN?"),
    Question("RFC 9743 7.2", "should", "Does it stay inside the envelope of transport circuit breakers (RFC 8084)?"),
    Question("RFC 9743 7.4", "should", "What does it cost a small device: state, processor time, control packets?"),
    Question("RFC 9743 8", "MUST", "Which attacks on it, or by means of it, are there, and what do "
        "they cost others? What does it reveal?"),
    Question("RFC 9743 6", "MUST", "If it is for general use: what evidence is there at the scale of the Internet?"),
    Question("RFC 5166 2.6", "should", "Who must change for it: sender, receiver, both, routers? "
        "How complex are code and state, and is floating point needed?"),
)  # fmt: skip
