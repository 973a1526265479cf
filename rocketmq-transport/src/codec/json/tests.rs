use std::borrow::Cow;

use super::{
    cursor::plain_run,
    normalize_json,
    text::{MAX_ADDED, add_extra, append_escaped},
};
use crate::{
    codec::{
        Command, FrameError, JSON,
        tests::{decode, frame},
    },
    command::{Code, FieldError, Opaque},
};

fn read(header: &str) -> Command {
    decode(&frame(JSON, header.as_bytes(), b"")).unwrap_or_else(|error| panic!("{header}: {error}"))
}

fn error(header: impl AsRef<[u8]>) -> String {
    decode(&frame(JSON, header.as_ref(), b"")).expect_err("the header is malformed").to_string()
}

fn with_value(value: &str) -> Command {
    read(&format!(r#"{{"opaque":1,"flag":1,"extFields":{{"k":{value}}}}}"#))
}

#[test]
fn an_empty_object_is_a_request_of_code_0() {
    let command = read("{}");
    assert_eq!(
        (command.code(), command.opaque(), command.flag(), command.version()),
        (Code(0), Opaque(0), 0, 0)
    );
    assert_eq!((command.language(), command.remark(), command.fields().count()), (None, None, 0));
}

#[test]
fn a_response_without_an_opaque_is_refused() {
    assert_eq!(error(r#"{"flag":1}"#), "response without an opaque");
    assert_eq!(error(r#"{"opaque":null,"flag":1}"#), "response without an opaque");
}

#[test]
fn members_may_come_in_any_order_and_with_blanks() {
    let command =
        read(" {\t\"opaque\" : -2147483648 ,\r\n\"extFields\" : { } , \"flag\":1,\"code\":2147483647 } ");
    assert_eq!((command.opaque(), command.code()), (Opaque(i32::MIN), Code(i32::MAX)));
}

#[test]
fn the_last_of_equal_members_counts() {
    let command = read(r#"{"code":1,"extFields":{"a":"1"},"code":2,"extFields":{"b":"2"}}"#);
    assert_eq!((command.code(), command.field("a")), (Code(2), None));
    assert_eq!(command.field("b").as_deref(), Some("2"));
}

#[test]
fn null_is_as_good_as_missing() {
    let command = read(
        r#"{"code":null,"extFields":null,"flag":null,"language":null,"opaque":5,"remark":null,"version":null}"#,
    );
    assert_eq!((command.code(), command.opaque(), command.version()), (Code(0), Opaque(5), 0));
    assert_eq!((command.language(), command.remark(), command.fields().count()), (None, None, 0));
}

#[test]
fn unknown_members_of_every_type_are_passed_over() {
    let command = read(concat!(
        r#"{"a":1,"b":-1.5e+10,"c":"\"}","d":true,"e":false,"f":null,"g":[],"h":[1,[{}],"]"],"i":{"j":{"k":[0]}},"#,
        r#""l":{0:"x",-1:{}},"m":{{"q":0,"t":"{"}:5,{}:6},"serializeTypeCurrentRPC":"KLINGON",7:8,{"x":1}:9,"opaque":3}"#,
    ));
    assert_eq!(command.opaque(), Opaque(3));
}

#[test]
fn a_name_with_escapes_is_the_name_it_spells() {
    let command = read(r#"{"\u006fpaque":3,"extFields":{"t\u006fpic":"T","plain":"P"}}"#);
    assert_eq!(command.opaque(), Opaque(3));
    assert_eq!(command.field("topic").as_deref(), Some("T"));
    assert_eq!(command.field("t\\u006fpic"), None);
}

#[test]
fn the_language_is_kept_as_it_was_sent() {
    for (sent, read_as) in [
        (r#""JAVA""#, Some("JAVA")),
        (r#""KLINGON""#, Some("KLINGON")),
        (r#""""#, None),
        ("null", None),
        ("12", Some("RUST")),
        ("0", Some("JAVA")),
        ("99", Some("99")),
        ("true", Some("true")),
    ] {
        assert_eq!(read(&format!(r#"{{"language":{sent}}}"#)).language().as_deref(), read_as, "{sent}");
    }
}

#[test]
fn a_version_may_exceed_16_bits() {
    assert_eq!(read(r#"{"version":99999}"#).version(), 99_999);
}

#[test]
fn values_of_every_simple_type_are_their_text() {
    for (sent, read_as) in [
        ("1", Some("1")),
        ("-0", Some("-0")),
        ("1.50", Some("1.50")),
        ("1e9", Some("1e9")),
        ("true", Some("true")),
        ("false", Some("false")),
        ("null", None),
        (r#""null""#, Some("null")),
        (r#""""#, None),
        (r#""a\"b""#, Some("a\"b")),
    ] {
        assert_eq!(with_value(sent).field("k").as_deref(), read_as, "{sent}");
    }
}

#[test]
fn keys_that_are_numbers_or_objects_are_their_text() {
    let command = read(r#"{"extFields":{0:"a",-1:"b",{"q":1}:"c"}}"#);
    for (name, value) in [("0", "a"), ("-1", "b"), (r#"{"q":1}"#, "c")] {
        assert_eq!(command.field(name).as_deref(), Some(value));
    }
}

#[test]
fn of_fields_that_come_twice_the_last_counts_even_if_it_is_null() {
    let command = read(r#"{"extFields":{"a":"1","b":"1","a":"2","b":null}}"#);
    assert_eq!(command.field("a").as_deref(), Some("2"));
    assert_eq!(command.field("b"), None);
    let pairs = command.fields().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
    assert_eq!(pairs, ["a=1", "b=1", "a=2", "b="]);
}

#[test]
fn texts_without_escapes_are_borrowed() {
    let command = read(r#"{"extFields":{"plain":"é🚀","escaped":"\n"},"remark":"why"}"#);
    assert!(matches!(command.field("plain"), Some(Cow::Borrowed("é🚀"))));
    assert!(matches!(command.field("escaped"), Some(Cow::Owned(text)) if text == "\n"));
    assert!(matches!(command.remark(), Some(Cow::Borrowed("why"))));
}

#[test]
fn every_escape_is_read() {
    let text = with_value(r#""\"\\\/\b\f\n\r\t\u0001\u00e9\u00E9\uD83D\ude80\u2028""#);
    assert_eq!(text.field("k").as_deref(), Some("\"\\/\u{8}\u{c}\n\r\t\u{1}éé🚀\u{2028}"));
}

#[test]
fn half_of_a_surrogate_pair_is_replaced() {
    for (sent, read_as) in [
        (r#""\ud83d""#, "\u{fffd}"),
        (r#""\ude80""#, "\u{fffd}"),
        (r#""\ude80\ud83d""#, "\u{fffd}\u{fffd}"),
        (r#""a\ud83d\n""#, "a\u{fffd}\n"),
        (r#""\ud83d\u0041""#, "\u{fffd}A"),
        (r#""\ud83d\ud83d\ude80""#, "\u{fffd}🚀"),
        (r#""\ud83dude80""#, "\u{fffd}ude80"),
    ] {
        assert_eq!(with_value(sent).field("k").as_deref(), Some(read_as), "{sent}");
    }
}

#[test]
fn u_007f_is_read_as_it_is() {
    assert_eq!(with_value("\"a\u{7f}b\"").field("k").as_deref(), Some("a\u{7f}b"));
}

#[test]
fn the_error_says_what_was_expected_and_where() {
    for (header, text) in [
        ("  ", "expected an object at byte 2, found the end"),
        ("null", "expected an object at byte 0, found `n`"),
        ("[]", "expected an object at byte 0, found `[`"),
        ("\u{feff}{}", "expected an object at byte 0, found byte 0xef"),
        ("{} {}", "expected the end of the text at byte 3, found `{`"),
        ("{}\0", "expected the end of the text at byte 2, found byte 0x00"),
        ("{ ", "expected a name at byte 2, found the end"),
        ("{a:1}", "expected a name at byte 1, found `a`"),
        ("{'a':1}", "expected a name at byte 1, found `'`"),
        (r#"{"a"}"#, "expected a colon at byte 4, found `}`"),
        (r#"{"a":}"#, "expected a string, number, boolean or null at byte 5, found `}`"),
        (r#"{"a":1,}"#, "expected a name at byte 7, found `}`"),
        (r#"{"a":1 "b":2}"#, "expected a comma or the end of the object at byte 7, found `\"`"),
        (r#"{"a":[1 2]}"#, "expected a comma or the end of the list at byte 8, found `2`"),
        (r#"{"a":[1,]}"#, "expected a string, number, boolean or null at byte 8, found `]`"),
        (r#"{"a":tru}"#, "expected true, false or null at byte 5, found `t`"),
        (r#"{"a":01}"#, "expected a comma or the end of the object at byte 6, found `1`"),
        (r#"{"a":-}"#, "expected a digit at byte 6, found `}`"),
        (r#"{"a":1.}"#, "expected a digit at byte 7, found `}`"),
        (r#"{"a":1e+}"#, "expected a digit at byte 8, found `}`"),
        (r#"{"a"#, "expected the end of a string at byte 3, found the end"),
        ("{\"a\nb\":1}", "expected an escape in place of a control character at byte 3, found byte 0x0a"),
        (r#"{"\x41":1}"#, "expected a known escape at byte 2, found `\\`"),
        (r#"{"\u12g4":1}"#, "expected an escape with four hexadecimal digits at byte 2, found `\\`"),
        (r#"{"\u12"#, "expected an escape with four hexadecimal digits at byte 2, found `\\`"),
    ] {
        assert_eq!(error(header), format!("JSON header: {text}"), "{header}");
    }
}

#[test]
fn members_of_a_wrong_type_are_refused() {
    for (header, text) in [
        (r#"{"code":2147483648}"#, "expected an integer of 32 bits at byte 8, found `2`"),
        (r#"{"opaque":-2147483649}"#, "expected an integer of 32 bits at byte 10, found `-`"),
        (r#"{"flag":1.0}"#, "expected an integer of 32 bits at byte 8, found `1`"),
        (r#"{"version": "1"}"#, "expected an integer of 32 bits at byte 12, found `\"`"),
        (r#"{"code":true}"#, "expected an integer of 32 bits at byte 8, found `t`"),
        (r#"{"remark":{}}"#, "expected a string, number, boolean or null at byte 10, found `{`"),
        (r#"{"extFields":"x"}"#, "expected an object or null at byte 13, found `\"`"),
        (r#"{"extFields":[]}"#, "expected a string, number, boolean or null at byte 13, found `[`"),
        (r#"{"extFields":{"a":{}}}"#, "expected a string, number, boolean or null at byte 18, found `{`"),
    ] {
        assert_eq!(error(header), format!("JSON header: {text}"), "{header}");
    }
}

#[test]
fn texts_that_are_not_utf_8_are_refused() {
    assert_eq!(error(b"{\"a\":\"b\xff\"}"), "JSON header: expected UTF-8 at byte 7, found byte 0xff");
    assert_eq!(error(b"{\"a\xc3\":1}"), "JSON header: expected UTF-8 at byte 3, found byte 0xc3");
}

#[test]
fn nesting_is_accepted_to_its_bound_and_refused_beyond() {
    let nested = |open: &str, close: &str, depth: usize| {
        format!(r#"{{"a":{}0{}}}"#, open.repeat(depth), close.repeat(depth))
    };
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}"), ("[{0:", "}]")] {
        let levels = open.matches(['[', '{']).count();
        read(&nested(open, close, 64 / levels));
        assert!(error(nested(open, close, 64 / levels + 1)).contains("no deeper nesting"));
        assert!(error(nested(open, close, 100_000)).contains("no deeper nesting"));
    }
    assert!(error("{".repeat(100_000)).contains("no deeper nesting"));
    assert!(error(format!(r#"{{"extFields":{}"#, "{".repeat(100_000))).contains("no deeper nesting"));
}

#[test]
fn a_field_that_does_not_parse_names_itself() {
    let long = "9".repeat(100);
    for value in ["abc", "9223372036854775808", "1.5", " 7", &long] {
        let error = with_value(&format!("\"{value}\"")).require::<i64>("k").unwrap_err();
        assert_eq!(error, FieldError::new("k", Some(value), "i64"));
    }
    for value in ["null", r#""""#] {
        assert_eq!(with_value(value).require::<i64>("k"), Err(FieldError::new("k", None, "i64")));
        assert_eq!(with_value(value).parse::<i64>("k"), Ok(None));
    }
    assert_eq!(with_value("-1").parse::<i64>("k"), Ok(Some(-1)));
    assert!(with_value("-1").parse::<u64>("k").is_err());
    assert_eq!(with_value("true").require::<bool>("k"), Ok(true));
}

#[test]
fn standard_json_is_given_back_as_it_is() {
    for json in ["{}", "[1,2]", "null", " 1 ", r#"{"a":{"0":"{0:1}"},"b":["\u0001"]}"#] {
        assert!(
            matches!(normalize_json(json.as_bytes()), Ok(Cow::Borrowed(same)) if same == json.as_bytes())
        );
    }
}

#[test]
fn odd_keys_become_strings_wherever_they_are() {
    for (json, expected) in [
        (r#"{0:"a",1:{2:[{3:4}]}}"#, r#"{"0":"a","1":{"2":[{"3":4}]}}"#),
        (r#"{ -7 : "{8:9}" }"#, r#"{ "-7" : "{8:9}" }"#),
        (r#"{{"a":"\"","b":{1:2}}:{5:6},"c":0}"#, r#"{"{\"a\":\"\\\"\",\"b\":{1:2}}":{"5":6},"c":0}"#),
        ("{{\n}:1}", r#"{"{\n}":1}"#),
    ] {
        let normal = normalize_json(json.as_bytes()).unwrap_or_else(|error| panic!("{json}: {error}"));
        assert_eq!(String::from_utf8_lossy(&normal), expected);
    }
}

#[test]
fn text_in_neither_dialect_is_refused() {
    for (json, position) in
        [("", 0), ("{0:}", 3), ("{[]:1}", 1), ("{true:1}", 1), ("[1] 2", 4), ("{0.:1}", 3)]
    {
        let error = normalize_json(json.as_bytes()).expect_err("the text is malformed");
        assert_eq!(error.position(), position, "{json}: {error}");
    }
}

#[test]
fn a_run_ends_at_the_first_byte_that_ends_one_wherever_it_is() {
    let ends = |byte: u8| matches!(byte, 0..0x20 | b'"' | b'\\');
    let (ending, plain): (Vec<u8>, Vec<u8>) = (0..=255).partition(|&byte| ends(byte));
    for byte in plain {
        for len in 0..20 {
            let mut bytes = vec![byte; len];
            assert_eq!(plain_run(&bytes), len, "{byte:#x}");
            for &end in &ending {
                bytes.extend_from_slice(&[end, byte, b'!', b'#', b'[', b']', 0x80, 0xff, b'"']);
                assert_eq!(plain_run(&bytes), len, "{end:#x} behind {len} times {byte:#x}");
                bytes.truncate(len);
            }
        }
    }
}

#[test]
fn integers_are_read_to_their_limits() {
    for (sent, read_as) in [
        ("0", 0),
        ("-0", 0),
        (" 7 ", 7),
        ("479", 479),
        ("999999999", 999_999_999),
        ("1000000000", 1_000_000_000),
        ("2147483647", i32::MAX),
        ("-2147483648", i32::MIN),
    ] {
        let command = read(&format!(r#"{{"opaque":{sent},"code":{sent}}}"#));
        assert_eq!((command.opaque(), command.code()), (Opaque(read_as), Code(read_as)), "{sent}");
    }
    for sent in
        ["00", "01", "-01", "1.0", "1e3", "0x1", "12 3", "9999999999", "99999999999999999999", "", "1,"]
    {
        error(format!(r#"{{"code":{sent}}}"#));
    }
}

#[test]
fn a_character_is_escaped_and_measured_wherever_it_is() {
    for character in ('\0'..='\u{100}').chain(['\u{2028}', '🚀']) {
        let escaped = match character {
            '"' | '\\' => format!("\\{character}"),
            '\n' => "\\n".to_owned(),
            '\r' => "\\r".to_owned(),
            '\t' => "\\t".to_owned(),
            '\0'..' ' | '\u{7f}' => format!("\\u{:04X}", u32::from(character)),
            plain => plain.to_string(),
        };
        for len in 0..20 {
            let plain = "!#[]~é ".chars().cycle().take(len).collect::<String>();
            let text = format!("{plain}{character}{character}{plain}{character}");
            let mut out = b"before".to_vec();
            append_escaped(&mut out, &text);
            assert_eq!(out, format!("before{plain}{escaped}{escaped}{plain}{escaped}").into_bytes());
            let added = if escaped.len() > character.len_utf8() { 3 * MAX_ADDED } else { 0 };
            let mut bound = 1;
            add_extra(&mut bound, &text);
            assert_eq!(bound, 1 + added, "{text:?}");
        }
    }
}

#[test]
fn the_fault_of_a_header_is_a_json_fault() {
    let error = decode(&frame(JSON, b"{ ", b"")).expect_err("the header is cut");
    assert!(matches!(error, FrameError::Json(fault) if fault.position() == 2 && fault.found().is_none()));
}
