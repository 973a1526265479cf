//! Messages of mixed sizes and texts, the same in every run.

use rocketmq_client::Message;

/// The `number`-th message for `topic`, with a body of [`size`] bytes.
pub(crate) fn message(topic: &str, number: usize) -> Message {
    let mut message =
        Message::new(topic, body(number)).with_flag(i32::try_from(number).expect("they are few"));
    let text = TEXTS[number % TEXTS.len()];
    let word = text.replace(char::is_whitespace, "_");
    // Some with every text, some without a tag, some without keys: the counts have no common factor.
    if !number.is_multiple_of(7) {
        message = message.with_tag(format!("tag-{word}"));
    }
    message = message.with_keys((0..number % 4).map(|key| format!("{word}-{number}-{key}")));
    for property in 0..number % 3 {
        let name = format!("name {property} {}", TEXTS[(number + property) % TEXTS.len()]);
        message = message.with_property(name, format!("{text} {number}")).expect("no text is reserved");
    }
    if number % 1000 == 500 {
        message = message.with_property("long", "長".repeat(10_000)).expect("it is within the limit");
    }
    message
}

/// The length of the `number`-th body: half of them up to 256 bytes, few up to 384 KiB, one in a thousand of
/// exactly 4 MiB; about 10 KB on average.
fn size(number: usize) -> usize {
    let mut random = Random(number as u64);
    let limit = match (number % 1000, random.below(100)) {
        (999, _) => return MAX_SIZE,
        (_, 0..50) => 256,
        (_, 50..80) => 4 << 10,
        (_, 80..98) => 16 << 10,
        _ => 384 << 10,
    };
    1 + random.below(limit)
}

fn body(number: usize) -> Vec<u8> {
    let mut random = Random(!(number as u64));
    let mut body = Vec::with_capacity(size(number) + 8);
    while body.len() < size(number) {
        body.extend_from_slice(&random.next().to_le_bytes());
    }
    body.truncate(size(number));
    body
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// What a broker accepts at most unless it is told otherwise.
pub(crate) const MAX_SIZE: usize = 4 << 20;

/// ASCII, all that JSON escapes, and UTF-8 of two, three and four bytes, composed and not.
const TEXTS: [&str; 8] = [
    "plain",
    "quote \" backslash \\ slash /",
    "line\nfeed\ttab\rreturn\u{1f}unit",
    "größe",
    "e\u{301}galite\u{301}",
    "消息队列",
    "🚀👩‍👩‍👧",
    "\u{2028}separator\u{2029}",
];

#[test]
fn ten_thousand_messages_are_about_a_hundred_megabytes_with_ten_of_the_largest_size() {
    let sizes: Vec<usize> = (0..10_000).map(size).collect();
    let megabytes = sizes.iter().sum::<usize>() / 1_000_000;
    assert!((90..110).contains(&megabytes), "{megabytes} MB");
    assert_eq!(sizes.iter().filter(|&&size| size == MAX_SIZE).count(), 10);
    assert!(sizes.iter().all(|&size| size > 0));
}
