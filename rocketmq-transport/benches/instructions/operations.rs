//! The operations whose instructions are counted.

mod call;
mod codec;
mod samples;
mod table;

/// An operation that can be performed any number of times after a set-up of always the same cost.
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    /// How often it is performed in the two runs whose difference is taken. The smaller count is enough to bring every
    /// buffer and map to its final size.
    pub(crate) counts: [u64; 2],
    /// Sets up and performs it so many times.
    pub(crate) perform: fn(u64),
}

impl Operation {
    const fn new(name: &'static str, counts: [u64; 2], perform: fn(u64)) -> Self {
        Self { name, counts, perform }
    }
}

/// All of them, in the order in which they are listed.
pub(crate) const OPERATIONS: &[Operation] = &[
    Operation::new("admit-release", [1_000, 5_000], table::admit_and_release),
    Operation::new("register-complete", [1_000, table::MOST], table::register_and_complete),
    Operation::new("register-withdraw", [1_000, table::MOST], table::register_and_withdraw),
    Operation::new("encode-send-json", [1_000, 5_000], codec::encode_send_json),
    Operation::new("encode-send-binary", [1_000, 5_000], codec::encode_send_binary),
    Operation::new("decode-send-json", [1_000, 5_000], codec::decode_send_json),
    Operation::new("decode-response-json", [1_000, 5_000], codec::decode_response_json),
    Operation::new("decode-response-binary", [1_000, 5_000], codec::decode_response_binary),
    Operation::new("call-1", [1_024, 3_072], call::one_in_flight),
    Operation::new("call-256", [1_024, 3_072], call::many_in_flight),
];
