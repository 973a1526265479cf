//! The answering side: writing what a broker has stored.

use std::net::{IpAddr, SocketAddr};

use bytes::BufMut;

use super::{BORN_HOST_V6, MAGIC_V1, MAGIC_V2, STORE_HOST_V6, StoredRecord};

impl StoredRecord {
    /// Appends the entry to `out`.
    ///
    /// # Panics
    ///
    /// The topic, the properties or the body is longer than its length field can say.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let (born_v6, store_v6) = (self.born_host.is_ipv6(), self.store_host.is_ipv6());
        let sys_flag = (self.sys_flag & !(BORN_HOST_V6 | STORE_HOST_V6))
            | if born_v6 { BORN_HOST_V6 } else { 0 }
            | if store_v6 { STORE_HOST_V6 } else { 0 };
        // The length of the whole, which is known last.
        out.put_u32(0);
        let long_topic = i8::try_from(self.topic.len()).is_err();
        out.put_u32(if long_topic { MAGIC_V2 } else { MAGIC_V1 });
        out.put_u32(checksum(&self.body));
        out.put_u32(self.queue_id);
        out.put_i32(self.flag);
        out.put_i64(self.queue_offset);
        out.put_i64(self.log_offset);
        out.put_i32(sys_flag);
        out.put_i64(self.born_timestamp);
        put_host(out, self.born_host);
        out.put_i64(self.store_timestamp);
        put_host(out, self.store_host);
        out.put_i32(self.reconsume_times);
        out.put_i64(self.prepared_offset);
        out.put_i32(i32::try_from(self.body.len()).expect("a body fits a frame"));
        out.put_slice(&self.body);
        let topic = i16::try_from(self.topic.len()).expect("a topic is at most 32,767 bytes long");
        match i8::try_from(topic) {
            Ok(topic) => out.put_i8(topic),
            Err(_) => out.put_i16(topic),
        }
        out.put_slice(self.topic.as_bytes());
        out.put_i16(i16::try_from(self.properties.len()).expect("properties are at most 32,767 bytes long"));
        out.put_slice(self.properties.as_bytes());
        let length = u32::try_from(out.len() - start).expect("an entry fits a frame");
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
}

fn put_host(out: &mut Vec<u8>, host: SocketAddr) {
    match host.ip() {
        IpAddr::V4(address) => out.put_slice(&address.octets()),
        IpAddr::V6(address) => out.put_slice(&address.octets()),
    }
    out.put_u32(host.port().into());
}

/// CRC-32 (IEEE) without its top bit (`UtilAll.crc32`).
fn checksum(body: &[u8]) -> u32 {
    let crc = body.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (POLYNOMIAL & (crc & 1).wrapping_neg()))
    });
    !crc & 0x7FFF_FFFF
}

/// The reversed polynomial of CRC-32.
const POLYNOMIAL: u32 = 0xEDB8_8320;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_java() {
        assert_eq!(checksum(b"123456789"), 1_274_296_614);
        assert_eq!(checksum(b""), 0);
    }
}
