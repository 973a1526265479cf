//! What each code means, to whoever has to act on it.

/// One code of a failure.
#[derive(Debug)]
pub(crate) struct CodeText {
    pub(crate) code: &'static str,
    /// What happened.
    pub(crate) means: &'static str,
    /// What a developer may do in the program.
    pub(crate) developer: &'static str,
    /// What an operator should check.
    pub(crate) operator: &'static str,
}

/// Every code, in order.
pub(crate) const CODES: [CodeText; 22] = [
    CodeText {
        code: "RMQ-T01",
        means: "The deadline came. The stage says what the time was waited for at the end.",
        developer: "`NotSent`: send again when there is a budget for it. `Unknown`: `late_outcome` waits for the answer that may still \
                    come, and `resolve_unknown` asks the brokers whether they have the message; or send again where a \
                    duplicate does no harm.",
        operator: "Look for the largest of the `*_ms`. `connect_ms`: the way to the peer. `before_write_ms`, \
                   `writing_ms`: a peer that reads too slowly. `awaiting_response_ms`: with \
                   `heard_since_written=true` the peer lives and is slow with this request (its disk, its store lock, its \
                   threads); with `false` nothing has come from it since, and it may be frozen or cut off. \
                   With `client_stalled_ms` it is our own process that stood still.",
    },
    CodeText {
        code: "RMQ-T02",
        means: "No byte had left by the start-by instant. The producer sets it to half of what remains, where another broker \
                could take another attempt.",
        developer: "Nothing: it is the end of an attempt, and the producer asks another broker. Who calls the transport \
                    directly and sets `start_by` may ask elsewhere without the risk of a duplicate.",
        operator: "As for RMQ-T01 in the same stage: this broker costs every send half of its budget.",
    },
    CodeText {
        code: "RMQ-T03",
        means: "A limit of this client on requests or bytes in flight was reached. `admission` names the level (class, \
                peer, client), the dimension, the limit and what was in use.",
        developer: "Send slower, wait for room (`Admission::Wait` in the transport), or raise the limit that is named.",
        operator: "Why so much is in flight: a peer that answers slowly or not at all holds places until the deadlines \
                   of its requests. Other lines of the same `peer` say how.",
    },
    CodeText {
        code: "RMQ-T04",
        means: "The request alone is larger than a whole limit; under these settings it can never be sent.",
        developer: "Make the message smaller, or raise the limit that `admission` names.",
        operator: "Nothing on the broker. The settings of the client do not fit its messages.",
    },
    CodeText {
        code: "RMQ-T05",
        means: "The request cannot be written as a frame: it is longer than `max_frame_bytes`, or its header is longer than \
                `max_header_bytes`.",
        developer: "Make body or properties smaller.",
        operator: "Nothing on the broker: it has not been asked.",
    },
    CodeText {
        code: "RMQ-T06",
        means: "The dial failed. The cause is in the text: refused, no route to the host, name not resolved, no local port \
                left, or no connection within `connect_timeout`.",
        developer: "Nothing is lost by sending again; the producer does so at another broker.",
        operator: "Refused: is the broker running, and does the route name the right port? Timed out or no route: network \
                   and firewall. Not resolved: the name service. Address not available: the client's machine has no local \
                   port left, so look for sockets in TIME_WAIT.",
    },
    CodeText {
        code: "RMQ-T07",
        means: "An earlier dial failed, or an earlier connection ended before its first answer, and the pause after it has \
                not ended. The text names that cause.",
        developer: "Nothing: the pause is at most `max_backoff`, and the producer asks another broker or waits it out.",
        operator: "The cause in the text. A peer that takes connections and ends them at once is often a proxy in front \
                   of nothing, a port of another service, or a broker that is starting.",
    },
    CodeText {
        code: "RMQ-T08",
        means: "The signer failed, so there is nothing to send. Its own error is in the text.",
        developer: "Handle the failure of the signer: keys that cannot be had, a clock, a remote signing service.",
        operator: "Where the signer gets its keys from. The broker has not been asked.",
    },
    CodeText {
        code: "RMQ-T09",
        means: "The connection ended before the answer. The text says how: closed by the peer, reset, bytes that are not \
                the protocol's, or a socket that accepted nothing for `max_write_stall`.",
        developer: "`NotSent`: send again. `Unknown`: the broker may have stored the message; send again only where a \
                    duplicate does no harm.",
        operator: "Whether the broker was restarted or killed at that moment. A write stall: the broker's machine, \
                   since its socket is full and nobody reads. Bytes of another protocol: the port. An idle connection \
                   that is cut: a firewall or balancer with a shorter limit than ours.",
    },
    CodeText {
        code: "RMQ-T10",
        means: "The transport was closed by its owner, that is by a shutdown of the producer, before the request had ended.",
        developer: "Shut down with a bound that lets sends finish, and stop sending first. What is `Unknown` here may be \
                    stored.",
        operator: "Nothing, if the program was being stopped. Otherwise the program.",
    },
    CodeText {
        code: "RMQ-C01",
        means: "The message breaks a rule: its topic, its size, its properties. The text says which.",
        developer: "Correct the message; no broker will take it.",
        operator: "Nothing: nobody was asked.",
    },
    CodeText {
        code: "RMQ-C02",
        means: "The budget was used up before an attempt could begin, as a rule while the route was looked up.",
        developer: "Give the producer its topics and call `start()`, so that routes are there before the first send.",
        operator: "The name servers: with `route_ms` near `budget_ms` they answer too slowly or not at all.",
    },
    CodeText {
        code: "RMQ-C03",
        means: "Every name server that answered says that there is no such topic, and none to inherit from.",
        developer: "Check the name of the topic.",
        operator: "Create the topic; brokers in production should not create topics on their own. Check that the client \
                   asks the name servers of the right cluster, and that the brokers have registered there.",
    },
    CodeText {
        code: "RMQ-C04",
        means: "The topic has a route, but no broker in it has both a master and a queue that may be written.",
        developer: "Nothing in the program.",
        operator: "Whether the masters run, and the write permission (`perm`) of topic and brokers.",
    },
    CodeText {
        code: "RMQ-C05",
        means: "No name server gave an answer that could be used. Each is listed, with its own cause.",
        developer: "Configure more than one name server.",
        operator: "The name servers that are listed, each by its cause, which has a code of its own from this page.",
    },
    CodeText {
        code: "RMQ-C06",
        means: "The send named a queue that the topic does not have, or that may not be written.",
        developer: "Take queues from a current route, or leave the choice to the producer.",
        operator: "Whether the topic was shrunk, or its broker lost its write permission.",
    },
    CodeText {
        code: "RMQ-C07",
        means: "The body may not be kept for a repetition: the client's limit of retained bytes is used up.",
        developer: "Send slower, or raise `client_limit.bytes`. A producer with one attempt keeps nothing.",
        operator: "As for RMQ-T03.",
    },
    CodeText {
        code: "RMQ-C08",
        means: "The broker answered that it has not stored the message, or that something went wrong. Code and remark of \
                the broker are in the text; the table of answers below says what each means.",
        developer: "`Refused`: the message is not stored. `Unknown`: it may be.",
        operator: "The broker's own log at that time. Busy or flow control: its load. Not authorised: the access key \
                   and its permissions.",
    },
    CodeText {
        code: "RMQ-C09",
        means: "The broker answered that it has stored the message, but not where, or in a form that cannot be read.",
        developer: "Treat the message as stored; sending it again stores it twice.",
        operator: "What stands between client and broker, and the broker's version: such an answer is not RocketMQ's.",
    },
    CodeText {
        code: "RMQ-C10",
        means: "The producer was shut down before the message was sent, or between two attempts.",
        developer: "Do not send after a shutdown.",
        operator: "Nothing, if the program was being stopped. Otherwise the program.",
    },
    CodeText {
        code: "RMQ-C11",
        means: "`resolve_unknown` was asked about a send of which no attempt is `Unknown`. Nobody was asked.",
        developer: "Ask only about errors whose certainty is `Unknown`; any other says what is known.",
        operator: "Nothing.",
    },
    CodeText {
        code: "RMQ-C12",
        means: "`resolve_unknown` did not find the message at any broker that answered, and some did not answer. They are \
                listed, each with its cause.",
        developer: "Ask again: the message may be at one of those that did not answer.",
        operator: "The brokers that are listed, each by its cause, which has a code of its own from this page.",
    },
];
