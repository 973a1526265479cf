use bytes::Bytes;

use super::*;

struct Pairs(&'static [(&'static str, &'static str)]);

impl Header for Pairs {
    fn write(&self, fields: &mut Fields<'_>) {
        for (name, value) in self.0 {
            fields.str(name, value);
        }
    }
}

struct Typed;

impl Header for Typed {
    fn write(&self, fields: &mut Fields<'_>) {
        fields.int("max", i64::MAX);
        fields.int("min", i64::MIN);
        fields.bool("no", false);
        fields.bool("yes", true);
        fields.opt_int("some", Some(0));
        fields.opt_int("none", None);
        fields.opt_str("text", Some("x"));
        fields.opt_str("empty", Some(""));
        fields.opt_bool("unknown", None);
    }
}

fn request(header: &dyn Header) -> Request<'_> {
    Request { code: Code(10), header, body: Bytes::from_static(b"secret body") }
}

fn fields(header: &dyn Header) -> Vec<(String, String)> {
    request(header).fields()
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn typed_fields_become_the_texts_that_java_writes() {
    let expected = [
        ("max", "9223372036854775807"),
        ("min", "-9223372036854775808"),
        ("no", "false"),
        ("some", "0"),
        ("text", "x"),
        ("yes", "true"),
    ];
    assert_eq!(fields(&Typed), owned(&expected));
}

#[test]
fn an_empty_text_is_left_out() {
    assert_eq!(fields(&Pairs(&[("a", ""), ("b", "1")])), owned(&[("b", "1")]));
}

#[test]
fn the_last_of_equal_names_is_signed() {
    assert_eq!(
        fields(&Pairs(&[("b", "1"), ("a", "1"), ("b", "2"), ("b", "3")])),
        owned(&[("a", "1"), ("b", "3")])
    );
}

#[test]
fn names_are_signed_in_the_order_of_their_utf_16_units() {
    // As bytes the private-use character comes first, as UTF-16 units the rocket does.
    let pairs = Pairs(&[("\u{e000}", "1"), ("🚀", "2"), ("a", "3"), ("B", "4")]);
    assert_eq!(fields(&pairs), owned(&[("B", "4"), ("a", "3"), ("🚀", "2"), ("\u{e000}", "1")]));
}

#[test]
fn integers_are_measured_as_the_standard_library_writes_them() {
    let powers =
        (0..19).map(|power| 10_i64.pow(power)).flat_map(|power| [power - 1, power, -power, 1 - power]);
    for value in powers.chain([1_700_000_000_000, i64::MAX, i64::MIN, i64::MIN + 1]) {
        assert_eq!(decimal_len(value), value.to_string().len(), "{value}");
    }
}

#[test]
fn debug_shows_names_and_lengths_but_no_value() {
    let header = Pairs(&[("AccessKey", "secret key"), ("topic", "secret topic")]);
    let shown = format!("{:?}", request(&header));
    assert_eq!(shown, r#"Request { code: 10, fields: ["AccessKey", "topic"], body_len: 11 }"#);

    let response = Response {
        code: Code::SYSTEM_ERROR,
        remark: Some("r".repeat(1000).into()),
        header: Box::new(header),
        body: Bytes::from_static(b"secret body"),
    };
    let shown = format!("{response:?}");
    assert!(shown.contains("\"AccessKey\"") && shown.contains("body_len: 11"), "{shown}");
    assert!(!shown.contains("secret") && shown.len() < 250, "{shown}");
}

#[test]
fn a_field_error_names_field_value_and_expectation() {
    let missing = FieldError::new("offset", None, "i64");
    assert_eq!(missing.to_string(), "field offset is missing, expected i64");
    assert_eq!((missing.name(), missing.value(), missing.expected()), ("offset", None, "i64"));

    let wrong = FieldError::new("offset", Some("ab\n"), "i64");
    assert_eq!(wrong.to_string(), r#"field offset is "ab\n", expected i64"#);
}

#[test]
fn a_field_error_keeps_only_the_start_of_a_long_value() {
    let long = "é".repeat(1_000_000);
    let error = FieldError::new("offset", Some(&long), "i64");
    assert_eq!(error.value(), Some(format!("{}…", "é".repeat(64)).as_str()));
}
