use bytes::{Bytes, BytesMut};

use super::*;
use crate::command::{Code, Fields, Header, Opaque, Request, Response};

struct List(Vec<(String, String)>);

impl Header for List {
    fn write(&self, fields: &mut Fields<'_>) {
        for (name, value) in &self.0 {
            fields.str(name, value);
        }
    }
}

#[test]
fn smoke() {
    let header = List(vec![("a".into(), "x\u{1}\"é🚀\u{7f}".into()), ("b".into(), "2".into())]);
    let limits = FrameLimits::default();
    for encoding in [HeaderEncoding::Json, HeaderEncoding::Binary] {
        let request = Request { code: Code(310), header: &header, body: Bytes::from_static(b"body") };
        let frame = request.encode(Opaque(-5), EncodeOptions { encoding, version: 479 }, &limits).unwrap();
        println!("{}", String::from_utf8_lossy(&frame));
        let command = decode_frame(&mut BytesMut::from(&frame[..]), &limits).unwrap().unwrap();
        println!("{command:?}");
        assert_eq!(command.field("a").unwrap(), "x\u{1}\"é🚀\u{7f}");
        assert_eq!(command.body(), b"body");
        assert_eq!(command.language().unwrap(), "RUST");
        let response =
            Response { code: Code(1), remark: Some("no".into()), header: Box::new(()), body: Bytes::new() };
        let frame = response.encode(Opaque(7), EncodeOptions { encoding, version: 479 }, &limits).unwrap();
        let command = decode_frame(&mut BytesMut::from(&frame[..]), &limits).unwrap().unwrap();
        println!("{command:?} {response:?} {request:?}");
    }
    assert!(size_of::<Command>() <= 96, "{}", size_of::<Command>());
}
