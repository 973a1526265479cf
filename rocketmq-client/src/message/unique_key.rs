//! The id a client gives each message (`MessageClientIDSetter`).

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr},
    sync::atomic::{AtomicU16, Ordering},
    time::Duration,
};

use tokio::time::Instant;

use crate::message::properties;

/// The id of a message, as the property that carries it: its digits are read off that.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct UniqueKey([u8; PROPERTY_LENGTH]);

impl UniqueKey {
    /// The length of an id.
    pub(crate) const LENGTH: usize = 32;

    /// The 32 hexadecimal digits.
    pub(crate) fn as_str(&self) -> &str {
        str::from_utf8(&self.0[DIGITS..DIGITS + Self::LENGTH]).expect(ASCII)
    }

    /// The whole entry among the properties of a message.
    pub(crate) fn as_property(&self) -> &str {
        str::from_utf8(&self.0).expect(ASCII)
    }
}

impl fmt::Debug for UniqueKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Makes ids that no other client makes: 32 hexadecimal digits of address, process, generator, time and
/// counter, in the form that Java's tools can take apart.
#[derive(Debug)]
pub(crate) struct UniqueKeys {
    /// With the digits of address (4 bytes), process id (2), and what tells generators of one process apart (4); those
    /// of time and counter are zero.
    pattern: UniqueKey,
    /// The time since the Unix epoch at `started`, in milliseconds; from there on the clock is monotonic, so that a
    /// wall clock that is set back makes no id twice.
    origin_ms: u64,
    started: Instant,
    counter: AtomicU16,
}

impl UniqueKeys {
    /// A generator at `address`, told apart from others by `discriminator`, where `origin` has passed since
    /// the Unix epoch.
    pub(crate) fn new(address: IpAddr, discriminator: u32, origin: Duration) -> Self {
        let address = match address {
            IpAddr::V4(address) => address,
            // The short form has room for four bytes only; the discriminator does the rest.
            IpAddr::V6(address) => address.to_ipv4().unwrap_or(Ipv4Addr::LOCALHOST),
        };
        let mut pattern = String::with_capacity(PROPERTY_LENGTH);
        let process = std::process::id() & 0xFFFF;
        let digits = format!("{:08X}{process:04X}{discriminator:08X}{:012X}", address.to_bits(), 0);
        properties::push(&mut pattern, properties::UNIQ_KEY, [digits.as_str()]);
        let pattern = UniqueKey(pattern.into_bytes().try_into().expect("an id has 32 digits"));
        let origin_ms = u64::try_from(origin.as_millis()).unwrap_or(u64::MAX);
        Self { pattern, origin_ms, started: Instant::now(), counter: AtomicU16::new(0) }
    }

    /// The next id, made at `now`.
    pub(crate) fn next(&self, now: Instant) -> UniqueKey {
        // Relaxed: the counter orders nothing, each value is only taken once.
        let count = self.counter.fetch_add(1, Ordering::Relaxed);
        let mut key = self.pattern;
        let digits = &mut key.0[VARYING..DIGITS + UniqueKey::LENGTH];
        let mut rest = u64::from(self.time(now)) << 16 | u64::from(count);
        for digit in digits.iter_mut().rev() {
            *digit = HEX[(rest & 0xF) as usize];
            rest >>= 4;
        }
        key
    }

    /// Milliseconds since the start of the month (UTC): below 2^32, and what Java's tools expect.
    fn time(&self, now: Instant) -> u32 {
        let passed = now.saturating_duration_since(self.started).as_millis();
        let since_epoch = self.origin_ms.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX));
        let days = since_epoch / MILLIS_A_DAY;
        let since_month = since_epoch - (days - day_of_month(days)) * MILLIS_A_DAY;
        u32::try_from(since_month).unwrap_or(u32::MAX)
    }
}

/// The day of the month, from 0, of the `days`-th day since the Unix epoch (proleptic Gregorian calendar).
const fn day_of_month(days: u64) -> u64 {
    // Counted from 1 March of year 0, leap days are the last of their year, and months follow a line.
    let day_of_era = (days + DAYS_TO_EPOCH) % DAYS_AN_ERA;
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    day_of_year - (153 * month + 2) / 5
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";
/// What the conversions of a key rely on.
const ASCII: &str = "a key is ASCII";
/// Where the digits begin in the property: behind its name and separator.
const DIGITS: usize = properties::UNIQ_KEY.len() + 1;
/// Where the digits of the time begin, which those of the counter follow.
const VARYING: usize = DIGITS + 20;
const PROPERTY_LENGTH: usize = properties::UNIQ_KEY.len() + UniqueKey::LENGTH + properties::OVERHEAD;
const MILLIS_A_DAY: u64 = 86_400_000;
/// Days from 1 March of year 0 to the Unix epoch.
const DAYS_TO_EPOCH: u64 = 719_468;
/// Days in 400 years.
const DAYS_AN_ERA: u64 = 146_097;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn days_of_the_month_follow_the_calendar() {
        let mut day = 0;
        for year in 1970u64..2500 {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            for length in [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
                for expected in 0..length {
                    assert_eq!(day_of_month(day), expected, "day {day} in {year}");
                    day += 1;
                }
            }
        }
    }

    #[test]
    fn ids_are_32_digits_of_address_process_generator_time_and_counter() {
        // 2 January 1970, 00:00:05.
        let origin = Duration::from_millis(MILLIS_A_DAY + 5_000);
        let keys = UniqueKeys::new(Ipv4Addr::new(10, 0, 0, 1).into(), 0xABCD_1234, origin);
        let key = keys.next(Instant::now());
        let key = key.as_str();
        assert_eq!(key.len(), UniqueKey::LENGTH);
        assert_eq!((&key[..8], &key[12..20], &key[28..]), ("0A000001", "ABCD1234", "0000"));
        assert_eq!(u16::from_str_radix(&key[8..12], 16).ok(), Some(std::process::id() as u16));
        let time = u32::from_str_radix(&key[20..28], 16).unwrap();
        assert!(time >= 86_405_000);
        assert_eq!(&keys.next(Instant::now()).as_str()[28..], "0001");
    }

    #[test]
    fn ids_of_two_generators_and_of_many_threads_differ() {
        let make = |discriminator| UniqueKeys::new(Ipv4Addr::LOCALHOST.into(), discriminator, Duration::ZERO);
        let (first, second, now) = (make(1), make(2), Instant::now());
        let ids = std::thread::scope(|scope| {
            let threads: Vec<_> = [&first, &first, &second]
                .map(|keys| {
                    scope.spawn(|| (0..1_000).map(|_| keys.next(now).as_str().to_owned()).collect::<Vec<_>>())
                })
                .into();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<HashSet<_>>()
        });
        assert_eq!(ids.len(), 3_000);
    }
}
